"""`pin install` and `pin uninstall`: the platform on a cluster that exists, in one command each."""

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
from pincompute.api.names import DESK, SYSTEM
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import NOT_INSTALLED, USAGE
from pincompute.base.settings import setting
from pincompute.engine.installation import rights
from pincompute.engine.installation.contents import EVERYTHING, VERSION, Words, contents, stays
from pincompute.engine.installation.desk import Pair, give, lacking
from pincompute.engine.installation.install import bring, first_project, superfluous, write
from pincompute.engine.installation.look import Seen, look, problems, settled
from pincompute.engine.installation.runtime import bring as bring_runtimes
from pincompute.engine.installation.said import Asked, of_a_desk
from pincompute.engine.installation.uninstall import census
from pincompute.engine.installation.uninstall import uninstall as take_away
from pincompute.engine.progress import Progress
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load, usual
from pincompute.objects.content import Object, identity
from pincompute.objects.image import parse

_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[1-9][0-9]{0,4})?")

F = TypeVar("F", bound=Callable[..., Any])


class Way(NamedTuple):
    """To which cluster, and how a person says so once more."""

    kubeconfig: str
    context: str

    def client(self) -> Client:
        return Client(load(self.kubeconfig or usual(), self.context), agent="pin")

    @property
    def words(self) -> str:
        said = {"--kubeconfig": self.kubeconfig, "--context": self.context}
        return "".join(f" {option} {value}" for option, value in said.items() if value)


def _to_cluster(command: F) -> F:
    """The options that say where; the command gets them as one value, `way`, and whether it is to ask."""

    @wraps(command)
    def gathered(kubeconfig: str, context: str, yes: bool, **others: Any) -> Any:
        return command(Way(kubeconfig, context), ask=not yes and sys.stdin.isatty(), **others)

    for option in (
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option("--context", default="", help="The context of the kubeconfig."),
        click.option("--kubeconfig", default="", help="The cluster; that of kubectl unless you say so."),
    ):
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]


def _image(_: click.Context, __: click.Parameter, said: str) -> str:
    try:
        if said:
            parse(said)
    except ValueError as error:
        raise click.BadParameter(f"'{said}': {error}") from error
    return said


def _domain(_: click.Context, __: click.Parameter, said: str) -> str:
    if said and not _DOMAIN.fullmatch(said):
        raise click.BadParameter(f"'{said}' is no host name, with or without a port, such as apps.example.com:8080")
    return said


@click.command()
@_to_cluster
@click.option(
    "--image",
    default="",
    callback=_image,
    metavar="REF",
    help="The platform's own image, as the cluster's nodes pull it.",
)
@click.option("--domain", default="", callback=_domain, metavar="HOST[:PORT]", help="Under which its ingress answers.")
@click.option("--runtime", is_flag=True, help="Give workloads identity and logs, as runtimes 1 and 2.")
@click.option("--pod-logs", default="", metavar="FOLDER", help="Where nodes keep what containers print; /var/log/pods.")
@click.option("--dry-run", is_flag=True, help="Print what would be applied, and do nothing.")
@of_a_desk
def install(way: Way, image: str, domain: str, pod_logs: str, asked: Asked, **how: bool) -> None:
    """Bring the platform to a cluster that exists, or the one there to this version.

    It says first what it makes, and on a terminal it asks. Nothing that runs on the cluster notices.
    """

    def settle(seen: Seen) -> Words:
        return settled(seen, image, domain, pod_logs, asked.desk)

    asyncio.run(_install(way, settle, asked.pair, said=bool(domain), **how))


@click.command()
@_to_cluster
@click.option("--workloads", is_flag=True, help="End all work and all projects too, and leave nothing behind.")
def uninstall(way: Way, *, ask: bool, workloads: bool) -> None:
    """Take the platform off a cluster; its workloads go on running.

    A new `pin install` takes them up again, and nothing is made anew.
    """
    asyncio.run(_uninstall(way, ask=ask, workloads=workloads))


async def _install(  # noqa: PLR0913  (they are the words of one command)
    way: Way, settle: Callable[[Seen], Words], pair: Pair | None, *, said: bool, ask: bool, dry_run: bool, runtime: bool
) -> None:
    progress = Progress()
    async with way.client() as client:
        refuse_all(await rights.missing(client, rights.to_install(), contents(Words())))
        seen = await look(client, contents(EVERYTHING))
        words = settle(seen)
        wanted = contents(words)
        if words.desk.address:
            refuse_all(await rights.missing(client, rights.for_a_desk(), wanted))
        refuse_all(problems(seen, wanted, runtime=runtime))
        if seen.ours and not seen.facts and not said:
            # What went with the platform is not guessed: another domain would be another address of every service.
            what = "the platform was here before, and under which domain its services answer went with it"
            raise Refused(Problem(USAGE, what, next=f"pin install{way.words} --domain HOST[:PORT]"))
        progress.say(_met(seen))
        progress.say(_told(seen, wanted, words))
        if dry_run:
            click.echo(yaml.safe_dump_all(wanted, sort_keys=False, explicit_start=True), nl=False)
            return
        if words.desk.address:
            refuse_all(await lacking(client, words.desk, paired=bool(pair)))
        if ask:
            click.confirm(f"{'Upgrade' if seen.runs else 'Install'} it?", abort=True, err=True)
        if pair:
            await write(client, [each for each in wanted if each["kind"] == "Namespace"])
            await give(client, pair)
        await bring(client, seen, wanted, progress)
        project = await first_project(client, setting("project"), "kubectl describe project")
        prepared = runtime and not await _given_runtime(client, words)
    port = "" if words.port == 80 else f":{words.port}"
    mine = "" if project == setting("project") else f" --project {project}"
    there = way.words or " --kubeconfig " + usual()
    click.echo(f"PinCompute {VERSION} runs there; services answer at http://NAME.{project}.{words.domain}{port}")
    if prepared:
        click.echo(f"the workloads that are there get runtime 1 when you say so: pin runtime roll 1{there}")
    if words.desk.address:
        click.echo(f"its desk is the Service {DESK} in {SYSTEM}: have {words.desk.address} lead there")
        login = f"pin login {words.desk.address} --name {words.name}"
        people = any(name == "issuer" for name, _ in words.desk.words)
        click.echo(
            f"next: {login}" if people else f"next: PIN_TOKEN=FILE {login}        (--desk-word issuer=… for people)"
        )
    else:
        click.echo(f"next: pin deploy hello --image hello:dev --port 8080{mine}{there}")


