"""The desk as a process."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from pincompute.api.policy import Policy
from pincompute.api.whoami import SCOPES
from pincompute.base import log as logs
from pincompute.base.ids import Ids, RandomIds
from pincompute.base.memory import keep_much
from pincompute.controller.fleet import Fleets
from pincompute.controller.log_store import LogStore, log_store
from pincompute.controller.workloads import Workloads
from pincompute.kube.artifacts import open_store
from pincompute.kube.client import Client
from pincompute.kube.in_cluster import load_or_in_cluster
from pincompute.submission.bookkeeper import Bookkeeper
from pincompute.submission.builds import Builds
from pincompute.submission.carrier import Carrier
from pincompute.submission.connections import listening
from pincompute.submission.credentials import GIT, STORE, Credentials
from pincompute.submission.database import Database, open_database
from pincompute.submission.desk import Desk
from pincompute.submission.kubernetes import Kubernetes
from pincompute.submission.people.settings import People
from pincompute.submission.policies import Policies, read_policies
from pincompute.submission.repository import Repositories
from pincompute.submission.server import application
from pincompute.submission.shift import serve
from pincompute.submission.turns import Limits

FILE = click.Path(path_type=Path)
TURN = 0.0005
"""Seconds after which a thread gives way. The record's asks for its turn when the disk is done: while the loop turns
many away, it would wait ten times as long."""


@click.command()
@click.option("--kubeconfig", type=FILE, help="Whose rights to act with; in a pod its own.")
@click.option("--listen", default="127.0.0.1:0", help="Address and port.", show_default=True)
@click.option("--token-file", type=FILE, help="What shows who is here; nobody is by default.")
@click.option("--person", default="me", help="Who that is; they administer the platform.", show_default=True)
@click.option("--issuer", default="", help="The OpenID provider that signs people in: https://…")
@click.option("--client", default="pin", help="What they sign in as, there.", show_default=True)
@click.option("--scopes", default=SCOPES, help="What they ask for, there.", show_default=True)
@click.option("--name-claim", default="email", help="What of its token is a person's name.", show_default=True)
@click.option("--groups-claim", default="groups", help="And what their groups.", show_default=True)
@click.option("--administrators", default="", help="The group of those who administer the platform.")
@click.option("--tls-certificate", type=FILE, help="The desk's own, with those between it and a root.")
@click.option("--tls-key", type=FILE, help="Its key.")
@click.option("--client-roots", type=FILE, help="By which the certificates of programs are known.")
@click.option("--trust-domain", default="", help="Of their SPIFFE IDs.")
@click.option("--log-store", default="", help="Where lines are kept; nowhere by default.")
@click.option(
    "--database",
    required=True,
    envvar="PIN_DATABASE",
    help="Where the record is kept: a file, or postgresql://…; PIN_DATABASE, where nobody else is to read it.",
)
@click.option("--folder", type=FILE, required=True, help="Where it keeps what it reads again.")
@click.option("--policies", type=FILE, help="What all work must keep: a file of policies.")
@click.option("--artifacts", default="", help="Where builds are: https://…/artifactory/REPOSITORY, or its folder.")
@click.option("--credentials", type=FILE, help=f"A folder of what it shows there and to git: {STORE}, {GIT}.")
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    default=Limits().rate,
    show_default=True,
    help="Requests a second that one client may send over time; 0 bounds nobody.",
)
def desk(token_file: Path | None, **words: Any) -> None:
    """Run the submission service."""
    logs.configure(process="desk")
    keep_much()
    sys.setswitchinterval(TURN)
    token = token_file.read_text().strip() if token_file else ""
    words["people"] = People(token, **{each: words.pop(each) for each in People.asked()})
    asyncio.run(_run(Words(**words)))


class Words(NamedTuple):
    """What it was started with."""

    kubeconfig: Path | None
    listen: str
    people: People
    log_store: str
    database: str
    folder: Path
    artifacts: str
    credentials: Path | None
    policies: Path | None
    rate: float


async def _run(words: Words) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    access = load_or_in_cluster(words.kubeconfig)
    policies = read_policies(words.policies.read_text(), str(words.policies)) if words.policies else ()
    database = await open_database(words.database)
    async with Client(access, agent="desk") as client, AsyncExitStack() as stack:
        # By the same certificate that it has for the cluster.
        lines = await stack.enter_async_context(log_store(words.log_store, access.tls())) if words.log_store else None
        # Who publishes has a token of their own; the desk only reads.
        shown = Credentials(words.credentials)
        where = words.artifacts or str(words.folder / "artifacts")
        store = await stack.enter_async_context(open_store(where, shown.of_store))
        builds = Builds(store, Repositories(words.folder / "repositories", shown))
        desk = await stack.enter_async_context(at_work(database, client, builds, lines, policies=policies))
        door, sign_in = words.people.door(client), words.people.sign_in()
        app = application(desk, Fleets(client), door, sign_in, Limits(words.rate))
        host, _, port = words.listen.rpartition(":")
        async with listening(app, host, int(port), words.people.tls()):
            await stop.wait()
    await database.close()


@asynccontextmanager
async def at_work(  # noqa: PLR0913  (those it works with)
    database: Database,
    client: Client,
    builds: Builds,
    lines: LogStore | None = None,
    *,
    ids: Ids | None = None,
    policies: tuple[Policy, ...] = (),
) -> AsyncGenerator[Desk]:
    """A desk with all that works for it: who watches its platform, who keeps the ledger, and who carries."""
    clock = client.clock
    platform = Kubernetes(client)
    books = Bookkeeper(database, platform, clock)
    carrier = Carrier(database, platform, books, clock, client.chance)
    watching = asyncio.create_task(platform.run())
    working = asyncio.create_task(serve(partial(database.shift, platform.name), (carrier.run, books.run)))
    try:
        if not database.shared:
            # Before a file there is one desk: what it accepts is carried by nobody else.
            await carrier.begun.wait()
        workloads, asked = Workloads(client, lines, platform.kind_of), Policies(policies, database, platform.name)
        yield Desk(database, carrier, workloads, builds, clock=clock, ids=ids or RandomIds(), policies=asked)
    finally:
        for each in (working, watching):
            each.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)
