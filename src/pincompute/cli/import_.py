"""`pin import`: writes workload files for existing objects, and adopts them without restarting their pods."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from pincompute.base.platform_context import read_context
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import CANNOT_IMPORT, USAGE
from pincompute.base.settings import setting_value
from pincompute.cli.import_many import (
    ImportOutput,
    output_imports,
    read_native_files,
    survey_with_progress,
    write_import,
)
from pincompute.cli.target import Target, platform_options
from pincompute.cli.text_files import file_option
from pincompute.cli.yaml_writer import format_compact
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import default_kubeconfig, load_kubeconfig
from pincompute.objects.content import object_label
from pincompute.planning.migration.changes import known_keywords, noticeable_changes, unaccepted_problems
from pincompute.planning.migration.managed_by import external_managers
from pincompute.planning.migration.native_documents import NativeObjects
from pincompute.planning.migration.native_import import ADOPTABLE_KINDS, API_VERSIONS, import_native
from pincompute.planning.migration.related_objects import RelatedObjects
from pincompute.planning.migration.restricted import restrict_native, with_restrictions
from pincompute.planning.migration.workload_import import WorkloadImport
from pincompute.platforms.kubernetes.deployment_import import (
    read_namespace,
    read_native,
    request_adoption,
    require_rolled_out,
    wait_until_adopted,
)

_SHORT_NAMES = {"Deployment": "deploy", "StatefulSet": "sts", "DaemonSet": "ds", "CronJob": "cj"}
_KINDS = {
    word: kind
    for kind in API_VERSIONS
    for word in (kind.lower(), f"{kind.lower()}s", _SHORT_NAMES.get(kind, kind.lower()))
}
"""Kinds by the words of kubectl."""


class ImportOptions(NamedTuple):
    kind: str
    name: str
    workload_name: str
    port: int
    output: Path | None
    accepted: frozenset[str]
    adopt: bool
    dry_run: bool
    take_over: bool
    restricted: bool


def _parse_accepted(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> frozenset[str]:
    accepted = frozenset(word.strip() for value in values for word in value.split(",") if word.strip())
    if unknown := sorted(accepted - set(known_keywords())):
        raise click.BadParameter(f"unknown change {unknown[0]!r}; known are {', '.join(known_keywords())}")
    return accepted


@click.command("import")
@click.argument("native", metavar="[KIND/NAME]", required=False)
@file_option
@click.option("--all", "everything", is_flag=True, help="Import everything in the namespace.")
@click.option("--namespace", default="", help="Namespace of the objects; the project by default.")
@click.option("--as", "workload_name", default="", help="Name of the workload; the object's name by default.")
@click.option("--port", type=click.IntRange(1, 65535), default=None, help="Port, if the object names none.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write to this file; of several to this folder.")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    callback=_parse_accepted,
    help="Accept noticeable changes, such as memory-limit,requests; or all.",
)
@click.option(
    "--restricted",
    is_flag=True,
    help="Use the platform's security defaults where an object sets none.",
)
@click.option("--adopt", is_flag=True, help="Turn the object into a workload and keep its running pods.")
@click.option("--dry-run", is_flag=True, help="With --adopt: print the steps and change nothing.")
@click.option("--take-over", is_flag=True, help="Adopt the object even if another tool manages it.")
@platform_options
def import_(  # noqa: PLR0913  (one parameter an option)
    *,
    target: Target,
    native: str | None,
    files: tuple[str, ...],
    everything: bool,
    namespace: str,
    workload_name: str,
    port: int | None,
    output: Path | None,
    accepted: frozenset[str],
    adopt: bool,
    dry_run: bool,
    take_over: bool,
    restricted: bool,
) -> None:
    """Show existing Kubernetes objects as workload files, or adopt one.

    KIND/NAME is an object of a cluster, --all is a whole namespace, and -f reads files, such as a rendered chart,
    without a cluster. Without --adopt nothing is changed. With it the object becomes a workload, and no pod is
    restarted.
    """
    if sum((native is not None, bool(files), everything)) != 1:
        what = "one of KIND/NAME, --all and -f is needed"
        raise Refused(Problem(USAGE, what, next="pin import deployment/NAME, or pin import -f FILE"))
    if dry_run and not adopt:
        raise Refused(Problem(USAGE, "--dry-run needs --adopt", next="--adopt --dry-run"))
    namespace = namespace or target.project
    if native is None:
        if adopt or workload_name or port:
            what = "--adopt, --as and --port are for one object"
            raise Refused(Problem(USAGE, what, next=f"pin import deployment/NAME -n {namespace}"))
        if files:
            natives = read_native_files(files, namespace)
        else:
            natives = asyncio.run(_read_all(_cluster_access(target), namespace))
        output_imports(survey_with_progress(natives, restricted=restricted), natives, ImportOutput(output, accepted))
        return
    options = ImportOptions(
        *_parse_native_name(native), workload_name, port or 0, output, accepted, adopt, dry_run, take_over, restricted
    )
    asyncio.run(_import(_cluster_access(target), namespace, options))


async def _read_all(access: Access, namespace: str) -> NativeObjects:
    async with Client(access, agent="pin") as client:
        return NativeObjects(tuple(await read_namespace(client, namespace)), {})


async def _import(access: Access, namespace: str, options: ImportOptions) -> None:
    async with Client(access, agent="pin") as client:
        related = await read_native(client, options.kind, namespace, options.name)
        imported = _import_related(related, options)
        managers = tuple(external_managers(imported.adopted))
        unaccepted = _ask_for_changes(imported, options)
        text = format_compact(imported.document)
        if options.output is None or not unaccepted:
            _output_document(text, options)
        for line in _format_differences(imported):
            click.echo(line, err=True)
        if not options.adopt:
            for problem in (*imported.blockers, *managers):
                click.echo(problem.text(), err=True)
            refuse_all(unaccepted)
            return
        _require_adoptable(options)
        refuse_all((*imported.blockers, *(() if options.take_over else managers), *unaccepted))
        require_rolled_out(related)
        for number, line in enumerate(_adoption_steps(imported), 1):
            click.echo(f"{number}. {line}", err=True)
        if options.dry_run:
            return
        await request_adoption(client, imported)
        await wait_until_adopted(client, imported)
    name = imported.workload.metadata.name
    if options.kind == "CronJob":
        click.echo(f"{name} is adopted; its next run is from the file        next: pin show {name}", err=True)
        return
    click.echo(f"{name} is adopted; its pods were not restarted and its rollout is paused", err=True)
    click.echo(f"next: pin resume {name}, or deploy its file: either replaces the pods by a rollout", err=True)


def _import_related(found: RelatedObjects, options: ImportOptions) -> WorkloadImport:
    if not options.restricted:
        return import_native(found, options.workload_name, options.port)
    native = restrict_native(found.native)
    imported = import_native(found._replace(native=native), options.workload_name, options.port)
    return with_restrictions(imported, found, native)


def _ask_for_changes(imported: WorkloadImport, options: ImportOptions) -> tuple[Problem, ...]:
    """The problem of changes that were not accepted; on a terminal they are asked about."""
    changes = noticeable_changes(imported.differences)
    problems = tuple(unaccepted_problems(changes, options.accepted, imported.workload.metadata.key))
    if problems and sys.stdin.isatty() and (options.output or options.adopt):
        for problem in problems:
            click.echo(problem.text(), err=True)
        click.confirm("Accept them?", abort=True, err=True)
        return ()
    return problems


def _require_adoptable(options: ImportOptions) -> None:
    if options.kind not in ADOPTABLE_KINDS:
        label = f"{options.kind}/{options.name}"
        note = f"only pods of a {' or '.join(sorted(ADOPTABLE_KINDS))} can be adopted while they run"
        next_ = f"kubectl delete {options.kind.lower()} {options.name}; then pin deploy FILE"
        raise Refused(Problem(CANNOT_IMPORT, f"{label} cannot be adopted in place", Where(), note, next_))


def _parse_native_name(text: str) -> tuple[str, str]:
    """Kind and name; `deploy/web`, `deployments.apps/web` and the like are as with kubectl."""
    word, slash, name = text.partition("/")
    kind = _KINDS.get(word.lower().partition(".")[0])
    if not slash or kind is None or not name:
        known = ", ".join(API_VERSIONS)
        what = f"'{text}' cannot be imported" if slash else f"'{text}' names no kind"
        raise Refused(Problem(USAGE, what, note=f"kinds: {known}", next=f"pin import deployment/{name or word}"))
    return kind, name


def _cluster_access(target: Target) -> Access:
    """Access the cluster directly: a desk sees only workloads, and the object is none yet."""
    if target.bypasses_desk:
        return load_kubeconfig(target.kubeconfig or default_kubeconfig(), target.context)
    return load_kubeconfig(read_context(Path(setting_value("state")), target.name).kubeconfig)


def _output_document(text: str, options: ImportOptions) -> None:
    if options.output is None:
        click.echo(text, nl=False)
    else:
        write_import(options.output, text)


def _format_differences(imported: WorkloadImport) -> Iterator[str]:
    if imported.differences:
        yield "differences, once its pods are replaced:"
        yield from (f"  {each}" for each in imported.differences)
    if imported.untouched:
        yield f"left unchanged: {', '.join(imported.untouched)}"


def _adoption_steps(imported: WorkloadImport) -> Iterator[str]:
    """Describe each step of the adoption in order; the first two are the CLI's, the others the operator's."""
    native, *others = imported.adopted
    metadata = imported.workload.metadata
    kept = [object_label(each) for each in others if each["metadata"]["name"] == metadata.name]
    replaced = [object_label(each) for each in others if each["metadata"]["name"] != metadata.name]
    labelled, kind = ", ".join(map(object_label, imported.adopted)), native["kind"]
    with_sets = ", its ReplicaSets" if kind == "Deployment" else ""
    yield f"label with the workload's name: {labelled}{with_sets}"
    paused = "" if kind == "CronJob" else " with a paused rollout"
    yield f"create {imported.workload.kind}/{metadata.name}{paused}; the operator does the rest"
    if kind == "CronJob":
        yield f"adopt {object_label(native)}, which starts its next run from the file; running Jobs go on"
    else:
        labels_first = "label its pods, " if kind == "StatefulSet" else ""
        yield f"{labels_first}delete {object_label(native)} without its pods, and create it again, paused"
    if kind == "Deployment":
        yield "the new Deployment adopts its ReplicaSets, which are then labelled, with their pods"
    elif kind == "StatefulSet":
        yield "the new StatefulSet adopts its pods, with their claims"
    if imported.created:
        yield f"create {', '.join(imported.created)}"
    if kept:
        yield f"adopt in use: {', '.join(kept)}"
    if replaced:
        yield f"delete, as the workload has its own: {', '.join(replaced)}"
