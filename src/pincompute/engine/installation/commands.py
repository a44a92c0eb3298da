"""The commands `pin install` and `pin uninstall`."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click
import yaml

from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import DESK, SYSTEM_NAMESPACE
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.progress import Progress
from pincompute.base.reasons import NOT_INSTALLED, USAGE
from pincompute.base.settings import setting_value
from pincompute.engine.installation import permissions
from pincompute.engine.installation.cluster_inspection import (
    ClusterState,
    find_problems,
    inspect_cluster,
    resolve_config,
)
from pincompute.engine.installation.desk import CertificatePair, apply_certificate, missing_secrets
from pincompute.engine.installation.install import apply_and_wait, apply_objects, install_project, superfluous_objects
from pincompute.engine.installation.objects import (
    MAXIMAL_CONFIG,
    VERSION,
    InstallConfig,
    platform_objects,
    survives_uninstall,
)
from pincompute.engine.installation.options import DeskRequest, desk_options
from pincompute.engine.installation.runtime import install_runtimes
from pincompute.engine.installation.uninstall import list_own_objects, uninstall as uninstall_platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import default_kubeconfig, load_kubeconfig
from pincompute.objects.content import Object, object_label
from pincompute.objects.image import parse_image

_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?")

F = TypeVar("F", bound=Callable[..., Any])


class ClusterTarget(NamedTuple):
    """The cluster that a command works on."""

    kubeconfig: str
    context: str

    def client(self) -> Client:
        return Client(load_kubeconfig(self.kubeconfig or default_kubeconfig(), self.context), agent="pin")

    @property
    def as_options(self) -> str:
        """The options that select this cluster, for commands that messages suggest."""
        values = {"--kubeconfig": self.kubeconfig, "--context": self.context}
        return "".join(f" {option} {value}" for option, value in values.items() if value)


def _to_cluster(command: F) -> F:
    """Add the options that select the cluster. The command gets a ClusterTarget, and `ask`: whether to confirm."""

    @wraps(command)
    def gathered(kubeconfig: str, context: str, yes: bool, **others: Any) -> Any:
        return command(ClusterTarget(kubeconfig, context), ask=not yes and sys.stdin.isatty(), **others)

    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation."),
        click.option("--context", default="", help="Context of the kubeconfig. Default: its current context."),
        click.option("--kubeconfig", default="", help="Kubeconfig file. Default: as for kubectl."),
    ):
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]


def _image(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        if value:
            parse_image(value)
    except ValueError as error:
        raise click.BadParameter(f"'{value}': {error}") from error
    return value


def _domain(_: click.Context, __: click.Parameter, value: str) -> str:
    if value and not _DOMAIN.fullmatch(value):
        raise click.BadParameter(f"'{value}': must be a host name with an optional port, such as apps.example.com:8080")
    return value


@click.command()
@_to_cluster
@click.option(
    "--image",
    default="",
    callback=_image,
    metavar="REF",
    help="Image of the platform, as the nodes of the cluster pull it.",
)
@click.option(
    "--domain", default="", callback=_domain, metavar="HOST[:PORT]", help="Host and port of the cluster's ingress."
)
@click.option("--runtime", is_flag=True, help="Create runtimes 1 and 2, which give workloads identity and logs.")
@click.option(
    "--pod-logs", default="", metavar="FOLDER", help="Folder of container logs on the nodes. Default: /var/log/pods."
)
@click.option("--dry-run", is_flag=True, help="Print the objects that would be applied, and change nothing.")
@desk_options
def install(target: ClusterTarget, image: str, domain: str, pod_logs: str, asked: DeskRequest, **how: bool) -> None:
    """Install the platform on an existing cluster, or upgrade it to this version.

    Prints its plan first, and on a terminal asks for confirmation. Running workloads are not interrupted.
    """

    def resolve(cluster: ClusterState) -> InstallConfig:
        return resolve_config(cluster, image, domain, pod_logs, asked.desk)

    asyncio.run(_install(target, resolve, asked.pair, domain_given=bool(domain), **how))


@click.command()
@_to_cluster
@click.option("--workloads", is_flag=True, help="Also delete all workloads, projects and kinds.")
def uninstall(target: ClusterTarget, *, ask: bool, workloads: bool) -> None:
    """Remove the platform from a cluster. Workloads keep running.

    A later `pin install` manages them again without recreating a pod.
    """
    asyncio.run(_uninstall(target, ask=ask, workloads=workloads))


async def _install(  # noqa: PLR0913  (the options of one command)
    target: ClusterTarget,
    resolve: Callable[[ClusterState], InstallConfig],
    pair: CertificatePair | None,
    *,
    domain_given: bool,
    ask: bool,
    dry_run: bool,
    runtime: bool,
) -> None:
    progress = Progress()
    async with target.client() as client:
        refuse_all(
            await permissions.missing_permissions(
                client, permissions.install_permissions(), platform_objects(InstallConfig())
            )
        )
        cluster = await inspect_cluster(client, platform_objects(MAXIMAL_CONFIG))
        config = resolve(cluster)
        wanted = platform_objects(config)
        if config.desk.address:
            refuse_all(await permissions.missing_permissions(client, permissions.desk_permissions(), wanted))
        refuse_all(find_problems(cluster, wanted, runtime=runtime))
        if cluster.installed_objects and not cluster.cluster_facts and not domain_given:
            # The recorded domain was deleted with the platform. It is not guessed, as another one would change the
            # address of every service.
            what = "--domain is required: the platform was uninstalled here, and the domain of its services is unknown"
            raise Refused(Problem(USAGE, what, next=f"pin install{target.as_options} --domain HOST[:PORT]"))
        progress.echo(_cluster_line(cluster))
        progress.echo(_install_plan(cluster, wanted, config))
        if dry_run:
            click.echo(yaml.safe_dump_all(wanted, sort_keys=False, explicit_start=True), nl=False)
            return
        if config.desk.address:
            refuse_all(await missing_secrets(client, config.desk, paired=bool(pair)))
        if ask:
            click.confirm("Upgrade?" if cluster.has_operator else "Install?", abort=True, err=True)
        if pair:
            await apply_objects(client, [each for each in wanted if each["kind"] == "Namespace"])
            await apply_certificate(client, pair)
        await apply_and_wait(client, cluster, wanted, progress)
        project = await install_project(client, setting_value("project"), "kubectl describe project")
        prepared = runtime and not await _create_runtimes(client, config)
    port = "" if config.port == 80 else f":{config.port}"
    mine = "" if project == setting_value("project") else f" --project {project}"
    there = target.as_options or " --kubeconfig " + default_kubeconfig()
    click.echo(f"PinCompute {VERSION} is installed; services answer at http://NAME.{project}.{config.domain}{port}")
    if prepared:
        click.echo(f"existing workloads have no runtime yet; to roll out runtime 1: pin runtime roll 1{there}")
    if config.desk.address:
        click.echo(f"route {config.desk.address} to the desk: Service {DESK}, namespace {SYSTEM_NAMESPACE}")
        login = f"pin login {config.desk.address} --name {config.name}"
        people = any(name == "issuer" for name, _ in config.desk.options)
        click.echo(
            f"next: {login}"
            if people
            else f"next: PIN_TOKEN=FILE {login}        (sign-in of people needs --desk-word issuer=…)"
        )
    else:
        click.echo(f"next: pin deploy hello --image hello:dev --port 8080{mine}{there}")


async def _create_runtimes(client: Client, config: InstallConfig) -> bool:
    """Create the bundled runtimes; return whether one is rolled out.

    They are rolled out at once only on a cluster without workloads, where no pod is replaced by it.
    """
    work = await list_own_objects(client)
    idle = not any(work[each] for each in WORKLOADS)
    await install_runtimes(client, config.image, rolled=idle)
    return idle or bool(work["Runtime"])


async def _uninstall(target: ClusterTarget, *, ask: bool, workloads: bool) -> None:
    progress = Progress()
    async with target.client() as client:
        refuse_all(
            await permissions.missing_permissions(client, permissions.uninstall_permissions(workloads=workloads))
        )
        cluster = await inspect_cluster(client, [])
        if not cluster.installed_objects:
            what = f"PinCompute is not installed on {cluster.server}"
            raise Refused(Problem(NOT_INSTALLED, what, next="--context OTHER, for another cluster"))
        work = await list_own_objects(client)
        uses_runtime = bool(work["Runtime"])
        count = sum(len(work[each]) for each in WORKLOADS)
        progress.echo(_cluster_line(cluster))
        progress.echo(
            _uninstall_plan(cluster, count, len(work["Project"]), workloads=workloads, uses_runtime=uses_runtime)
        )
        if ask:
            click.confirm("Uninstall?", abort=True, err=True)
        await uninstall_platform(client, cluster, progress, workloads=workloads, uses_runtime=uses_runtime)
    if workloads:
        click.echo("PinCompute, its workloads and projects are removed")
    else:
        click.echo(f"PinCompute is removed; {_counted(count, 'workload')} still running")
        click.echo(f"to reinstall:               pin install{target.as_options}{_reinstall_options(cluster)}")
        click.echo(f"to remove workloads, too:   pin uninstall --workloads{target.as_options}")


def _cluster_line(cluster: ClusterState) -> str:
    return f"cluster {cluster.server}: Kubernetes {cluster.version}, user {cluster.user}, context {cluster.context}"


def _install_plan(cluster: ClusterState, wanted: list[Object], config: InstallConfig) -> str:
    """The plan of an installation."""
    there = {object_label(each) for each in cluster.installed_objects}
    new = [each for each in wanted if object_label(each) not in there]
    gone = superfluous_objects(cluster, wanted)
    if cluster.has_operator:
        head = f"upgrade PinCompute {cluster.installed_version} to {VERSION}"
    elif cluster.installed_objects:
        head = f"install PinCompute {VERSION}, managing the workloads of {cluster.installed_version} again"
    else:
        head = f"install PinCompute {VERSION}"
    desk = (
        f"desk: {config.desk.address}"
        if config.desk.address
        else "desk: none; without one, projects with `review: landed` accept no workloads; add --desk https://…"
    )
    counts = f"{len(new)} objects to create, {len(wanted) - len(new)} to keep or change, {len(gone)} to delete"
    support = (
        "with signer and log store"
        if config.runtime_support
        else "without signer and log store, as this cluster has no pod certificates"
    )
    operators = f"2 operator replicas of {config.image} in {SYSTEM_NAMESPACE}, {support}"
    return f"{head}: {operators}\n  {desk}\n  {counts}; print them with --dry-run"


def _uninstall_plan(cluster: ClusterState, count: int, projects: int, *, workloads: bool, uses_runtime: bool) -> str:
    """The plan of a removal."""
    staying = [each for each in cluster.installed_objects if survives_uninstall(each, uses_runtime=False)]
    work = f"{_counted(count, 'workload')} and {_counted(projects, 'project')}"
    if workloads:
        return f"to remove: the platform, {work}, and everything in them"
    kinds = f"{len(staying)} CRDs, priority classes and roles that they need"
    if cluster.has_desk_record:
        kinds += ", the desk's database"
    if uses_runtime:
        removed = "the operator and the desk" if cluster.desk.address else "the operator"
        return f"to remove: {removed}\nto keep: {work}, running, {kinds}, and the signer and log store of their pods"
    return f"to remove: the platform\nto keep: {work}, running, and {kinds}"


def _reinstall_options(cluster: ClusterState) -> str:
    """The options that install the same platform again."""
    if not cluster.has_operator:
        return " --domain HOST[:PORT]"
    config = resolve_config(cluster, "", "")
    image = "" if config.image == InstallConfig().image else f" --image {config.image}"
    logs = "" if config.pod_logs == InstallConfig().pod_logs else f" --pod-logs {config.pod_logs}"
    return f"{image} --domain {config.domain}:{config.port}{logs}{config.desk.as_options()}"


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"
