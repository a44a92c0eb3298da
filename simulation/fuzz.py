"""Random faults: one seed draws all faults of a run. When they stop, the cluster must reach the right state.

All faults happen at once: crashes, lost requests and responses, refusals, late and broken watches, compacted history.
The users go through the steps of a scenario without waiting for the operator. After the last step the faults stop, and
the cluster gets time to settle.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import NamedTuple

from structlog.testing import capture_logs

from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.errors import ApiError, parse_error
from pincompute.kube.request import Request
from simulation.api_errors import ApiRefusal
from simulation.clock import DeadlockError, run_in_virtual_time
from simulation.cluster import NotSettledError, SimulatedCluster
from simulation.fault_injection import is_reconcile_write
from simulation.fault_runs import MAX_PASSES, MAX_VIOLATION_CHARS, MAX_VIOLATIONS
from simulation.recorder import StateRecorder, StepRecord, record_differences
from simulation.scenario_steps import Scenario
from simulation.scenarios import CONVERGENT_KINDS, SCENARIOS
from simulation.transport import WATCH_DELAY_S, FaultHooks, connection_lost

REFUSALS = ((409, "Conflict"), (429, "TooManyRequests"), (500, "InternalError"), (503, "ServiceUnavailable"))
MAX_EXTRA_WATCH_DELAY_S = 5.0
MAX_STEP_INTERVAL_S = 30.0


class RandomFaults(FaultHooks):
    """Draws faults with probabilities that are drawn as well, so that each run has its own mixture of faults."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cluster: SimulatedCluster | None = None
        self.enabled = True
        self.writes: list[str] = []
        self.digest = hashlib.sha256()
        """Of every request, reads included, with the time at which it was sent."""
        # The third power makes small probabilities common: a run with only a few faults gets further.
        (
            self.crash_probability,
            self.loss_probability,
            self.refusal_probability,
            self.cut_probability,
            self.delay_probability,
            self.compaction_probability,
        ) = (self.random.random() ** 3 * maximum for maximum in (0.1, 0.2, 0.2, 0.05, 0.5, 0.02))

    async def before_request(self, request: Request) -> None:
        sent = request.method, request.path, sorted(request.query.items()), asyncio.get_running_loop().time()
        self.digest.update(repr(sent).encode() + request.body)
        if is_reconcile_write(request):
            self.writes.append(f"{request.method} {request.path}")
        if self._draw(self.loss_probability):
            raise connection_lost(request)
        if self._draw(self.refusal_probability):
            code, reason = self.random.choice(REFUSALS)
            if request.method != "GET" or code != 409:
                raise parse_error(ApiRefusal(code, reason, "random fault").body, about=request.about)
        if is_reconcile_write(request) and self._draw(self.crash_probability):
            await self._kill()

    async def after_request(self, request: Request, refused: ApiError | None) -> None:
        if self._draw(self.loss_probability):
            raise connection_lost(request)
        if is_reconcile_write(request) and self._draw(self.crash_probability):
            await self._kill()

    async def watch_delay_s(self, request: Request) -> float:
        assert self.cluster
        if self._draw(self.compaction_probability):
            self.cluster.store.compact()
        if self._draw(self.cut_probability):
            raise connection_lost(request)
        extra_s = self.random.random() * MAX_EXTRA_WATCH_DELAY_S if self._draw(self.delay_probability) else 0.0
        return WATCH_DELAY_S + extra_s

    def _draw(self, probability: float) -> bool:
        return self.enabled and self.random.random() < probability

    async def _kill(self) -> None:
        assert self.cluster
        self.cluster.kill()
        await asyncio.Event().wait()


class FuzzResult(NamedTuple):
    """The result of one seed."""

    seed: int
    kind: str
    """The name of the scenario."""
    steps: int
    process_starts: int
    passes: int
    trace: str
    """Digest of every request. The same seed must give the same digest in every process."""
    violations: tuple[str, ...]


def run_seed(seed: int, kind: str = "") -> FuzzResult:
    """Runs a scenario, drawn by the seed unless it is named, with the random faults of the seed."""
    chance = random.Random(seed)
    scenario = SCENARIOS[kind or chance.choice(list(SCENARIOS))]
    steps = chance.randint(1, len(scenario.steps))
    with capture_logs() as logs:
        found, result = run_in_virtual_time(_run_disturbed(scenario, steps, seed))
        errors = [f"{each['event']}: {each}" for each in logs if each["log_level"] == "error"]
        expected = run_in_virtual_time(_run_undisturbed(scenario, steps)) if scenario.name in CONVERGENT_KINDS else None
    violations = [*result.violations, *errors]
    if expected is not None and found is not None:
        violations += record_differences(expected, found)
    return result._replace(violations=tuple(each[:MAX_VIOLATION_CHARS] for each in violations[:MAX_VIOLATIONS]))


async def _run_disturbed(scenario: Scenario, steps: int, seed: int) -> tuple[StepRecord | None, FuzzResult]:
    faults = RandomFaults(seed)
    cluster = faults.cluster = SimulatedCluster(faults, seed)
    recorder = StateRecorder(cluster.store)
    violations: list[str] = []
    found = None
    await cluster.begin()
    try:
        for step in scenario.steps[:steps]:
            await step.action(cluster.user)
            await asyncio.sleep(faults.random.random() * MAX_STEP_INTERVAL_S)
        faults.enabled = False
        cluster.history.reset()
        await cluster.settle()
        found = recorder.end(is_transient=True)
        violations += [f"{each} has a spec that no status refers to" for each in _unobserved(cluster)]
        if cluster.history.max_passes > MAX_PASSES:
            violations.append(f"a key needed {cluster.history.max_passes} passes although no other writer acted")
        violations += await cluster.watch_calm(faults.writes)
    except (NotSettledError, DeadlockError) as error:
        violations.append(str(error))
    finally:
        await cluster.end()
    trace = faults.digest.hexdigest()[:12]
    return found, FuzzResult(
        seed, scenario.name, steps, cluster.process_starts, cluster.history.max_passes, trace, tuple(violations)
    )


def _unobserved(cluster: SimulatedCluster) -> list[str]:
    """Custom resources with an edit that the operator has not reported on."""
    ours = [each for kind, each in cluster.store.everything() if kind in CUSTOM_RESOURCES.values()]
    return [
        f"{each['kind']}/{each['metadata']['name']}"
        for each in ours
        if each.get("status", {}).get("observedGeneration") != each["metadata"]["generation"]
    ]


async def _run_undisturbed(scenario: Scenario, steps: int) -> StepRecord:
    cluster = SimulatedCluster()
    recorder = StateRecorder(cluster.store)
    await cluster.begin()
    try:
        await cluster.settle()
        for step in scenario.steps[:steps]:
            await step.action(cluster.user)
            await cluster.settle()
        return recorder.end(is_transient=True)
    finally:
        await cluster.end()
