"""`pin deploy`: submits a file, a published build or a typed service, and follows it to its goal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import click

from pincompute.api.break_glass import BreakGlassRequest
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE
from pincompute.cli.durations import parse_time_span
from pincompute.cli.follow import FollowTimer, follow_to_goal
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.text_files import file_option, read_text_file, require_files, tasks_from_option

_DOCUMENT_MARKERS = ("---", "...")
"""Begin a line that starts or ends a YAML document."""

_OTHER_KINDS = ("Project", "Runtime", "PinterestSidecar")
"""Kinds that are no workloads. Only documents in which one of the words occurs are parsed here."""

Submit = Callable[[PlatformClient], Awaitable[WorkloadSummary]]


def _parse_environment(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    for each in values:
        if not each.partition("=")[0] or "=" not in each:
            # Not quoted: it may be a secret.
            raise click.BadParameter("an environment variable must be NAME=VALUE")
    return {name: value for name, _, value in (each.partition("=") for each in values)}


@click.command()
@click.argument("names_or_files", nargs=-1, type=click.Path(), metavar="NAME_OR_FILES...")
@file_option
@tasks_from_option
@click.option("--image", help="Container image of a new service; the file is written for you.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port that the new service listens on.")
@click.option("--worker", is_flag=True, help="The new service listens on no port, such as a consumer of a queue.")
@click.option(
    "--env",
    "environment",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_parse_environment,
    help="Environment variable of the new service; repeatable.",
)
@click.option("--version", help="Published build to deploy; it fixes the file and the images.")
@click.option(
    "--break-glass", "because", metavar="REASON", help="Deploy an unreviewed file in an emergency; it is recorded."
)
@click.option("--for", "span", default="4h", help="Duration of --break-glass, at most 24h.", show_default=True)
@click.option("--replicas", type=click.IntRange(0, 10_000), default=1, help="Number of replicas.", show_default=True)
@click.option("--simulated", is_flag=True, help="Run on a simulated node, without a program.")
@click.option("--timeout", default=120.0, help="Maximum time to wait for the result, in seconds.", show_default=True)
@click.option("--yes", "-y", is_flag=True, help="Do not show the changes of a published build and ask.")
@click.option("--no-wait", is_flag=True, help="Submit and do not wait for the result.")
@platform_options
def deploy(  # noqa: PLR0913  (one parameter an option)
    *,
    target: Target,
    names_or_files: tuple[str, ...],
    files: tuple[str, ...],
    tasks_from: str | None,
    image: str | None,
    port: int | None,
    worker: bool,
    environment: dict[str, str],
    version: str | None,
    because: str | None,
    span: str,
    replicas: int,
    simulated: bool,
    timeout: float,
    no_wait: bool,
    yes: bool,
) -> None:
    """Run a workload and follow it until it is ready or done.

    NAME_OR_FILES is a file such as hello.yaml, or a name: of a build published as --version, or of a new service with
    --image and --port or --worker, for which a file is written. Several files, a folder, or a file of several
    documents are a set: all are accepted or none; - is standard input. In an emergency --break-glass skips a project's
    review. The file of a project, runtime or runtime part is deployed by itself.
    """
    names_or_files = require_files(names_or_files, files)
    timeout_s = None if no_wait else timeout
    break_glass = None if because is None else BreakGlassRequest(because, parse_time_span(span))
    notice = _override_notice(span) if break_glass else ""
    submit: Submit
    if environment and image is None:
        what = "--env is for a new service; variables of a workload file are written in it"
        raise Refused(Problem(USAGE, what, next="environment: {NAME: value} in the file"))
    is_new = image is not None or port is not None or worker
    if tasks_from is not None:
        if version is not None or is_new:
            what = "--tasks-from is for the file of a job set, not for a published build or a new service"
            raise Refused(Problem(USAGE, what, next=f"pin deploy FILE --tasks-from {tasks_from}"))
        submit = partial(_submit_listed, target, names_or_files, tasks_from, break_glass)
        asyncio.run(_submit_and_follow(target, submit, timeout_s, notice))
        return
    if version is None and not is_new and not _is_one_document(names_or_files):
        # Loads YAML, which only sets need.
        from pincompute.cli.files import read_file_set

        documents = read_file_set([Path(each) for each in names_or_files])
        if len(documents) > 1:
            from pincompute.cli.deploy_set import deploy_set

            asyncio.run(deploy_set(target, documents, break_glass, timeout_s, notice))
            return
        names_or_files = (documents[0].file,) if documents else names_or_files
    name_or_file = _require_one(names_or_files)
    if version is not None:
        if not yes and break_glass is None and sys.stdin.isatty():
            asyncio.run(_confirm_build(target, name_or_file, version))
        submit = partial(_submit_build, target, name_or_file, version, break_glass)
    elif not is_new:
        text = read_text_file(Path(name_or_file), f"pin deploy {Path(name_or_file).stem} --image IMAGE --port 8080")
        is_other = any(kind in text for kind in _OTHER_KINDS)
        if is_other and _deploy_other_kind(target, text, name_or_file, break_glass, timeout_s):
            return
        submit = partial(_submit_text, target, text, Path(name_or_file), break_glass)
    else:
        # Loads YAML, which only a new service needs.
        from pincompute.cli.short_form import format_short_form

        text = format_short_form(name_or_file, image, port, replicas, environment, worker=worker, simulated=simulated)
        submit = partial(_write_and_submit, target, text, Path(f"{name_or_file}.yaml"), break_glass)
    asyncio.run(_submit_and_follow(target, submit, timeout_s, notice))


def _deploy_other_kind(
    target: Target, text: str, file: str, break_glass: BreakGlassRequest | None, timeout_s: float | None
) -> bool:
    # Loads YAML, which workloads need not.
    from pincompute.cli.deploy_project import deploy_document, document_owner

    owner = document_owner(text)
    if owner.kind and break_glass:
        what = f"--break-glass is for workloads: the document of a {owner.kind} is not reviewed"
        raise Refused(Problem(USAGE, what, next=f"pin deploy {file}"))
    if owner.kind:
        deploy_document(target, owner, text, file, timeout_s)
    return bool(owner.kind)


def _override_notice(span: str) -> str:
    return (
        f"emergency override active for {span}, recorded; "
        "when it expires the workload keeps running, and only reviewed builds can change it"
    )


def _is_one_document(names_or_files: tuple[str, ...]) -> bool:
    """Whether there is certainly at most one document, told without loading a YAML parser."""
    if len(names_or_files) != 1:
        return False
    file = Path(names_or_files[0])
    if file.is_dir():
        return False
    try:
        lines = read_text_file(file).splitlines()
    except Refused:
        # Reported later, by the code that submits the file.
        return True
    return not any(line.startswith(_DOCUMENT_MARKERS) for line in lines)


def _require_one(names_or_files: tuple[str, ...]) -> str:
    if len(names_or_files) > 1:
        what = f"{len(names_or_files)} names, and only files can be deployed together"
        raise Refused(Problem(USAGE, what, next=f"pin deploy {names_or_files[0]} …, and then each of the others"))
    return names_or_files[0]


async def _submit_build(
    target: Target, name: str, version: str, break_glass: BreakGlassRequest | None, platform: PlatformClient
) -> WorkloadSummary:
    return await platform.deploy(target.project, name, version, break_glass)


async def _confirm_build(target: Target, name: str, version: str) -> None:
    """Show the changes and ask. The desk refuses an invalid build anyway, so that one is not asked about."""
    # Loads every kind, which only a question on a terminal needs.
    from pincompute.cli.plan import fetch_build_preview, format_build_preview

    preview = await fetch_build_preview(target, name, version)
    click.echo(format_build_preview(preview), err=True, nl=False)
    if not preview.errors:
        click.confirm("Deploy it?", abort=True, err=True)


async def _submit_text(
    target: Target, text: str, file: Path, break_glass: BreakGlassRequest | None, platform: PlatformClient
) -> WorkloadSummary:
    return await platform.submit(text, str(file), target.project, break_glass)


async def _submit_listed(
    target: Target,
    files: tuple[str, ...],
    tasks_from: str,
    break_glass: BreakGlassRequest | None,
    platform: PlatformClient,
) -> WorkloadSummary:
    # Loads YAML, which only a list of tasks needs.
    from pincompute.cli.task_list import read_listed_job_set

    job_set = read_listed_job_set(files, tasks_from)
    try:
        return await platform.submit(job_set.text, job_set.document.file, target.project, break_glass)
    except Refused as refused:
        raise job_set.locate(refused) from refused


async def _write_and_submit(
    target: Target, text: str, file: Path, break_glass: BreakGlassRequest | None, platform: PlatformClient
) -> WorkloadSummary:
    from pincompute.cli.short_form import write_document

    write_document(file, text, target.project)
    return await _submit_text(target, text, file, break_glass, platform)


async def _submit_and_follow(target: Target, submit: Submit, timeout_s: float | None, notice: str) -> None:
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        submitted = await submit(platform)
        if notice:
            click.echo(notice, err=True)
        if timeout_s is None:
            click.echo(f"{submitted.label}  submitted        next: pin get {submitted.name}")
            return
        if submitted.done:
            # A submission that changes anything is not observed yet, and so not done.
            click.echo(f"{submitted.label}  unchanged", err=True)
        reached = submitted if submitted.done else await follow_to_goal(platform, submitted, timer)
    if reached.simulated:
        address = f", and {reached.address} does not answer" if reached.address else ""
        click.echo(f"{reached.label} is simulated: no program runs{address}", err=True)
    else:
        click.echo(f"{reached.address or reached.message}        next: pin logs {reached.name}")
