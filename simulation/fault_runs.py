"""Runs a scenario with one fault at one write and compares the result with that of the undisturbed run.

A run with a fault at write N is identical to the undisturbed run up to write N. So the scenario is run only once for
all faults: at each write the process forks, once per fault to try there. A child injects its fault, runs to the end of
that step and one step more, writes its verdict into a pipe and exits. The parent waits for its children and continues
undisturbed. A fork has all state, including tasks in the middle of an await, which no snapshot in Python code
could.
"""

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
from simulation.clock import DeadlockError, VirtualEventLoop, run_in_virtual_time
from simulation.cluster import NotSettledError, SimulatedCluster
from simulation.fault_injection import FaultInjector
from simulation.faults import (
    CACHE_FAULTS,
    CRASHES,
    FOREIGN_FAULTS,
    KILLING_FAULTS,
    WRITE_CONFLICT,
    FaultPoint,
    WorldMark,
    equivalent_crashes,
    other_faults_at,
)
from simulation.recorder import StateRecorder, StepRecord, ignore_intermediate, record_differences
from simulation.scenario_steps import Scenario
from simulation.scenarios import CONVERGENT_KINDS

STEPS_AFTER_FAULT = 1
"""Steps that are run after the one with the fault. By then the cluster is the same again as without it."""
MAX_PASSES = 5
"""Passes that a key may need to come to rest while no other writer acts."""
MAX_VIOLATIONS = 12
"""Violations that a verdict holds."""
MAX_VIOLATION_CHARS = 2000
MAX_VERDICT_BYTES = 60_000
"""Less than a pipe buffers: a child can write its verdict and exit before the parent reads it."""


class FaultVerdict(NamedTuple):
    """The result of one fault point."""

    point: FaultPoint
    write: str
    """Method and path of the write."""
    passes: int
    """The most passes that any key needed to come to rest."""
    violations: tuple[str, ...]


class ForkingInjector(FaultInjector):
    """Forks the process at each write, once per fault to try there. The parent itself stays undisturbed."""

    def __init__(self, faults_by_write: Mapping[int, Sequence[str]], *, stop_at_first: bool) -> None:
        super().__init__()
        self.verdicts: list[FaultVerdict] = []
        self.report_fd = -1
        """In a child: the pipe to the parent."""
        self._faults_by_write = faults_by_write
        self._stop_at_first = stop_at_first

    def before_write(self, number: int, request: Request) -> None:
        if self.point is not None or (self._stop_at_first and any(each.violations for each in self.verdicts)):
            return
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualEventLoop)
        # A garbage collection in a child would write to the pages of all objects, which would duplicate them.
        gc.freeze()
        children = []
        for fault in self._faults_by_write.get(number, ()):
            read_fd, write_fd = os.pipe()
            if os.fork() == 0:
                gc.disable()
                loop.enter_forked_copy()
                self.point = FaultPoint(number, fault)
                self.report_fd = write_fd
                return
            os.close(write_fd)
            children.append((FaultPoint(number, fault), read_fd))
        for point, read_fd in children:
            with os.fdopen(read_fd, "rb") as pipe:
                report = pipe.read()
            os.wait()
            verdict = (
                msgspec.json.decode(report, type=FaultVerdict)
                if report
                else FaultVerdict(point, "", 0, ("the forked process exited without a verdict",))
            )
            self.verdicts.append(verdict._replace(point=point, write=f"{request.method} {request.path}"))

    def report_to_parent(self, verdict: FaultVerdict) -> None:
        """Ends the child. Nothing else may run in it, such as the tests of the parent."""
        os.write(self.report_fd, msgspec.json.encode(verdict)[:MAX_VERDICT_BYTES])
        os._exit(0)


class ScenarioRun(NamedTuple):
    """One run of a scenario from beginning to end."""

    records: tuple[StepRecord | None, ...]
    """One per step; None for a step that cannot be compared."""
    writes: tuple[str, ...]
    steps: tuple[int, ...]
    """The step in which each write was sent."""
    world_marks: tuple[tuple[WorldMark, ...], ...]
    violations: tuple[str, ...]
    """Violations that need no comparison with another run."""
    passes: int
    process_starts: int


def run_scenario(scenario: Scenario, injector: FaultInjector) -> ScenarioRun:
    with capture_logs() as logs:
        run = run_in_virtual_time(_run_scenario(scenario, injector))
    errors = [f"{each['event']}: {each}" for each in logs if each["log_level"] == "error"]
    return run._replace(violations=(*run.violations, *errors))


async def _run_scenario(scenario: Scenario, injector: FaultInjector) -> ScenarioRun:
    cluster = injector.cluster = SimulatedCluster(injector)
    violations: list[str] = []
    records: list[StepRecord | None] = []
    recorder = StateRecorder(cluster.store)
    await cluster.begin()
    try:
        await cluster.settle()
        fault_step = len(scenario.steps)
        for index, step in enumerate(scenario.steps):
            if index > fault_step + STEPS_AFTER_FAULT:
                break
            injector.step = index
            injector.next_step = _early_next_step(scenario, index, cluster)
            recorder.begin()
            # A step that was started early has been done already.
            if not (injector.hurried_step and index == fault_step + 1):
                await step.action(cluster.user)
            await cluster.settle()
            if injector.fault_happened and index < fault_step:
                fault_step = index
                violations += await _finish_fault(injector, cluster)
            if index != fault_step or injector.fault in CRASHES:
                violations += [
                    f"{step.description}: written although the cluster was settled: {each}"
                    for each in injector.late_writes
                ]
            violations += [f"{step.description}: {each}" for each in cluster.unhealthy_workloads()]
            merged_with_next = injector.hurried_step is not None and index == fault_step
            records.append(None if merged_with_next else recorder.end(is_transient=step.is_transient))
        violations += await cluster.watch_calm(injector.writes)
    except (NotSettledError, DeadlockError) as error:
        violations.append(str(error))
    finally:
        await cluster.end()
    violations += injector.violations
    marks = tuple(tuple(each) for each in injector.world_marks)
    return ScenarioRun(
        tuple(records),
        tuple(injector.writes),
        tuple(injector.steps),
        marks,
        tuple(violations),
        cluster.history.max_passes,
        cluster.process_starts,
    )


