"""One thing goes wrong, at one write of the operator's: everything else is as it always is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import msgspec

from pincompute.api.names import GROUP
from pincompute.base.reasons import NOT_OURS
from pincompute.controller.resources import BECOME
from pincompute.kube.errors import ApiError, Conflict, error_of
from pincompute.kube.request import Request
from pincompute.kube.resource import EVENTS, LEASES
from pincompute.objects.owners import controller_uid
from simulation import ways
from simulation.line import NEWS, TRIP, Faults, lost
from simulation.refusals import Refusal
from simulation.server import target
from simulation.store import Store
from simulation.strangers import Stranger, meddle
from simulation.ways import Mark, Point
from simulation.world import TERMS, World

SILENCE = 5.0
"""Seconds for which nothing is heard of a kind."""
JUMP = 45.0
"""Seconds by which a clock is set ahead, or back."""
LATE = 10.0
"""Seconds after the last change in which it may still be found that all is as wanted."""
HALF = 1.0
"""Seconds for which who begins anew sees half of what there is."""
AROUND = {"projects", "runtimes", "pinterestsidecars"}
"""The other half: what work is planned by."""

_OCCUPIED = re.compile(r"(\w+)/(\S+) exists already")

TOO_LONG = Refusal(504, "Timeout", "request did not complete within the allotted timeout")
REFUSALS = {
    ways.OVERTAKEN: Refusal(409, "Conflict", "Operation cannot be fulfilled: the object has been modified"),
    ways.BROKEN: Refusal(500, "InternalError", "Internal error occurred: the server has a bad day"),
    ways.AWAY: Refusal(503, "ServiceUnavailable", "apiserver is shutting down"),
    ways.BUSY: Refusal(429, "TooManyRequests", "the server has received too many requests", {"retryAfterSeconds": 3}),
    ways.FULL: Refusal(500, "", "etcdserver: mvcc: database space exceeded"),
}


class Disturbance(Faults):
    """Counts the operator's writes, and knows at which of them what goes wrong."""

    def __init__(self, point: Point | None = None) -> None:
        self.point: Point | None = point
        self.sent: list[str] = []
        self.at: list[float] = []
        """When each was sent."""
        self.step = 0
        """Of the scenario."""
        self.steps: list[int] = []
        """In which of them each was."""
        self.marks: list[list[Mark]] = []
        """The world when each was about to be heard, when it was, and when its answer came."""
        self.world: World | None = None
        self.stranger: Stranger | None = None
        self.next: Callable[[], Awaitable[None]] | None = None
        """What people do after this."""
        self.hurried: asyncio.Task[None] | None = None
        """That, where they did not wait."""
        self.wrong: list[str] = []
        """What must never be sent."""
        self._stood_at = 0.0
        self._died = 0.0
        self._struck: Request | None = None
        """That it went wrong at, once it is under way: others may be beside it."""
        self._silent = 0.0
        self._under_way: dict[int, int] = {}
        self._said: dict[str, str] = {}
        """At which revision each status was last written."""

    @property
    def struck(self) -> bool:
        return self._struck is not None

    @property
    def evicts(self) -> bool:
        """Where it went wrong: of what is gone by then it is no matter how."""
        return self._struck is not None and self._struck.path.endswith("/eviction")

    @property
    def late(self) -> list[str]:
        """What was sent although nothing changed any more."""
        return [sent for sent, at in zip(self.sent, self.at, strict=True) if at > self._world.moved + LATE]

    @property
    def way(self) -> str:
        return self.point.way if self.point else ""

    async def before(self, request: Request) -> None:
        if not counts(request):
            return
        number = len(self.sent)
        # What had left before is heard a trip later.
        if not self._world.leads and _now() > self._stood_at + 1.5 * TRIP:
            self.wrong.append(f"written by who does not lead: {request.method} {request.path}")
        if _of_status(request):
            self.wrong += _slander(self._world.store, request)
        self.meet(number, request)
        self.sent.append(f"{request.method} {request.path}")
        self.at.append(_now())
        self.steps.append(self.step)
        self._under_way[id(request)] = number
        self.marks.append([self._mark()])
        if self.point and self.point.write == number and not self.struck:
            self._struck = request
            await self._strike(request)

    def meet(self, number: int, request: Request) -> None:
        """One more write is about to be heard."""

    async def after(self, request: Request, refused: ApiError | None) -> None:
        if not counts(request):
            return
        self.marks[self._under_way[id(request)]].append(self._mark())
        self._listen(request, refused)
        if self._is(request, ways.LOST):
            await self._kill()
        if self._is(request, *ways.DONE):
            # Nor does it see for a while what came of it.
            self._fall_silent()
            raise lost(request) if self.way == ways.UNANSWERED else error_of(TOO_LONG.body, about=request.about)

    def answered(self, request: Request) -> None:
        if not counts(request):
            return
        self.marks[self._under_way.pop(id(request))].append(self._mark())
        if self._is(request, ways.AFTER):
            # It learns of it, and goes on until it has to wait for the first time.
            self._died = _now()
            asyncio.get_running_loop().call_soon(self._world.kill)

    def _listen(self, request: Request, refused: ApiError | None) -> None:
        """Who has heard how his last word was taken does not contradict it."""
        if not _of_status(request):
            return
        at = target(request.path)
        there = self._world.store.get(at.resource, at.name, at.namespace)
        revision = there["metadata"]["resourceVersion"] if there else ""
        if refused is None:
            self._said[request.path] = revision
        elif isinstance(refused, Conflict) and self._said.get(request.path) == revision and self.way not in ways.DONE:
            self.wrong.append(f"told by a view that is older than what was told last: {request.path}")

    async def news(self, request: Request) -> float:
        if self.way in ways.DEATHS and self.struck and _kind(request) in AROUND and _now() < self._died + LATE:
            return HALF
        left = self._silent - _now()
        if left <= 0 or self._struck is None or self.way == ways.TWICE:
            return NEWS
        if self.way == ways.FORGOTTEN:
            return left
        of_it = _kind(request) == _kind(self._struck)
        return NEWS if of_it == (self.way == ways.ASIDE) else left

    def again(self, request: Request) -> bool:
        return self.way == ways.TWICE and _now() < self._silent

    async def _strike(self, request: Request) -> None:
        match self.way:
            case ways.BEFORE:
                await self._kill()
            case ways.BELATED:
                asyncio.get_running_loop().call_later(SILENCE, self._arrive, request)
                await self._kill()
            case ways.UNHEARD:
                raise lost(request)
            case ways.STOOD | ways.SLEPT:
                self._stand()
                await asyncio.sleep(2 * TERMS.renewed if self.way == ways.STOOD else 0)
            case ways.HURRIED if self.next:
                self.hurried = self._world.meanwhile(_done(self.next()))
            case way if way in REFUSALS:
                raise error_of(REFUSALS[way].body, about=request.about)
            case way if way in ways.VIEWS:
                self._fall_silent()
            case _:
                self._change_around(request)

    def _change_around(self, request: Request) -> None:
        """What this write finds is other than its writer thought."""
        match self.way:
            case ways.CUT:
                self._world.server.cut()
            case ways.AHEAD | ways.BACK:
                self._world.clock.set(JUMP if self.way == ways.AHEAD else -JUMP)
            case ways.ROBBED:
                self.stranger = Stranger(self._world.store)
                self.stranger.take(request)
            case ways.MEDDLED:
                meddle(self._world.store, request)

    def _stand(self) -> None:
        self._stood_at = _now()
        self._world.clock.stood += TERMS.lasts
        # It finds that out when it next wants to renew it, and all that is under way then is cut off.
        self._world.moved = _now() + TERMS.renewed
        asyncio.get_running_loop().call_later(TERMS.renewed, self._world.story.begin)

    def _arrive(self, request: Request) -> None:
        self._world.story.moved()
        with suppress(Refusal):
            self._world.server.answer(request)

    def _fall_silent(self) -> None:
        self._silent = _now() + SILENCE
        self._world.moved = self._silent
        loop = asyncio.get_running_loop()
        loop.call_later(SILENCE, self._world.story.begin)
        if self.way == ways.FORGOTTEN:
            loop.call_later(SILENCE, self._forget)

    def _forget(self) -> None:
        self._world.store.compact()
        self._world.server.cut()

    def _is(self, request: Request, *some: str) -> bool:
        return request is self._struck and self.way in some

    async def _kill(self) -> None:
        self._died = _now()
        self._world.kill()
        await asyncio.Event().wait()

    def _mark(self) -> Mark:
        return Mark(self._world.changes, _now())

    @property
    def _world(self) -> World:
        assert self.world
        return self.world


def counts(request: Request) -> bool:
    """A write that makes anything so; whose turn it is and what was told are no part of that."""
    parts = request.path.split("/")
    return request.method != "GET" and not {LEASES.plural, EVENTS.plural} & set(parts)


def _kind(request: Request) -> str:
    return target(request.path).resource.plural


def _slander(store: Store, request: Request) -> Iterator[str]:
    """What is told of others, and is not so."""
    at = target(request.path)
    owner = store.get(at.resource, at.name, at.namespace)
    for each in msgspec.json.decode(request.body)["status"].get("conditions", ()):
        said = _OCCUPIED.match(each["message"]) if each["reason"] == NOT_OURS.code else None
        kind, name = said.groups() if said else ("", "")
        there = store.get(BECOME[kind], name, at.namespace) if said else None
        if owner and there and controller_uid(there) == owner["metadata"]["uid"]:
            yield f"it is nobody else's: {kind}/{name}, told of by {request.path}"


def _of_status(request: Request) -> bool:
    return request.path.endswith("/status") and GROUP in request.path


async def _done(work: Awaitable[None]) -> None:
    await work


def _now() -> float:
    return asyncio.get_running_loop().time()