async def _given_runtime(client: Client, words: Words) -> bool:
    """Whether everybody has it: nobody is disturbed where nobody is."""
    work = await census(client)
    idle = not any(work[each] for each in WORKLOADS)
    await bring_runtimes(client, words.image, rolled=idle)
    return idle or bool(work["Runtime"])


async def _uninstall(way: Way, *, ask: bool, workloads: bool) -> None:
    progress = Progress()
    async with way.client() as client:
        refuse_all(await rights.missing(client, rights.to_remove(workloads=workloads)))
        seen = await look(client, [])
        if not seen.ours:
            what = f"`pin install` made nothing on {seen.server}"
            raise Refused(Problem(NOT_INSTALLED, what, next="--context OTHER, if you meant another cluster"))
        work = await census(client)
        served = bool(work["Runtime"])
        count = sum(len(work[each]) for each in WORKLOADS)
        progress.say(_met(seen))
        progress.say(_going(seen, count, len(work["Project"]), workloads=workloads, served=served))
        if ask:
            click.confirm("Remove it?", abort=True, err=True)
        await take_away(client, seen, progress, workloads=workloads, served=served)
    if workloads:
        click.echo("PinCompute and all that it ran are gone")
    else:
        click.echo(f"PinCompute is gone; {_counted(count, 'workload')} running as before")
        click.echo(f"to have it back:   pin install{way.words}{_as_it_was(seen)}")
        click.echo(f"to end those too:  pin uninstall --workloads{way.words}")


def _met(seen: Seen) -> str:
    """Whose cluster it is."""
    return f"{seen.server} is Kubernetes {seen.version}; you are {seen.user} there (context {seen.context})"


def _told(seen: Seen, wanted: list[Object], words: Words) -> str:
    """What is about to be made."""
    there = {identity(each) for each in seen.ours}
    new = [each for each in wanted if identity(each) not in there]
    gone = superfluous(seen, wanted)
    if seen.runs:
        head = f"PinCompute {seen.installed} is there, and becomes {VERSION}"
    elif seen.ours:
        head = f"PinCompute {VERSION} is installed, and takes up what {seen.installed} left"
    else:
        head = f"PinCompute {VERSION} is installed"
    desk = (
        f"a desk for {words.desk.address}"
        if words.desk.address
        else "no desk: a project that takes only what landed takes nothing; --desk https://… brings one"
    )
    counts = f"{len(new)} objects made, {len(wanted) - len(new)} as they are or changed, {len(gone)} removed"
    said = (
        "and who signs for pods and keeps their logs"
        if words.support
        else "alone: pods are given no certificates there"
    )
    return f"{head}: two operators of {words.image} in {SYSTEM}, {said}\n  {desk}\n  {counts}; see them with --dry-run"


def _going(seen: Seen, count: int, projects: int, *, workloads: bool, served: bool) -> str:
    """What is about to go, and what stays."""
    staying = [each for each in seen.ours if stays(each, served=False)]
    work = f"{_counted(count, 'workload')} and {_counted(projects, 'project')}"
    if workloads:
        return f"goes: the platform, {work} with all that is in them"
    kinds = f"{len(staying)} kinds, priorities and roles that they need"
    if seen.recorded:
        kinds += ", the desk's record"
    if served:
        goes = "the operator and the desk" if seen.desk.address else "the operator"
        return f"goes: {goes}\nstays: {work}, running, {kinds}, and who signs for its pods and keeps their logs"
    return f"goes: the platform\nstays: {work}, running, and {kinds}"


def _as_it_was(seen: Seen) -> str:
    """The words that bring the same platform back."""
    if not seen.runs:
        return " --domain HOST[:PORT]"
    words = settled(seen, "", "")
    image = "" if words.image == Words().image else f" --image {words.image}"
    logs = "" if words.pod_logs == Words().pod_logs else f" --pod-logs {words.pod_logs}"
    return f"{image} --domain {words.domain}:{words.port}{logs}{words.desk.typed()}"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
