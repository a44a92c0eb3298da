"""The reconcile loop: one pass per key at a time, no lost events, retries with backoff."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INTERNAL
from pincompute.controller import loop as module
from pincompute.controller.loop import ReconcileLoop
from pincompute.controller.passes import Key, Outcome, PassResult, Trigger

A, B = Key("me", "a"), Key("me", "b")


@pytest.fixture(autouse=True)
def no_minimum_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_PASS_INTERVAL_S", 0)


class RecordedPasses:
    """Records every pass and runs the behaviour that a test gives it."""

    def __init__(self, behave: Callable[[Key, int], Awaitable[float | None]] | None = None) -> None:
        self.keys: list[Key] = []
        self.running: set[Key] = set()
        self.overlapped = False
        """Whether two passes of one key ran at once. Tests assert it afterwards, as the loop catches exceptions of a
        pass."""
        self.pass_started = asyncio.Event()
        self._behave = behave

    async def __call__(self, key: Key) -> PassResult:
        self.overlapped = self.overlapped or key in self.running
        self.running.add(key)
        self.keys.append(key)
        self.pass_started.set()
        try:
            return PassResult(requeue_after_s=await self._behave(key, self.keys.count(key)) if self._behave else None)
        finally:
            self.running.discard(key)

    async def wait_for_passes(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.keys) < count:
                self.pass_started.clear()
                await self.pass_started.wait()


async def run_passes(passes: RecordedPasses, loop: ReconcileLoop, count: int) -> None:
    running = asyncio.create_task(loop.run())
    await passes.wait_for_passes(count)
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait({running})


async def test_events_before_a_pass_cause_one_pass() -> None:
    passes = RecordedPasses()
    loop = ReconcileLoop(passes)
    for _ in range(5):
        loop.enqueue(A)
    loop.enqueue(B)
    await run_passes(passes, loop, 2)
    assert sorted(passes.keys) == [A, B]


async def test_event_during_a_pass_causes_another_after_it() -> None:
    async def enqueue_once(key: Key, count: int) -> None:
        if count == 1:
            loop.enqueue(key)
            loop.enqueue(key)
            # Gives other workers the chance to take the key, which they must not.
            for _ in range(10):
                await asyncio.sleep(0)

    passes = RecordedPasses(enqueue_once)
    loop = ReconcileLoop(passes)
    loop.enqueue(A)
    await run_passes(passes, loop, 2)
    assert passes.keys == [A, A]
    assert not passes.overlapped


async def test_requeue_after_delay() -> None:
    async def again_once(_: Key, count: int) -> float | None:
        return 0.01 if count == 1 else None

    passes = RecordedPasses(again_once)
    loop = ReconcileLoop(passes)
    loop.enqueue(A)
    await run_passes(passes, loop, 2)
    assert passes.keys == [A, A]


async def test_events_within_the_minimum_interval_cause_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_PASS_INTERVAL_S", 0.05)
    passes = RecordedPasses()
    loop = ReconcileLoop(passes)
    loop.enqueue(A)
    running = asyncio.create_task(loop.run())
    await passes.wait_for_passes(1)
    for _ in range(5):
        await asyncio.sleep(0)
        loop.enqueue(A)
    assert passes.keys == [A]
    await passes.wait_for_passes(2)
    running.cancel()
    await asyncio.wait({running})
    assert passes.keys == [A, A]


@pytest.mark.parametrize("error", [Refused(Problem(INTERNAL, "no")), RuntimeError("broken")])
async def test_failure_is_retried_and_does_not_block_other_keys(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BACKOFF_S", 0.01)

    async def fail_twice(key: Key, count: int) -> None:
        if key == A and count <= 2:
            raise error

    passes = RecordedPasses(fail_twice)
    loop = ReconcileLoop(passes, workers=1)
    loop.enqueue(A)
    loop.enqueue(B)
    await run_passes(passes, loop, 4)
    assert passes.keys.count(A) == 3
    assert passes.keys.count(B) == 1


async def test_spec_change_runs_before_a_roll() -> None:
    passes = RecordedPasses()
    loop = ReconcileLoop(passes, workers=1)
    for number in range(20):
        loop.enqueue(Key("me", f"rolled-{number}"), Trigger.CONTEXT_CHANGED)
    loop.enqueue(A, Trigger.SPEC_CHANGED)
    await run_passes(passes, loop, 21)
    assert passes.keys[0] == A


async def test_interrupted_pass_is_repeated_in_the_next_run() -> None:
    async def hang_once(_: Key, count: int) -> float | None:
        if count == 1:
            await asyncio.Event().wait()
        return None

    passes = RecordedPasses(hang_once)
    loop = ReconcileLoop(passes)
    loop.enqueue(A)
    await run_passes(passes, loop, 1)
    assert loop.queue_length == 1
    await run_passes(passes, loop, 2)
    assert passes.keys == [A, A]


async def test_shut_down_ends_running_passes_and_starts_none() -> None:
    async def finish(_: Key, __: int) -> float | None:
        loop.shut_down()
        await asyncio.sleep(0)
        return None

    passes = RecordedPasses(finish)
    loop = ReconcileLoop(passes, workers=1)
    loop.enqueue(A)
    loop.enqueue(B)
    async with asyncio.timeout(60):
        await loop.run()
    assert passes.keys == [A]
    assert loop.counters.passes["Workload", Outcome.UNCHANGED] == 1


async def test_idle_loop_is_not_stalled() -> None:
    class SettableClock(SystemClock):
        now_s = 0.0

        def monotonic(self) -> float:
            return self.now_s

    clock = SettableClock()
    hanging = RecordedPasses(lambda _, __: asyncio.sleep(60))
    loop = ReconcileLoop(hanging, workers=1, clock=clock)
    clock.now_s = 1000
    assert loop.stalled_for_s() == 0
    loop.enqueue(A)
    assert loop.stalled_for_s() == 0
    running = asyncio.create_task(loop.run())
    await hanging.wait_for_passes(1)
    clock.now_s = 1100
    loop.enqueue(B)
    assert loop.stalled_for_s() == 100
    running.cancel()
    await asyncio.wait({running})


async def test_logs_a_repeated_failure_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BACKOFF_S", 0.001)

    async def fail(_: Key, count: int) -> float | None:
        if count < 5:
            raise Refused(Problem(INTERNAL, "no"))
        return None

    passes = RecordedPasses(fail)
    loop = ReconcileLoop(passes)
    loop.enqueue(A)
    with capture_logs() as logs:
        await run_passes(passes, loop, 5)
    assert [each["event"] for each in logs] == ["reconcile failed", "reconcile recovered"]
    assert loop.failing_count == 0
    assert [(record.outcome, record.count) for _, record in loop.history.find("me", "a")] == [
        (Outcome.FAILED, 1),
        (Outcome.FAILED, 3),
        (Outcome.UNCHANGED, 1),
    ]


async def test_passes_without_io_let_other_tasks_run() -> None:
    passes = RecordedPasses()
    loop = ReconcileLoop(passes, workers=1)
    for number in range(100):
        loop.enqueue(Key("me", f"settled-{number}"), Trigger.INITIAL_LIST)
    running = asyncio.create_task(loop.run())
    await passes.wait_for_passes(1)
    assert len(passes.keys) < 10
    loop.enqueue(A, Trigger.SPEC_CHANGED)
    await passes.wait_for_passes(len(passes.keys) + 2)
    assert A in passes.keys
    running.cancel()
    await asyncio.wait({running})


async def test_one_pass_starts_in_each_iteration_of_the_event_loop() -> None:
    passes_of_iterations = [0]

    async def note_pass(_: Key, __: int) -> None:
        passes_of_iterations[-1] += 1

    def begin_iteration() -> None:
        passes_of_iterations.append(0)
        asyncio.get_running_loop().call_soon(begin_iteration)

    passes = RecordedPasses(note_pass)
    loop = ReconcileLoop(passes, workers=8)
    for number in range(100):
        loop.enqueue(Key("me", f"s{number}"))
    begin_iteration()
    await run_passes(passes, loop, 100)
    assert max(passes_of_iterations) == 1
