"""A run in which one thing goes wrong at one write: the world must end as if it had not."""

from __future__ import annotations

import asyncio
import gc
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from structlog.testing import capture_logs

from pincompute.kube.request import Request
from simulation.clock import Stuck, VirtualLoop, run
from simulation.disturbances import Disturbance
from simulation.records import Record, Recorder, differences, loose
from simulation.scenarios import COMPARED
from simulation.steps import Scenario
from simulation.ways import CRASHES, DEATHS, OTHERS, OVERTAKEN, VIEWS, Mark, Point, others, same
from simulation.world import Unsettled, World

FOLLOWED = 1
"""Steps after the one in which it went wrong that a branch goes on for: the world is the same again by then."""
PASSES = 5
"""That a key may need, once nobody else moves any more."""


class Verdict(NamedTuple):
    """What came of one point."""

    point: Point
    sent: str
    passes: int
    """The most that any key needed in one go, without anybody else moving."""
    wrong: tuple[str, ...]


class Branching(Disturbance):
    """At each write the whole process is copied, once for each way to go wrong there; the copies report and end."""

    def __init__(self, tried: Mapping[int, Sequence[str]], *, first: bool) -> None:
        super().__init__()
        self.verdicts: list[Verdict] = []
        self.report_to = -1
        """In a copy: where its verdict is awaited."""
        self._tried = tried
        self._first = first

    def meet(self, number: int, request: Request) -> None:
        if self.point is not None or (self._first and any(each.wrong for each in self.verdicts)):
            return
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        # What is never collected is never touched, and is not copied either.
        gc.freeze()
        awaited = []
        for way in self._tried.get(number, ()):
            here, there = os.pipe()
            if os.fork() == 0:
                gc.disable()
                loop.copied()
                self.point = Point(number, way)
                self.report_to = there
                return
            os.close(there)
            awaited.append((Point(number, way), here))
        for point, here in awaited:
            with os.fdopen(here, "rb") as answer:
                said = answer.read()
            os.wait()
            told = msgspec.json.decode(said, type=Verdict) if said else Verdict(point, "", 0, ("the copy broke",))
            self.verdicts.append(told._replace(point=point, sent=f"{request.method} {request.path}"))

    def report(self, verdict: Verdict) -> None:
        os.write(self.report_to, msgspec.json.encode(verdict)[:60_000])
        os._exit(0)


class Course(NamedTuple):
    """One run from its beginning to its end."""

    records: tuple[Record | None, ...]
    """Of each step; none of one that was not compared."""
    sent: tuple[str, ...]
    steps: tuple[int, ...]
    """In which step each was."""
    marks: tuple[tuple[Mark, ...], ...]
    wrong: tuple[str, ...]
    """What must never be, whatever was disturbed."""
    passes: int
    lives: int


def course(scenario: Scenario, disturbance: Disturbance) -> Course:
    with capture_logs() as logs:
        found = run(_course(scenario, disturbance))
    broke = [f"{each['event']}: {each}" for each in logs if each["log_level"] == "error"]
    return found._replace(wrong=(*found.wrong, *broke))


async def _course(scenario: Scenario, disturbance: Disturbance) -> Course:
    world = disturbance.world = World(disturbance)
    wrong: list[str] = []
    records: list[Record | None] = []
    recorder = Recorder(world.store)
    await world.begin()
    try:
        await world.settle()
        struck = len(scenario.steps)
        for index, step in enumerate(scenario.steps):
            if index > struck + FOLLOWED:
                break
            disturbance.step = index
            disturbance.next = _next(scenario, index, world)
            recorder.begin()
            # Who did not wait has done it already.
            if not (disturbance.hurried and index == struck + 1):
                await step.action(world.person)
            await world.settle()
            if disturbance.struck and index < struck:
                struck = index
                wrong += await _over(disturbance, world)
            if index != struck or disturbance.way in CRASHES:
                wrong += [
                    f"{step.does}: written although nothing changed any more: {each}" for each in disturbance.late
                ]
            wrong += [f"{step.does}: {each}" for each in world.ailing()]
            early = disturbance.hurried is not None and index == struck
            records.append(None if early else recorder.end(hasty=step.hasty))
        wrong += await world.calm(disturbance.sent)
    except (Unsettled, Stuck) as error:
        wrong.append(str(error))
    finally:
        await world.end()
    wrong += disturbance.wrong
    marks = tuple(tuple(each) for each in disturbance.marks)
    return Course(
        tuple(records),
        tuple(disturbance.sent),
        tuple(disturbance.steps),
        marks,
        tuple(wrong),
        world.story.most,
        world.lives,
    )


