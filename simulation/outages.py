"""The API server is not what it should be, for minutes or an hour: little is asked of it meanwhile, and all heals."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import cache
from typing import NamedTuple

from structlog.testing import capture_logs

from pincompute.api.names import API_VERSION
from pincompute.kube.errors import Unreachable, error_of
from pincompute.kube.lease import Terms
from pincompute.kube.request import Request
from pincompute.kube.resource import DEPLOYMENTS, PODS, STATEFUL_SETS, Object
from pincompute.operator.health import ills, told
from simulation.clock import run
from simulation.disturbances import counts
from simulation.line import Faults
from simulation.person import HOME, Person
from simulation.records import Record, Recorder, differences, loose
from simulation.refusals import Refusal
from simulation.world import World

AWAY, HTML, LOGIN, BUSY, FULL, KEPT, FORBIDDEN = "away", "html", "login", "busy", "full", "kept", "forbidden"
KINDS = {
    AWAY: "nobody answers",
    HTML: "a balancer answers with its page",
    LOGIN: "everything is answered with a page to log in",
    BUSY: "it has too much to do, and says when to come again",
    FULL: "its store has no room",
    KEPT: "one kind may be seen, and not written",
    FORBIDDEN: "one kind is forbidden to us",
}
TAKEN = DEPLOYMENTS
"""The kind that is kept from us."""
PAGE = b"<!doctype html><html><body><h1>Something is in between</h1></body></html>"
_REFUSED = {
    BUSY: Refusal(429, "TooManyRequests", "the server has received too many requests", {"retryAfterSeconds": 5}),
    FULL: Refusal(500, "", "etcdserver: mvcc: database space exceeded"),
    KEPT: Refusal(403, "Forbidden", f"{TAKEN.plural} is forbidden: user cannot patch resource"),
    FORBIDDEN: Refusal(403, "Forbidden", f"{TAKEN.plural} is forbidden: user cannot list resource"),
}


class Outage(Faults):
    """Begins and ends when it is told to; every request is noted."""

    whole = True

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.on = False
        self.asked: list[float] = []
        self.written: list[str] = []

    async def before(self, request: Request) -> None:
        self.asked.append(asyncio.get_running_loop().time())
        if counts(request):
            self.written.append(f"{request.method} {request.path}")
        if not self._concerns(request):
            return
        if self.kind == AWAY:
            raise Unreachable("https://simulated", "connection refused", about=request.about, how="absent")
        if self.kind == HTML:
            raise error_of(PAGE, status=502, about=request.about)
        if self.kind in _REFUSED:
            raise error_of(_REFUSED[self.kind].body, about=request.about)

    def instead(self, request: Request) -> bytes | None:
        return PAGE if self._concerns(request) and self.kind == LOGIN else None

    def _concerns(self, request: Request) -> bool:
        some = self.kind in {KEPT, FORBIDDEN} and request.resource != TAKEN.plural
        read = self.kind in {FULL, KEPT} and request.safe
        return self.on and not some and not read

    def per_minute(self, since: float, until: float) -> int:
        """The most that was asked in any minute."""
        found = Counter(int((each - since) // 60) for each in self.asked if since <= each < until)
        return max(found.values(), default=0)


class Lasted(NamedTuple):
    """What came of one outage."""

    busiest: int
    """Requests in the busiest minute of it, but for its first."""
    first: int
    """In the minute after its end."""
    seconds: float
    """From its end until all was well."""
    went_on: bool
    """Whether what it does not concern was done meanwhile."""
    told: str
    """What the operator says of it, as long as it lasts."""
    wrong: tuple[str, ...]


BUSIEST = 300
"""Requests in a minute of an outage, of more than two dozen watches and a lease; in the first, all of them break."""
FIRST = 300
"""Requests in the minute after it: every watch begins anew, and all is looked at."""
HEALED = 15.0
"""Seconds until all is well: who gets the lease again hurries all watches."""
RETRIED = 75.0
"""The same where nothing tells that what was refused would no longer be: until the next try, and what comes of it."""


def lasted(kind: str, seconds: float) -> Lasted:
    with capture_logs():
        found, said = run(_through(Outage(kind), seconds))
    wrong = [*said.wrong, *differences(loose(_undisturbed()), loose(found))]
    for name, most in (("busiest", BUSIEST), ("first", FIRST), ("seconds", RETRIED if kind == KEPT else HEALED)):
        if (is_ := getattr(said, name)) > most:
            wrong.append(f"{name} is {is_:.0f}, and {most:.0f} at most")
    if said.went_on != (kind in {KEPT, FORBIDDEN}):
        wrong.append("another kind went on" if said.went_on else "no other kind went on")
    return said._replace(wrong=tuple(wrong))


@cache
def _undisturbed() -> Record:
    with capture_logs():
        return run(_through(Outage(AWAY), 0.0))[0]


async def _through(outage: Outage, seconds: float) -> tuple[Record, Lasted]:
    world = World(outage, terms=Terms())
    recorder = Recorder(world.store)
    await world.begin()
    wrong: list[str] = []
    try:
        await world.settle()
        await _before(world.person)
        await world.settle()
        outage.on = seconds > 0
        if outage.on:
            world.server.cut()
        began = _now()
        await _meanwhile(world.person)
        await asyncio.sleep(max(0.0, seconds))
        went_on, told = _went_on(world), _told(world)
        wrong += [f"it would be begun anew, which helps nobody: {each}" for each in _ills(world)]
        outage.on, ended = False, _now()
        await world.settle()
        healed = world.moved - ended
        wrong += world.ailing()
        wrong += [] if world.lives == 1 else [f"the operator lived {world.lives} times"]
        wrong += await world.calm(outage.written)
        found = recorder.end(hasty=True)
    finally:
        await world.end()
    busiest, first = outage.per_minute(began + 60, ended), outage.per_minute(ended, ended + 60)
    return found, Lasted(busiest, first, healed, went_on, told, tuple(wrong))


def _service(name: str, image: str) -> Object:
    return _document("PinterestService", name, image=image, port=8080, replicas=2)


def _document(kind: str, name: str, **spec: object) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def _before(person: Person) -> None:
    for name in ("web", "api", "search"):
        await person.write(_service(name, f"{name}:1"))
    await person.write(_document("PinterestStatefulSet", "db", image="db:1", port=5432, replicas=2))
    await person.write(_document("PinterestJobSet", "count", image="count:1", tasks=4, parallelism=2))


async def _meanwhile(person: Person) -> None:
    """People go on, as far as they are let."""
    await asyncio.sleep(5)
    await person.write(_service("web", "web:2"))
    await person.delete("PinterestService", "api")
    await person.write(_service("new", "new:1"))
    await person.delete(PODS, "db-0")
    await person.write(_document("PinterestStatefulSet", "db", image="db:2", port=5432, replicas=2))


def _went_on(world: World) -> bool:
    stateful_set = world.store.get(STATEFUL_SETS, "db", HOME)
    return bool(stateful_set and stateful_set["spec"]["template"]["spec"]["containers"][0]["image"] == "db:2")


def _told(world: World) -> str:
    return told(world.loops) if world.loops else ""


def _ills(world: World) -> list[str]:
    return list(ills(world.loops)) if world.loops else []


def _now() -> float:
    return asyncio.get_running_loop().time()
