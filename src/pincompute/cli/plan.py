"""`pin plan`: previews what files or a published build would create and change."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from pincompute.api.custom_resource import CustomResource
from pincompute.api.documents import Document
from pincompute.api.preview import BuildPreview, FieldChange, NativeChange, ObjectAction, Preview
from pincompute.api.project import Project
from pincompute.api.validation import parse_resources
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import DESK_UNREACHABLE, PLATFORM_UNKNOWN, USAGE
from pincompute.cli.deploy_project import owner_of_content
from pincompute.cli.files import read_files
from pincompute.cli.output import as_json
from pincompute.cli.provenance import format_links
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.task_list import read_listed_job_set
from pincompute.cli.text_files import file_option, require_files, tasks_from_option
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import PlanningInputs, as_first_generation, preview_plan

_ACTION_SIGNS = {
    ObjectAction.CREATE: "+",
    ObjectAction.UPDATE: "~",
    ObjectAction.REPLACE: "!",
    ObjectAction.DELETE: "-",
}


class _DumperWithoutAliases(yaml.SafeDumper):
    """Repeats equal parts, which readers prefer to YAML aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


@click.command()
@click.argument("paths", metavar="FILES...", nargs=-1, type=click.Path())
@file_option
@tasks_from_option
@click.option("--version", help="Published build to preview; give its name in place of files.")
@click.option(
    "--output", "-o", type=click.Choice(["yaml", "json"]), help="Kubernetes objects as YAML, or the preview as JSON."
)
@click.option("--offline", is_flag=True, help="Do not compare with the cluster.")
@platform_options
def plan(  # noqa: PLR0913  (options, by name)
    *,
    target: Target,
    paths: tuple[str, ...],
    files: tuple[str, ...],
    tasks_from: str | None,
    version: str | None,
    output: str | None,
    offline: bool,
) -> None:
    """Show what files would create and change, or with --version a published build.

    Nothing is changed. A folder stands for the files in it; a set is accepted whole or not at all. Exits with 1 if the
    deploy would be refused.
    """
    names = require_files(paths, files)
    names_or_files = [Path(each) for each in names]
    if version is not None:
        if tasks_from is not None:
            what = "--tasks-from is for the file of a job set, not for a published build"
            raise Refused(Problem(USAGE, what, next=f"pin plan FILE --tasks-from {tasks_from}"))
        _plan_build(target, names_or_files, version, output)
        return
    if tasks_from is None:
        documents = read_files(names_or_files)
        resources = parse_resources(documents, target.project)
    else:
        documents, resources = _read_listed_tasks(target, names, tasks_from)
    previews = _preview_offline(resources) if offline else _preview_or_fall_back(target, documents, resources)
    click.echo(_format_previews(previews, output), nl=False)
    if any(each.errors for each in previews):
        raise SystemExit(1)


def _read_listed_tasks(
    target: Target, files: Sequence[str], tasks_from: str
) -> tuple[list[Document], list[CustomResource]]:
    job_set = read_listed_job_set(files, tasks_from)
    try:
        return [job_set.document], parse_resources([job_set.document], target.project)
    except Refused as refused:
        raise job_set.locate(refused) from refused


def _plan_build(target: Target, names: Sequence[Path], version: str, output: str | None) -> None:
    if len(names) != 1:
        what = f"--version needs one name, and {len(names)} are given"
        raise Refused(Problem(USAGE, what, next="pin plan NAME --version VERSION"))
    preview = asyncio.run(fetch_build_preview(target, str(names[0]), version))
    click.echo(as_json(preview) if output == "json" else format_build_preview(preview), nl=False)
    if preview.errors:
        raise SystemExit(1)


async def fetch_build_preview(target: Target, name: str, version: str) -> BuildPreview:
    async with connect(target) as platform:
        return await platform.plan_build(target.project, name, version)


def format_build_preview(build: BuildPreview) -> str:
    links = "".join(f"{line}\n" for line in format_links(build.links))
    return _format_preview(build.preview) + links + _format_refusals(build.errors)


def _preview_or_fall_back(target: Target, documents: list[Document], resources: list[CustomResource]) -> list[Preview]:
    """Compare with the cluster; without a running platform, preview a first deploy."""
    try:
        return asyncio.run(_preview_on_platform(target, documents))
    except Refused as refused:
        if target.bypasses_desk or refused.problems[0].reason not in {PLATFORM_UNKNOWN, DESK_UNREACHABLE}:
            raise
        click.echo(f"platform '{target.name}' is not running: not compared with the cluster", err=True)
        return _preview_offline(resources)


def _preview_offline(resources: list[CustomResource]) -> list[Preview]:
    inputs = PlanningInputs.of(resources)
    now = SystemClock().now()
    previews: list[Preview] = []
    problems: list[Problem] = []
    for resource in resources:
        project = inputs.projects.get(resource.metadata.namespace)
        snapshot = Snapshot(
            as_first_generation(resource), (), (), inputs.cluster, now, project, inputs.runtimes, natives_known=False
        )
        result = preview_plan(snapshot, {})
        previews += result.previews
        problems += result.problems
    refuse_all(problems)
    return previews


async def _preview_on_platform(target: Target, documents: list[Document]) -> list[Preview]:
    # Sent as JSON, which is YAML that has only one reading.
    owners = [owner_of_content(each.content) for each in documents]
    names = [each.name if each.kind == Project.__name__ else "" for each in owners]
    # Projects are planned in themselves: who may change one need not have a role in another.
    project = names[0] if all(names) else target.project
    text = "\n---\n".join(msgspec.json.encode(each.content).decode() for each in documents)
    async with connect(target) as platform:
        return await platform.plan(text, project)


def _format_previews(previews: list[Preview], output: str | None) -> str:
    if output == "yaml":
        natives = [native for each in previews for native in each.natives]
        return yaml.dump_all(natives, Dumper=_DumperWithoutAliases, sort_keys=False, explicit_start=True)
    if output == "json":
        return as_json(previews)
    return "\n".join(_format_preview(each) + _format_refusals(each.errors) for each in previews)


def _format_refusals(errors: list[dict[str, Any]]) -> str:
    return "".join(f"would be refused: {Problem.from_json(each).text()}\n" for each in errors)


def _format_preview(preview: Preview) -> str:
    if not preview.natives:
        return f"{preview.label} has no Kubernetes objects of its own: workloads use it\n"
    if not preview.changes:
        return f"{preview.label} is up to date: no changes\n"
    lines = [f"{preview.label}{'  replicas are replaced' if preview.restarts_replicas else ''}"]
    for change in preview.changes:
        lines += _format_native(change)
    if preview.unchanged:
        lines.append(f"  = {preview.unchanged} unchanged")
    lines += [f"  capacity: {each}" for each in preview.free_capacity]
    lines += [f"  quota: {each}" for each in preview.quota_after]
    if preview.address:
        lines.append(f"  address: {preview.address}")
    return "".join(f"{line}\n" for line in lines)


def _format_native(change: NativeChange) -> list[str]:
    fields = [f"      {_format_field(each)}" for each in change.fields]
    return [f"  {_ACTION_SIGNS[change.action]} {change.native}", *fields]


def _format_field(field: FieldChange) -> str:
    if not field.before:
        return f"{field.path}: {field.after}"
    return f"{field.path}: {field.before} -> {field.after or 'removed'}"