def _early_next_step(scenario: Scenario, index: int, cluster: SimulatedCluster) -> Callable[[], Awaitable[None]] | None:
    following = scenario.steps[index + 1] if can_hurry(scenario, index) else None
    return (lambda: following.action(cluster.user)) if following else None


def can_hurry(scenario: Scenario, index: int) -> bool:
    """Whether users may start the next step before this one is done, and the result can still be compared."""
    later = scenario.steps[index + 1 : index + 2]
    return (
        scenario.name in CONVERGENT_KINDS
        and bool(later)
        and not (later[0].needs_previous_step or scenario.steps[index].is_transient)
    )


async def _finish_fault(injector: FaultInjector, cluster: SimulatedCluster) -> list[str]:
    """Waits for a step that was started early, removes what foreign writers left, and checks that a conflict was
    noticed."""
    if injector.hurried_step:
        await injector.hurried_step
    if injector.fault == WRITE_CONFLICT and not (cluster.history.conflicts or injector.at_eviction):
        return ["the pass went on after a write conflict"]
    if injector.foreign_writer is None:
        return []
    violations = injector.foreign_writer.remove_own_object()
    cluster.history.reset()
    await cluster.settle()
    return violations


def run_undisturbed(scenario: Scenario) -> ScenarioRun:
    return run_scenario(scenario, FaultInjector())


def judge_run(scenario: Scenario, undisturbed: ScenarioRun, found: ScenarioRun, point: FaultPoint) -> FaultVerdict:
    """Compares a run with the undisturbed one, step by step."""
    violations = list(found.violations)
    process_starts = 2 if point.fault in KILLING_FAULTS else 1
    if not violations and found.process_starts != process_starts:
        violations.append(f"the operator started {found.process_starts} times instead of {process_starts}")
    if found.passes > MAX_PASSES:
        violations.append(f"a key needed {found.passes} passes although no other writer acted")
    if point.fault in CACHE_FAULTS and not scenario.steps[undisturbed.steps[point.write]].is_transient:
        violations += [f"sent twice because of an old cache: {each}" for each in _repeats(undisturbed, found, point)]
    # After a foreign writer interfered, intermediate objects may differ. Only the final state has to be the same.
    final_state_only = point.fault in FOREIGN_FAULTS
    for step, before, after in zip(scenario.steps, undisturbed.records, found.records, strict=False):
        if before and after and (not final_state_only or scenario.name in CONVERGENT_KINDS):
            differences = (
                record_differences(ignore_intermediate(before), ignore_intermediate(after))
                if final_state_only
                else record_differences(before, after)
            )
            violations += [f"{step.description}: {each}" for each in differences]
    return FaultVerdict(
        point, "", found.passes, tuple(each[:MAX_VIOLATION_CHARS] for each in violations[:MAX_VIOLATIONS])
    )


def _repeats(undisturbed: ScenarioRun, found: ScenarioRun, point: FaultPoint) -> Iterator[str]:
    """Creates and deletes beyond those of the undisturbed run. How often an object is updated depends on timing."""
    step = undisturbed.steps[point.write]
    expected, sent = (
        Counter(
            write for write, at in zip(run.writes, run.steps, strict=True) if at == step and _creates_or_deletes(write)
        )
        for run in (undisturbed, found)
    )
    return (sent - expected).elements()


def _creates_or_deletes(write: str) -> bool:
    return write.startswith(("POST", "DELETE")) and not write.endswith("/eviction")


def crash_points(undisturbed: ScenarioRun) -> dict[FaultPoint, FaultPoint]:
    """Every crash of a scenario, each with the equivalent one that is run in its place."""
    return equivalent_crashes(undisturbed.world_marks)


def other_fault_points(scenario: Scenario, undisturbed: ScenarioRun) -> list[FaultPoint]:
    """The faults beside crashes that are tried in a scenario."""
    points: list[FaultPoint] = []
    for number, write in enumerate(undisturbed.writes):
        points += other_faults_at(number, write, can_hurry=can_hurry(scenario, undisturbed.steps[number]))
    return points


def run_fault_points(
    scenario: Scenario, undisturbed: ScenarioRun, points: Iterable[FaultPoint], *, stop_at_first: bool = False
) -> Iterator[FaultVerdict]:
    """Runs the scenario once, forking at each point; yields a verdict for each."""
    faults_by_write: dict[int, list[str]] = {}
    for point in points:
        faults_by_write.setdefault(point.write, []).append(point.fault)
    injector = ForkingInjector(faults_by_write, stop_at_first=stop_at_first)
    run = run_scenario(scenario, injector)
    if injector.point is not None:
        # This is a forked child.
        injector.report_to_parent(judge_run(scenario, undisturbed, run, injector.point))
    assert run.writes == undisturbed.writes, "two undisturbed runs of the same scenario differ"
    yield from injector.verdicts


def run_one_point(scenario: Scenario, point: FaultPoint) -> FaultVerdict:
    """Runs one point without forking, for a debugger."""
    undisturbed = run_undisturbed(scenario)
    write = undisturbed.writes[point.write]
    run = run_scenario(scenario, FaultInjector(point))
    return judge_run(scenario, undisturbed, run, point)._replace(write=write)
