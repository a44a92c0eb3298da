"""The adapter for a kubeconfig: documents are checked here, and written straight to Kubernetes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar

from pincompute.api.account import Account, Answer, Changed
from pincompute.api.admission import admit_all, admit_workload
from pincompute.api.change import Change
from pincompute.api.documents import Document, read, read_one
from pincompute.api.entering import Inside
from pincompute.api.fleet import Rolling
from pincompute.api.glass import Wish
from pincompute.api.logs import Said, Wanted
from pincompute.api.names import HAND
from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.provenance import ProvenanceAccount
from pincompute.api.receipt import Outcome, Receipt
from pincompute.api.summary import Summary
from pincompute.api.tenancy import Tenancy
from pincompute.api.whoami import Whoami
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import USAGE
from pincompute.cli.port import Port
from pincompute.controller.fleet import Fleets
from pincompute.controller.log_store import log_store_within
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.kube.execution import Execution
from pincompute.kube.forwarding import Forwarding
from pincompute.kube.kubeconfig import load

T = TypeVar("T")


class ClusterPort:
    """As the desk does it, but for the record."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._workloads = Workloads(client)
        self.all = self._workloads.all
        self.find = self._workloads.find
        self.watch = self._workloads.watch
        self.follow = self._workloads.follow
        self.delete = self._workloads.delete
        self.projects = self._workloads.tenants
        fleets = Fleets(client)
        self.fleet, self.copies, self.follow_roll = fleets.fleet, fleets.copies, fleets.follow_roll
        self._fleets = fleets

    async def submit(self, text: str, file: str, project: str, wish: Wish | None = None) -> Summary:
        if wish:
            raise _needs_desk("the desk breaks the glass, and keeps who did and why")
        return await self._workloads.write(admit_workload(read_one(text, file), project), manager=HAND)

    async def submit_set(self, given: Sequence[Document], project: str, wish: Wish | None = None) -> list[Outcome]:
        """Nothing here takes several at once: all are planned and tried first, and then each is written."""
        if wish:
            raise _needs_desk("the desk breaks the glass, and keeps who did and why")
        workloads = admit_all(given, project, admit_workload)
        told = await self._workloads.foretell(workloads, SystemClock().now())
        refuse_all(Problem.of(said) for each in told for said in each.refused)
        # A plan asks whether each could be made: what only a change is refused for, an apply says.
        tried = await asyncio.gather(*(_or_refused(self._workloads.rehearse(each, manager=HAND)) for each in workloads))
        refuse_all(problem for each in tried if isinstance(each, Refused) for problem in each.problems)
        writes = ((each, self._workloads.write(each, manager=HAND)) for each in workloads)
        return [_outcome(each, await _or_refused(write)) for each, write in writes]

    async def deploy(self, project: str, name: str, version: str, wish: Wish | None = None) -> Summary:
        raise _needs_desk(f"{project}/{name} {version} is deployed by the desk, which reads the artifact store")

    async def plan_build(self, project: str, name: str, version: str) -> BuildPreview:
        raise _needs_desk(f"{project}/{name} {version} is planned by the desk, which reads the artifact store")

    async def whoami(self) -> Whoami:
        raise _needs_desk("the desk knows who you are to it; to a cluster: kubectl auth whoami")

    async def project(self, name: str) -> Tenancy:
        return await self._workloads.tenancy(name, SystemClock().now())

    async def provenance(self, project: str, name: str) -> ProvenanceAccount:
        raise _needs_desk(f"the desk knows where {project}/{name} comes from")

    async def plan(self, text: str, project: str) -> list[Preview]:
        return await self._workloads.foretell(admit_all(read(text), project), SystemClock().now())

    async def account(self, project: str, name: str) -> Account:
        return await self._workloads.account(project, name, SystemClock().now())

    async def why(self, project: str, name: str) -> Answer:
        return await self._workloads.why(project, name, SystemClock().now())

    async def change(self, project: str, name: str, change: Change) -> Changed:
        return await self._workloads.amend(project, name, change, manager=HAND)

    async def change_roll(self, number: int, change: dict[str, Any]) -> Rolling:
        return await self._fleets.roll(number, change, manager=HAND)

    async def logs(self, project: str, name: str, wanted: Wanted) -> AsyncGenerator[Said]:
        async with (
            log_store_within(self._client) as store,
            aclosing(Workloads(self._client, store).logs(project, name, wanted)) as lines,
        ):
            async for each in lines:
                yield each

    @asynccontextmanager
    async def enter(self, project: str, name: str, inside: Inside) -> AsyncGenerator[Execution]:
        async with self._workloads.enter(await self.find(project, name), inside) as execution:
            yield execution

    @asynccontextmanager
    async def reach(self, project: str, name: str, copy: str, port: int) -> AsyncGenerator[Forwarding]:
        async with self._workloads.reach(await self.find(project, name), copy, port) as line:
            yield line

    async def images(self) -> list[str]:
        """A cluster does not say what its registries hold."""
        return []


@asynccontextmanager
async def cluster_port(kubeconfig: str, context: str) -> AsyncIterator[Port]:
    async with Client(load(kubeconfig, context), agent="pin") as client:
        yield ClusterPort(client)


async def _or_refused(work: Awaitable[T]) -> T | Refused:
    try:
        return await work
    except Refused as refused:
        return refused


def _outcome(workload: Workload, became: Summary | Refused) -> Outcome:
    """As a desk would tell it, which keeps a record."""
    refused = isinstance(became, Refused)
    receipt = Receipt(
        id="", at="", who="", project=workload.metadata.namespace, kind=workload.kind, name=workload.metadata.name,
        verb="deploy", state="refused" if refused else "delivered", url="",
        errors=became.json()["errors"] if refused else [],
    )  # fmt: skip
    return Outcome(receipt, None if refused else became)


def _needs_desk(what: str) -> Refused:
    return Refused(Problem(USAGE, f"{what}: there is none on this way", next="leave --kubeconfig and --context out"))
