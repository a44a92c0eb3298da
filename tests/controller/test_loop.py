"""The loop: one pass a key at a time, none forgotten, failures again and later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INTERNAL
from pincompute.controller import loop as module
from pincompute.controller.loop import Loop
from pincompute.controller.passes import Cause, Key, Made, Outcome

A, B = Key("me", "a"), Key("me", "b")


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST", 0)


class Passes:
    """Records every pass, and does what the test says in it."""

    def __init__(self, behave: Callable[[Key, int], Awaitable[float | None]] | None = None) -> None:
        self.made: list[Key] = []
        self.running: set[Key] = set()
        self.overlapped = False
        """Two passes of one key were made at once. It is asserted outside: the loop survives what a pass throws."""
        self.happened = asyncio.Event()
        self._behave = behave

    async def __call__(self, key: Key) -> Made:
        self.overlapped = self.overlapped or key in self.running
        self.running.add(key)
        self.made.append(key)
        self.happened.set()
        try:
            return Made(again=await self._behave(key, self.made.count(key)) if self._behave else None)
        finally:
            self.running.discard(key)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.made) < count:
                self.happened.clear()
                await self.happened.wait()


async def settled(passes: Passes, loop: Loop, count: int) -> None:
    running = asyncio.create_task(loop.run())
    await passes.until(count)
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait({running})


async def test_many_touches_before_a_pass_cause_one() -> None:
    passes = Passes()
    loop = Loop(passes)
    for _ in range(5):
        loop.touch(A)
    loop.touch(B)
    await settled(passes, loop, 2)
    assert sorted(passes.made) == [A, B]


async def test_a_touch_during_a_pass_causes_another_after_it() -> None:
    async def touch_once(key: Key, count: int) -> None:
        if count == 1:
            loop.touch(key)
            loop.touch(key)
            # Long enough for another worker to take the key, if it may.
            for _ in range(10):
                await asyncio.sleep(0)

    passes = Passes(touch_once)
    loop = Loop(passes)
    loop.touch(A)
    await settled(passes, loop, 2)
    assert passes.made == [A, A]
    assert not passes.overlapped


async def test_a_pass_may_ask_to_look_again() -> None:
    async def again_once(_: Key, count: int) -> float | None:
        return 0.01 if count == 1 else None

    passes = Passes(again_once)
    loop = Loop(passes)
    loop.touch(A)
    await settled(passes, loop, 2)
    assert passes.made == [A, A]


async def test_many_touches_while_it_rests_cause_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST", 0.05)
    passes = Passes()
    loop = Loop(passes)
    loop.touch(A)
    running = asyncio.create_task(loop.run())
    await passes.until(1)
    for _ in range(5):
        await asyncio.sleep(0)
        loop.touch(A)
    assert passes.made == [A]
    await passes.until(2)
    running.cancel()
    await asyncio.wait({running})
    assert passes.made == [A, A]


@pytest.mark.parametrize("error", [Refused(Problem(INTERNAL, "no")), RuntimeError("broken")])
async def test_a_failure_is_tried_again_and_stops_no_other(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.01)

    async def fail_twice(key: Key, count: int) -> None:
        if key == A and count <= 2:
            raise error

    passes = Passes(fail_twice)
    loop = Loop(passes, workers=1)
    loop.touch(A)
    loop.touch(B)
    await settled(passes, loop, 4)
    assert passes.made.count(A) == 3
    assert passes.made.count(B) == 1


async def test_a_users_edit_does_not_wait_for_what_a_roll_touches() -> None:
    passes = Passes()
    loop = Loop(passes, workers=1)
    for number in range(20):
        loop.touch(Key("me", f"rolled-{number}"), Cause.AROUND)
    loop.touch(A, Cause.EDITED)
    await settled(passes, loop, 21)
    assert passes.made[0] == A


async def test_who_is_cut_off_in_a_pass_is_looked_at_by_whoever_runs_next() -> None:
    async def hang_once(_: Key, count: int) -> float | None:
        if count == 1:
            await asyncio.Event().wait()
        return None

    passes = Passes(hang_once)
    loop = Loop(passes)
    loop.touch(A)
    await settled(passes, loop, 1)
    assert loop.waiting == 1
    await settled(passes, loop, 2)
    assert passes.made == [A, A]


async def test_told_to_finish_it_ends_what_is_under_way_and_begins_nothing() -> None:
    async def finish(_: Key, __: int) -> float | None:
        loop.finish()
        await asyncio.sleep(0)
        return None

    passes = Passes(finish)
    loop = Loop(passes, workers=1)
    loop.touch(A)
    loop.touch(B)
    async with asyncio.timeout(60):
        await loop.run()
    assert passes.made == [A]
    assert loop.tally.passes["Workload", Outcome.SETTLED] == 1


async def test_a_loop_that_stands_still_is_told_from_one_that_has_nothing_to_do() -> None:
    class Later(SystemClock):
        seconds = 0.0

        def monotonic(self) -> float:
            return self.seconds

    clock = Later()
    hanging = Passes(lambda _, __: asyncio.sleep(60))
    loop = Loop(hanging, workers=1, clock=clock)
    clock.seconds = 1000
    assert loop.stuck() == 0
    loop.touch(A)
    assert loop.stuck() == 0
    running = asyncio.create_task(loop.run())
    await hanging.until(1)
    clock.seconds = 1100
    loop.touch(B)
    assert loop.stuck() == 100
    running.cancel()
    await asyncio.wait({running})


async def test_the_same_failure_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.001)

    async def fail(_: Key, count: int) -> float | None:
        if count < 5:
            raise Refused(Problem(INTERNAL, "no"))
        return None

    passes = Passes(fail)
    loop = Loop(passes)
    loop.touch(A)
    with capture_logs() as logs:
        await settled(passes, loop, 5)
    assert [each["event"] for each in logs] == ["pass failed", "pass succeeds again"]
    assert loop.failing == 0
    assert [(told.outcome, told.times) for _, told in loop.story.of("me", "a")] == [
        (Outcome.REFUSED, 1),
        (Outcome.REFUSED, 3),
        (Outcome.SETTLED, 1),
    ]


async def test_passes_that_never_wait_let_others_in_between() -> None:
    passes = Passes()
    loop = Loop(passes, workers=1)
    for number in range(100):
        loop.touch(Key("me", f"settled-{number}"), Cause.FOUND)
    running = asyncio.create_task(loop.run())
    await passes.until(1)
    assert len(passes.made) < 10
    loop.touch(A, Cause.EDITED)
    await passes.until(len(passes.made) + 2)
    assert A in passes.made
    running.cancel()
    await asyncio.wait({running})
