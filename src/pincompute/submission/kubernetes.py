"""Kubernetes as a platform: the one place of the desk that knows it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

import msgspec

from pincompute.api.account import Changed
from pincompute.api.change import Change
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import DESK, SUBMISSION
from pincompute.api.noun import NAME_PATTERN
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import CLUSTER_UNREACHABLE
from pincompute.base.recent import Recent
from pincompute.controller.amend import amended
from pincompute.controller.census import Census
from pincompute.controller.resources import NOUNS
from pincompute.controller.workloads import Workloads, made_anew
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Conflict, NotFound, Unproven, Unreachable, Unreadable
from pincompute.planning.people.edits import carried, summarized
from pincompute.planning.people.preview import first, settled
from pincompute.planning.people.summary import summarize
from pincompute.planning.quotas.footprint import Footprint, Place, footprint, held, nodes
from pincompute.submission.due import Due
from pincompute.submission.platform import Away, Delivered, Edit, Order, Remove, Rendered, Seen, Sight, Write

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that a cluster has to show what it has, before a person is told that it does not answer."""


def _or_away(ask: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """What the cluster says of the object is a refusal; that it cannot say anything just now is none."""

    @wraps(ask)
    async def asked(*args: P.args, **words: P.kwargs) -> T:
        try:
            return await ask(*args, **words)
        except ApiError as error:
            if _says_no(error):
                raise
            raise Away(error.problem(), answered=error.status == 500) from error

    return asked


FORESEEN = 1024
"""Workloads that were rendered, of which it is remembered what they will hold: not all are accepted, and ever seen."""


class _Looked(NamedTuple):
    """What somebody holds was thought out before: it is asked as soon as it was seen, and again when it was written."""

    workload: Workload
    around: int
    footprint: Footprint


class Kubernetes:
    """One cluster, by its name."""

    def __init__(self, client: Client, name: str = "main") -> None:
        self.name = name
        self._client = client
        self._census = Census(client)
        self._workloads = Workloads(client, kind_of=self.kind_of)
        self._due = Due(self._census)
        self._taken = asyncio.Event()
        self._looked: dict[Place, _Looked] = {}
        self._foreseen: Recent[Place, _Looked] = Recent(FORESEEN)
        """What was rendered last, to be seen soon as it was foreseen."""
        self._sent: set[Place] = set()
        """Where something was sent to that may not have been seen yet: whether it is there has to be asked."""

    @_or_away
    async def render(self, workload: Workload, pending: Workload | None) -> Rendered:
        place = Place.of(workload)
        project = await self.project(place.project)
        whole = carried(pending or self._census.find(place), workload)
        made = _as_made(whole)
        planned = settled(self._census.snapshot(made))
        refuse_all(
            each if str(each.where) else each._replace(where=Where(object=workload.metadata.place))
            for each in planned.problems
        )
        asked = footprint(planned, max(1, nodes(self._census.find(place) or whole)))
        self._foreseen.note(place, _Looked(made, self._census.around, asked))
        return Rendered(place, Write(_said(workload)), whole, asked, project)

    @_or_away
    async def amend(self, project: str, name: str, change: Change, pending: Workload | None) -> Rendered:
        whose = await self.project(project)
        workload = pending or await self._find(project, name)
        edit = await self._workloads.foresee(workload, change)
        whole = edit.workload
        return Rendered(Place.of(whole), Edit(change, tuple(edit.said)), whole, self._wants(whole), whose)

    @_or_away
    async def remove(self, project: str, name: str, uid: str, pending: Workload | None) -> Rendered:
        workload = pending or await self._find(project, name)
        # What is still on its way has no uid.
        return Rendered(Place.of(workload), Remove(uid or ("" if pending else workload.metadata.uid)))

    @_or_away
    async def deliver(self, submission: str, place: Place, order: Order) -> Delivered:
        match order:
            case Write(said):
                return await self._write(submission, place, msgspec.convert(said, WORKLOADS[place.kind]))
            case Edit():
                return await self._edit(submission, place, order)
            case Remove(uid):
                return await self._delete(place, uid)

    def kind_of(self, project: str, name: str) -> str:
        return self._census.kind_of(project, name)

    async def workloads(self, project: str) -> list[Workload]:
        if self._taken.is_set() and self._census.stands and await self._due.seen(project):
            if not (found := self._census.of(project)):
                await self._workloads.must_exist(project)
            return found
        return await self._workloads.whole(project)

    async def run(self) -> None:
        """For as long as the desk does."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._census.run())
            both.create_task(self._take())

    async def seen(self) -> None:
        await self._taken.wait()

    async def _take(self) -> None:
        while not self._taken.is_set():
            try:
                await self._census.taken()
                self._taken.set()
            except ApiError:
                await self._client.clock.sleep(1.0)

    async def observe(self) -> AsyncGenerator[Sight]:
        await self.seen()
        self._census.take()
        revisions = {kind: self._census.revision(kind) for kind in WORKLOADS}
        yield Sight(tuple(map(self.look, self._census.everybody())), whole=revisions)
        while True:
            await self._census.news.wait()
            yield Sight(tuple(map(self.look, sorted(self._census.take()))))

    def look(self, place: Place) -> Seen:
        workload, revision = self._census.find(place), self._census.revision(place.kind)
        known = self._looked.pop(place, None)
        if workload is None:
            return Seen(place, None, revision)
        around, foreseen = self._census.around, self._foreseen.pop(place, None)
        self._sent.discard(place)
        if known and known.workload is workload and known.around == around:
            found = known.footprint
        elif foreseen and foreseen.around == around and _is(workload, foreseen.workload):
            found = foreseen.footprint
        else:
            found = held(self._census.snapshot(workload))
        self._looked[place] = _Looked(workload, around, found)
        return Seen(place, found, revision)

    def _wants(self, whole: Workload) -> Footprint:
        return footprint(settled(self._census.snapshot(first(whole))), max(1, nodes(whole)))

    async def project(self, name: str) -> Project | None:
        """By whose quota; nothing is promised of a project that nobody has seen, and some have no more than a name."""
        await self._soon()
        if project := self._census.project(name):
            return project
        try:
            # Made just now, it may not have been seen.
            return msgspec.convert(await self._client.get(NOUNS[Project.__name__], name), Project)
        except NotFound:
            await self._workloads.must_exist(name)
            return None

    async def projects(self) -> Mapping[str, Project]:
        await self._soon()
        return self._census.projects

    async def reread(self, project: str) -> Project | None:
        if not re.fullmatch(NAME_PATTERN, project):
            return None
        try:
            return msgspec.convert(await self._client.get(NOUNS[Project.__name__], project), Project)
        except NotFound:
            return None

    async def _soon(self) -> None:
        """Return once all there is was seen; nobody waits for a cluster that has been silent for long."""
        if self._taken.is_set():
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await self.seen()
        except TimeoutError:
            what = f"the cluster {self.name} has not been seen since the desk began"
            raise Refused(Problem(CLUSTER_UNREACHABLE, what, next="pin status")) from None

    async def _find(self, project: str, name: str) -> Workload:
        """As it is; as it was last seen, where the cluster does not answer."""
        try:
            return await self._workloads.find(project, name)
        except ApiError as error:
            kind = self.kind_of(project, name)
            found: Workload | None = self._census.find(Place(project, kind, name)) if kind else None
            if _says_no(error) or found is None:
                raise
            return found

    async def _write(self, submission: str, place: Place, workload: Workload) -> Delivered:
        new = self._taken.is_set() and self._census.find(place) is None and place not in self._sent
        # Whether it was written is not known where no answer comes.
        self._sent.add(place)
        try:
            written = await self._workloads.put(_noted(workload, submission), manager=DESK, new=new)
        except Refused as refused:
            if new and (not isinstance(refused, ApiError) or _says_no(refused)):
                self._sent.discard(place)
            raise
        return self._delivered(summarize(written), place, written)

    async def _edit(self, submission: str, place: Place, order: Edit) -> Delivered:
        workload = await self._workloads.named(place.kind, place.project, place.name)
        if workload is None:
            workload = await self._workloads.find(place.project, place.name)
        if workload.metadata.annotations.get(SUBMISSION) == submission:
            told = Changed(summary=summarized(workload), said=list(order.said))
            return self._delivered(told, place, workload)
        done = await amended(self._client, workload, order.change, manager=DESK, submission=submission)
        return self._delivered(done.told, place, done.workload) if done.told.written else Delivered(done.told)

    def _delivered(self, answer: object, place: Place, written: Workload) -> Delivered:
        revision = int(written.metadata.resource_version)
        self._due.written(place, revision)
        return Delivered(answer, revision)

    async def _delete(self, place: Place, uid: str) -> Delivered:
        try:
            await self._client.delete(NOUNS[place.kind], place.name, place.project, uid=uid)
        except NotFound:
            # It was there when this was accepted.
            return Delivered(None)
        except Conflict as error:
            raise Refused(made_anew(place.project, place.name)) from error
        self._due.removed(place, uid)
        return Delivered(None)


def _as_made(workload: Workload) -> Workload:
    """As it will be when it is made, to the last byte but for who it is."""
    named = first(workload)
    return msgspec.structs.replace(named, metadata=msgspec.structs.replace(named.metadata, uid=str(UUID(int=0))))


def _is(workload: Workload, foreseen: Workload) -> bool:
    """It has become what was foreseen, and nothing has come of it yet."""
    seen, made = workload.metadata, foreseen.metadata
    annotations = {name: value for name, value in seen.annotations.items() if name != SUBMISSION}
    return (
        (workload.kind, seen.generation, seen.labels, annotations) == (foreseen.kind, 1, made.labels, made.annotations)
        and workload.spec == foreseen.spec
        and workload.status == type(workload.status)()
    )


def _says_no(error: ApiError) -> bool:
    """It is about what was asked, and not about who asks or how the server is."""
    elsewhere = isinstance(error, Unreachable | Unreadable | Unproven)
    return not elsewhere and 400 <= error.status < 500 and error.status not in (401, 408, 429)


def _said(workload: Workload) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(workload)
    return found


def _noted(workload: Workload, submission: str) -> Workload:
    metadata = workload.metadata
    annotated = {**metadata.annotations, SUBMISSION: submission}
    return msgspec.structs.replace(workload, metadata=msgspec.structs.replace(metadata, annotations=annotated))