def _next(scenario: Scenario, index: int, world: World) -> Callable[[], Awaitable[None]] | None:
    """What people could want before this step is done."""
    following = scenario.steps[index + 1] if hurries(scenario, index) else None
    return (lambda: following.action(world.person)) if following else None


def hurries(scenario: Scenario, index: int) -> bool:
    later = scenario.steps[index + 1 : index + 2]
    return scenario.kind in COMPARED and bool(later) and not (later[0].patient or scenario.steps[index].hasty)


async def _over(disturbance: Disturbance, world: World) -> list[str]:
    """What was under way ends, and whoever came goes."""
    if disturbance.hurried:
        await disturbance.hurried
    if disturbance.way == OVERTAKEN and not (world.story.conflicts or disturbance.evicts):
        return ["it went on although somebody had written in between"]
    if disturbance.stranger is None:
        return []
    wrong = disturbance.stranger.leave()
    world.story.begin()
    await world.settle()
    return wrong


def learn(scenario: Scenario) -> Course:
    """Undisturbed."""
    return course(scenario, Disturbance())


def judge(scenario: Scenario, learnt: Course, found: Course, point: Point) -> Verdict:
    wrong = list(found.wrong)
    lives = 2 if point.way in DEATHS else 1
    if not wrong and found.lives != lives:
        wrong.append(f"the operator lived {found.lives} times, and not {lives}")
    if found.passes > PASSES:
        wrong.append(f"a key needed {found.passes} passes although nobody else moved")
    if point.way in VIEWS and not scenario.steps[learnt.steps[point.write]].hasty:
        wrong += [f"sent once more as it was not seen yet: {each}" for each in _again(learnt, found, point)]
    loosely = point.way in OTHERS
    for step, before, after in zip(scenario.steps, learnt.records, found.records, strict=False):
        if before and after and (not loosely or scenario.kind in COMPARED):
            said = differences(loose(before), loose(after)) if loosely else differences(before, after)
            wrong += [f"{step.does}: {each}" for each in said]
    return Verdict(point, "", found.passes, tuple(each[:2000] for each in wrong[:12]))


def _again(learnt: Course, found: Course, point: Point) -> Iterator[str]:
    """What is made or ended; how often something is changed depends on what is seen when."""
    step = learnt.steps[point.write]
    once, now = (
        Counter(sent for sent, at in zip(each.sent, each.steps, strict=True) if at == step and _makes(sent))
        for each in (learnt, found)
    )
    return (now - once).elements()


def _makes(sent: str) -> bool:
    return sent.startswith(("POST", "DELETE")) and not sent.endswith("/eviction")


def every_crash(learnt: Course) -> dict[Point, Point]:
    """Each, with the one that it equals."""
    return same(learnt.marks)


def everything_else(scenario: Scenario, learnt: Course) -> list[Point]:
    """What can go wrong without a death."""
    found: list[Point] = []
    for write, sent in enumerate(learnt.sent):
        hurried = hurries(scenario, learnt.steps[write])
        found += others(write, sent, hurried=hurried)
    return found


def tried(scenario: Scenario, learnt: Course, points: Iterable[Point], *, first: bool = False) -> Iterator[Verdict]:
    """All of them, or until something is found, in one run that branches."""
    by_write: dict[int, list[str]] = {}
    for each in points:
        by_write.setdefault(each.write, []).append(each.way)
    branching = Branching(by_write, first=first)
    found = course(scenario, branching)
    if branching.point is not None:
        branching.report(judge(scenario, learnt, found, branching.point))
    assert found.sent == learnt.sent, "the same run was not the same twice"
    yield from branching.verdicts


def one_point(scenario: Scenario, point: Point) -> Verdict:
    """The same once more, in this very process."""
    learnt = learn(scenario)
    sent = learnt.sent[point.write]
    return judge(scenario, learnt, course(scenario, Disturbance(point)), point)._replace(sent=sent)
