"""Killed at a write: the operator loses its memory, and the world must end as if it had not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from structlog.testing import capture_logs

from pincompute.kube.errors import ApiError
from pincompute.kube.request import Request
from pincompute.kube.resource import EVENTS, LEASES
from simulation.clock import Stuck, VirtualLoop, run
from simulation.line import Faults
from simulation.records import Record, Recorder, differences
from simulation.scenarios import Scenario
from simulation.world import Unsettled, World

BEFORE, LOST, AFTER = "before", "lost", "after"
WAYS = (BEFORE, LOST, AFTER)
"""It was not heard; it was done, and the answer did not arrive; the answer arrived."""

CALM = 900.0
"""Seconds in which nothing may be written at the end."""
LATE = 10.0
"""Seconds after the last change in which it may still be found that all is as wanted."""
FOLLOWED = 1
"""Steps after the one in which it was killed that a branch goes on for: the world is the same again by then."""
PASSES = 5
"""That a key may need, once nobody else moves any more."""


class Point(NamedTuple):
    """Where the operator is killed."""

    write: int
    way: str

    def __str__(self) -> str:
        return f"{self.write}:{self.way}"


class Verdict(NamedTuple):
    """What came of being killed at one point."""

    point: Point
    sent: str
    passes: int
    """The most that any key needed in one go, without anybody else moving."""
    wrong: tuple[str, ...]


class Crash(Faults):
    """Counts the operator's writes, and ends it at one of them."""

    def __init__(self, point: Point | None = None) -> None:
        self.point: Point | None = point
        self.sent: list[str] = []
        self.at: list[float] = []
        """When each was sent."""
        self.world: World | None = None
        self._last: Request | None = None
        """That it is to be killed at, once it is under way: others may be beside it."""

    async def before(self, request: Request) -> None:
        if not counts(request):
            return
        self.meet(len(self.sent), f"{request.method} {request.path}")
        if self.point and self.point.write == len(self.sent):
            self._last = request
        self.sent.append(f"{request.method} {request.path}")
        self.at.append(asyncio.get_running_loop().time())
        if self._is(request, BEFORE):
            await self._kill()

    def meet(self, write: int, sent: str) -> None:
        """One more write is about to be heard."""

    async def after(self, request: Request, refused: ApiError | None) -> None:
        if self._is(request, LOST):
            await self._kill()

    def answered(self, request: Request) -> None:
        if self._is(request, AFTER):
            assert self.world
            # It learns of it, and goes on until it has to wait for the first time.
            asyncio.get_running_loop().call_soon(self.world.kill)

    def _is(self, request: Request, way: str) -> bool:
        return request is self._last and self.point is not None and self.point.way == way

    async def _kill(self) -> None:
        assert self.world
        self.world.kill()
        await asyncio.Event().wait()


class Branching(Crash):
    """At each write the whole process is copied, once for each way to be killed there; the copies report and end."""

    def __init__(self) -> None:
        super().__init__()
        self.verdicts: list[Verdict] = []
        self.report_to = -1
        """In a copy: where its verdict is awaited."""

    def meet(self, write: int, sent: str) -> None:
        if self.point is not None:
            return
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        awaited = []
        for way in WAYS:
            here, there = os.pipe()
            if os.fork() == 0:
                loop.copied()
                self.point = Point(write, way)
                self.report_to = there
                return
            os.close(there)
            awaited.append((Point(write, way), here))
        for point, here in awaited:
            with os.fdopen(here, "rb") as answer:
                said = answer.read()
            os.wait()
            told = msgspec.json.decode(said, type=Verdict) if said else Verdict(point, "", 0, ("the copy broke",))
            self.verdicts.append(told._replace(point=point, sent=sent))

    def report(self, verdict: Verdict) -> None:
        os.write(self.report_to, msgspec.json.encode(verdict)[:60_000])
        os._exit(0)


def counts(request: Request) -> bool:
    """A write that makes anything so; whose turn it is and what was told are no part of that."""
    parts = request.path.split("/")
    return request.method != "GET" and not {LEASES.plural, EVENTS.plural} & set(parts)


class Course(NamedTuple):
    """One run from its beginning to its end."""

    records: tuple[Record, ...]
    sent: tuple[str, ...]
    wrong: tuple[str, ...]
    """What must never be, whatever was disturbed."""
    passes: int
    lives: int


def course(scenario: Scenario, crash: Crash) -> Course:
    with capture_logs() as logs:
        found = run(_course(scenario, crash))
    broke = [f"{each['event']}: {each}" for each in logs if each["log_level"] == "error"]
    return found._replace(wrong=(*found.wrong, *broke))


async def _course(scenario: Scenario, crash: Crash) -> Course:
    world = crash.world = World(crash)
    wrong: list[str] = []
    records: list[Record] = []
    recorder = Recorder(world.store)
    await world.begin()
    try:
        await world.settle()
        killed = len(scenario.steps)
        for index, step in enumerate(scenario.steps):
            if index > killed + FOLLOWED:
                break
            recorder.begin()
            await step.action(world.person)
            await world.settle()
            records.append(recorder.end(hasty=step.hasty))
            late = [sent for sent, at in zip(crash.sent, crash.at, strict=True) if at > world.moved + LATE]
            wrong += [f"{step.does}: written although nothing changed any more: {each}" for each in late]
            if crash.point and world.lives > 1:
                killed = min(killed, index)
        count = len(crash.sent)
        await asyncio.sleep(CALM)
        wrong += [f"written in the calm at the end: {each}" for each in crash.sent[count:]]
    except (Unsettled, Stuck) as error:
        wrong.append(str(error))
    finally:
        await world.end()
    return Course(tuple(records), tuple(crash.sent), tuple(wrong), world.story.most, world.lives)


def learn(scenario: Scenario) -> Course:
    """Undisturbed."""
    return course(scenario, Crash())


def judge(scenario: Scenario, learnt: Course, found: Course, point: Point) -> Verdict:
    wrong = list(found.wrong)
    if not wrong and found.lives != 2:
        wrong.append(f"the operator lived {found.lives} times, and should have been killed once")
    if found.passes > PASSES:
        wrong.append(f"a key needed {found.passes} passes although nobody else moved")
    for step, before, after in zip(scenario.steps, learnt.records, found.records, strict=False):
        wrong += [f"{step.does}: {each}" for each in differences(before, after)]
    return Verdict(point, "", found.passes, tuple(each[:2000] for each in wrong[:12]))


def every_point(scenario: Scenario, learnt: Course) -> Iterator[Verdict]:
    """All writes, each in all ways."""
    crash = Branching()
    found = course(scenario, crash)
    if crash.point is not None:
        crash.report(judge(scenario, learnt, found, crash.point))
    assert found.sent == learnt.sent, "the same run was not the same twice"
    yield from crash.verdicts


def one_point(scenario: Scenario, point: Point) -> Verdict:
    """The same once more, in this very process."""
    learnt = learn(scenario)
    sent = learnt.sent[point.write]
    return judge(scenario, learnt, course(scenario, Crash(point)), point)._replace(sent=sent)
