"""Chance: one seed draws all that goes wrong, for a while; then nothing does, and the world must come to be right.

Crashes, lost requests and answers, refusals, slow and broken watches, forgotten revisions: all at once, while people go
on with what they do and do not wait.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import NamedTuple

from structlog.testing import capture_logs

from pincompute.controller.resources import NOUNS
from pincompute.kube.errors import ApiError, error_of
from pincompute.kube.request import Request
from simulation.clock import Stuck, run
from simulation.disturbances import counts
from simulation.line import NEWS, Faults, lost
from simulation.records import Record, Recorder, differences
from simulation.refusals import Refusal
from simulation.scenarios import COMPARED, SCENARIOS
from simulation.steps import Scenario
from simulation.trials import PASSES
from simulation.world import Unsettled, World

REFUSALS = ((409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable"))


class Chances(Faults):
    """How likely each fault is, is drawn as well: some runs have many of one kind."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world: World | None = None
        self.on = True
        self.sent: list[str] = []
        self.asked = hashlib.sha256()
        """Of every request, reads as well, and when it was sent."""
        self.crash, self.lost, self.refused, self.cut, self.late, self.forgotten = (
            self.chance.random() ** 3 * most for most in (0.1, 0.2, 0.2, 0.05, 0.5, 0.02)
        )

    async def before(self, request: Request) -> None:
        said = request.method, request.path, sorted(request.query.items()), asyncio.get_running_loop().time()
        self.asked.update(repr(said).encode() + request.body)
        if counts(request):
            self.sent.append(f"{request.method} {request.path}")
        if self._is(self.lost):
            raise lost(request)
        if self._is(self.refused):
            code, reason = self.chance.choice(REFUSALS)
            if request.method != "GET" or code != 409:
                raise error_of(Refusal(code, reason, "by chance").body, about=request.about)
        if counts(request) and self._is(self.crash):
            await self._kill()

    async def after(self, request: Request, refused: ApiError | None) -> None:
        if self._is(self.lost):
            raise lost(request)
        if counts(request) and self._is(self.crash):
            await self._kill()

    async def news(self, request: Request) -> float:
        assert self.world
        if self._is(self.forgotten):
            self.world.store.compact()
        if self._is(self.cut):
            raise lost(request)
        return NEWS + (self.chance.random() * 5 if self._is(self.late) else 0.0)

    def _is(self, likely: float) -> bool:
        return self.on and self.chance.random() < likely

    async def _kill(self) -> None:
        assert self.world
        self.world.kill()
        await asyncio.Event().wait()


class Lot(NamedTuple):
    """What came of one seed."""

    seed: int
    kind: str
    steps: int
    lives: int
    passes: int
    trace: str
    """A digest of every request: the same seed gives the same."""
    wrong: tuple[str, ...]


def draw(seed: int, kind: str = "") -> Lot:
    chance = random.Random(seed)
    scenario = SCENARIOS[kind or chance.choice(list(SCENARIOS))]
    steps = chance.randint(1, len(scenario.steps))
    with capture_logs() as logs:
        found, lot = run(_disturbed(scenario, steps, seed))
        broke = [f"{each['event']}: {each}" for each in logs if each["log_level"] == "error"]
        wanted = run(_undisturbed(scenario, steps)) if scenario.kind in COMPARED else None
    wrong = [*lot.wrong, *broke]
    if wanted is not None and found is not None:
        wrong += differences(wanted, found)
    return lot._replace(wrong=tuple(each[:2000] for each in wrong[:12]))


async def _disturbed(scenario: Scenario, steps: int, seed: int) -> tuple[Record | None, Lot]:
    faults = Chances(seed)
    world = faults.world = World(faults, seed)
    recorder = Recorder(world.store)
    wrong: list[str] = []
    found = None
    await world.begin()
    try:
        for step in scenario.steps[:steps]:
            await step.action(world.person)
            await asyncio.sleep(faults.chance.random() * 30)
        # All is well from here on.
        faults.on = False
        world.story.begin()
        await world.settle()
        found = recorder.end(hasty=True)
        wrong += [f"{each} was not looked at as it is now" for each in _unseen(world)]
        if world.story.most > PASSES:
            wrong.append(f"a key needed {world.story.most} passes although nobody else moved")
        wrong += await world.calm(faults.sent)
    except (Unsettled, Stuck) as error:
        wrong.append(str(error))
    finally:
        await world.end()
    trace = faults.asked.hexdigest()[:12]
    return found, Lot(seed, scenario.kind, steps, world.lives, world.story.most, trace, tuple(wrong))


def _unseen(world: World) -> list[str]:
    """What people wrote, and the operator says nothing of."""
    ours = [each for kind, each in world.store.everything() if kind in NOUNS.values()]
    return [
        f"{each['kind']}/{each['metadata']['name']}"
        for each in ours
        if each.get("status", {}).get("observedGeneration") != each["metadata"]["generation"]
    ]


async def _undisturbed(scenario: Scenario, steps: int) -> Record:
    world = World()
    recorder = Recorder(world.store)
    await world.begin()
    try:
        await world.settle()
        for step in scenario.steps[:steps]:
            await step.action(world.person)
            await world.settle()
        return recorder.end(hasty=True)
    finally:
        await world.end()
