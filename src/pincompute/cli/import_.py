"""`pin import`: writes a workload file for an existing Deployment, and adopts it without restarting its pods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from pincompute.base.platform_context import read_context
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import USAGE
from pincompute.base.settings import setting_value
from pincompute.cli.target import Target, platform_options
from pincompute.cli.yaml_writer import format_document
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import default_kubeconfig, load_kubeconfig
from pincompute.objects.content import object_label
from pincompute.planning.migration.deployment_import import DeploymentImport, import_deployment
from pincompute.planning.migration.managed_by import external_managers
from pincompute.platforms.kubernetes.deployment_import import (
    read_deployment,
    request_adoption,
    require_rolled_out,
    wait_until_adopted,
)

_DEPLOYMENT_KINDS = ("deployment", "deployments", "deploy", "deployment.apps", "deployments.apps")


class ImportOptions(NamedTuple):
    name: str
    workload_name: str
    port: int
    file: Path | None
    adopt: bool
    dry_run: bool
    take_over: bool


@click.command("import")
@click.argument("deployment", metavar="deployment/NAME")
@click.option("--namespace", default="", help="Namespace of the Deployment; the project by default.")
@click.option("--as", "workload_name", default="", help="Name of the workload; the Deployment's name by default.")
@click.option("--port", type=click.IntRange(1, 65535), default=None, help="Port, if the Deployment names none.")
@click.option("--output", "-o", "file", type=click.Path(path_type=Path), help="Write the file to this path.")
@click.option("--adopt", is_flag=True, help="Turn the Deployment into a workload and keep its running pods.")
@click.option("--dry-run", is_flag=True, help="With --adopt: print the steps and change nothing.")
@click.option("--take-over", is_flag=True, help="Adopt the Deployment even if another tool manages it.")
@platform_options
def import_(  # noqa: PLR0913  (one parameter an option)
    *,
    target: Target,
    deployment: str,
    namespace: str,
    workload_name: str,
    port: int | None,
    file: Path | None,
    adopt: bool,
    dry_run: bool,
    take_over: bool,
) -> None:
    """Show an existing Deployment as a workload file, or adopt it.

    Without --adopt nothing is changed. With it the Deployment becomes a workload, and no pod is restarted.
    """
    if dry_run and not adopt:
        raise Refused(Problem(USAGE, "--dry-run needs --adopt", next="--adopt --dry-run"))
    options = ImportOptions(
        _parse_deployment_name(deployment), workload_name, port or 0, file, adopt, dry_run, take_over
    )
    asyncio.run(_import(_cluster_access(target), namespace or target.project, options))


async def _import(access: Access, namespace: str, options: ImportOptions) -> None:
    async with Client(access, agent="pin") as client:
        related = await read_deployment(client, namespace, options.name)
        imported = import_deployment(related, options.workload_name, options.port)
        managers = tuple(external_managers(imported.adopted))
        _output_document(format_document(imported.document), options)
        for line in _format_differences(imported):
            click.echo(line, err=True)
        if not options.adopt:
            for problem in (*imported.blockers, *managers):
                click.echo(problem.text(), err=True)
            return
        refuse_all((*imported.blockers, *(() if options.take_over else managers)))
        require_rolled_out(related)
        for number, line in enumerate(_adoption_steps(imported), 1):
            click.echo(f"{number}. {line}", err=True)
        if options.dry_run:
            return
        await request_adoption(client, imported)
        await wait_until_adopted(client, imported)
    name = imported.workload.metadata.name
    click.echo(f"{name} is adopted; its pods were not restarted and its rollout is paused", err=True)
    click.echo(f"next: pin resume {name}, or deploy its file: either replaces the pods by a rollout", err=True)


def _parse_deployment_name(text: str) -> str:
    kind, slash, name = text.partition("/")
    if not slash or kind.lower() not in _DEPLOYMENT_KINDS or not name:
        what = f"only Deployments can be imported, not '{text}'" if slash else f"'{text}' names no kind"
        raise Refused(Problem(USAGE, what, next=f"pin import deployment/{name or kind}"))
    return name


def _cluster_access(target: Target) -> Access:
    """Access the cluster directly: a desk sees only workloads, and the Deployment is none yet."""
    if target.bypasses_desk:
        return load_kubeconfig(target.kubeconfig or default_kubeconfig(), target.context)
    return load_kubeconfig(read_context(Path(setting_value("state")), target.name).kubeconfig)


def _output_document(text: str, options: ImportOptions) -> None:
    if options.file is None:
        click.echo(text, nl=False)
        return
    if options.file.exists() and options.file.read_text() != text:
        what = f"{options.file} exists with other content"
        raise Refused(Problem(USAGE, what, next="remove it, or give another path"))
    options.file.write_text(text)
    click.echo(f"{options.file} written ({text.count(chr(10))} lines)", err=True)


def _format_differences(imported: DeploymentImport) -> Iterator[str]:
    if imported.differences:
        yield "differences, once its pods are replaced:"
        yield from (f"  {each}" for each in imported.differences)
    if imported.untouched:
        yield f"left unchanged: {', '.join(imported.untouched)}"


def _adoption_steps(imported: DeploymentImport) -> Iterator[str]:
    """Describe each step of the adoption in order; the first two are the CLI's, the others the operator's."""
    deployment, *others = imported.adopted
    metadata = imported.workload.metadata
    kept = [object_label(each) for each in others if each["metadata"]["name"] == metadata.name]
    replaced = [object_label(each) for each in others if each["metadata"]["name"] != metadata.name]
    yield f"label with the workload's name: {', '.join(map(object_label, imported.adopted))}, its ReplicaSets"
    yield f"create PinterestService/{metadata.name} with a paused rollout; the operator does the rest"
    yield f"delete {object_label(deployment)} without its pods, and create it again, paused"
    yield "the new Deployment adopts its ReplicaSets, which are then labelled, with their pods"
    if imported.created:
        yield f"create {', '.join(imported.created)}"
    if kept:
        yield f"adopt in use: {', '.join(kept)}"
    if replaced:
        yield f"delete, as the workload has its own: {', '.join(replaced)}"
