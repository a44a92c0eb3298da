"""Cases for `pin why`, shared by tests and benchmarks.

Each fault of the catalogue is injected into a healthy workload, must be diagnosed, and must be fixed by the proposed
command. As many healthy and busy states must cause no alarm.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.busybox import IMAGE

from pincompute.api.change import Break, Change, Pause, Rerun, Restart, Resume, Rollback, Scale
from pincompute.api.documents import read_document
from pincompute.api.names import DESK
from pincompute.api.validation import parse_workload
from pincompute.api.workload_detail import Diagnosis
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.base.reasons import PAUSED, SUSPENDED
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.planning.faults.catalogue import FAULTS, FAULTS_BY_NAME, Fault
from pincompute.platforms.kubernetes.workloads import WorkloadClient

PROJECT = "me"
TIMEOUT_S = 180.0
MAX_CONCURRENT_WORKLOADS = 4
"""Workloads that are tested concurrently."""
EXTRA_CASES = (
    ("wrong-tag", "PinterestStatefulSet"),
    ("wrong-tag", "PinterestJobSet"),
    ("wrong-command", "PinterestJobSet"),
    ("crashes", "PinterestStatefulSet"),
    ("wrong-port", "PinterestStatefulSet"),
    ("oom", "PinterestJobSet"),
    ("unmatched-node-selector", "PinterestStatefulSet"),
    ("too-much-cpu", "PinterestStatefulSet"),
    ("too-much-memory", "PinterestJobSet"),
)
"""Additional cases, for kinds that replace or retry their pods differently."""
BENCH_ONLY_FAULTS = frozenset(
    {
        "post-start-hook-fails", "task-deadline-too-short", "run-fails", "run-wrong-command", "run-wrong-tag",
        "run-deadline-too-short", "run-overlaps", "replica-fails", "replica-wrong-command", "replica-oom",
        "gang-unschedulable",
    }
)  # fmt: skip
"""Faults that only the benchmark covers, to keep the tests short."""
_RUNTIME_FAULT = "missing-runtime"
"""Has no effect without a runtime, and the test platforms have none."""
_PAUSED_REASONS = (PAUSED.code, SUSPENDED.code)

_SERVE = "trap exit TERM; httpd -f -p $PORT -h /etc/configuration & wait"
SERVICE: dict[str, Any] = {
    "kind": "PinterestService",
    "port": 8080,
    "command": ["sh", "-c", _SERVE],
    "configuration": {"index.html": "hello"},
}
_STATEFUL_SET = {**SERVICE, "kind": "PinterestStatefulSet"}
_JOB_SET: dict[str, Any] = {"kind": "PinterestJobSet", "tasks": 2, "retries": 0, "command": ["true"]}
_CRON_JOB: dict[str, Any] = {"kind": "PinterestCronJob", "schedule": "30 3 1 1 *", "command": ["true"]}
_TRAINING_JOB: dict[str, Any] = {"kind": "PinterestTrainingJob", "workers": 1, "command": ["sleep", "5"]}
_REQUIRED_SPEC = {"shrunk-storage": {"storage": "1Mi"}}
"""Fields that a workload needs for a fault."""
_DAEMON: dict[str, Any] = {"kind": "PinterestDaemon", "command": ["sleep", "infinity"]}
KIND_SPECS = {each["kind"]: each for each in (SERVICE, _STATEFUL_SET, _JOB_SET, _CRON_JOB, _TRAINING_JOB, _DAEMON)}


class TargetCluster(NamedTuple):
    """A platform under test, with a client."""

    state: Path
    name: str
    client: Client
    real: bool
    slots: asyncio.Semaphore
    project: str = PROJECT

    @property
    def workloads(self) -> WorkloadClient:
        return WorkloadClient(self.client)

    async def pin(self, *arguments: str) -> tuple[int, str]:
        variables = {"PIN_STATE": str(self.state), "PIN_NAME": self.name, "PIN_PROJECT": self.project}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pincompute", *arguments,
            env={**os.environ, **variables}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, output.decode()

    async def write(self, name: str, **fields: Any) -> WorkloadSummary:
        text = document(name, self.real, **fields)
        return await self.workloads.write(parse_workload(read_document(text), self.project), manager=DESK)

    async def change(self, name: str, change: Change) -> WorkloadSummary:
        return (await self.workloads.change(self.project, name, change, manager=DESK)).summary

    async def why(self, name: str) -> Diagnosis:
        return await self.workloads.explain(self.project, name)

    async def wait_for_diagnosis(self, name: str, generation: int, *, wrong: bool) -> Diagnosis:
        """Diagnoses after each change, until there is a problem or the workload is done."""
        diagnosis = await self.why(name)
        try:
            async with asyncio.timeout(TIMEOUT_S), aclosing(self.workloads.follow(self.project, name)) as summaries:
                async for summary in summaries:
                    if summary.generation < generation:
                        continue
                    diagnosis = await self.why(name)
                    paused = diagnosis.reason in _PAUSED_REASONS
                    if diagnosis.is_problem or paused or (not wrong and summary.done):
                        break
        except TimeoutError:
            pass
        return diagnosis


class Outcome(NamedTuple):
    """Outcome of one fault, or of one healthy state."""

    name: str
    reason: str
    """The first reported reason."""
    next: str
    detected: bool
    """The reason was an expected one; for a healthy state: no problem was reported."""
    cured: bool = True
    """The proposed command has fixed the problem."""
    details: str = ""

    def __str__(self) -> str:
        label = "ok" if self.detected and self.cured else "NOT FIXED" if self.detected else "MISSED"
        details = f"\n{self.details}" if label != "ok" else ""
        return f"{self.name}: {self.reason}, next: {self.next}: {label}{details}"


@asynccontextmanager
async def open_target_cluster(state: Path, name: str, *, real: bool) -> AsyncIterator[TargetCluster]:
    async with Client(load_kubeconfig(state / name / "kubeconfig"), agent="catalogue") as client:
        yield TargetCluster(state, name, client, real, asyncio.Semaphore(MAX_CONCURRENT_WORKLOADS))


def fault_cases(*, real: bool, all_: bool = False) -> tuple[tuple[Fault, str], ...]:
    """Faults for real nodes, or those for simulated ones, each with a kind; the slowest to detect comes first."""
    default_cases = [
        (each, each.kinds[0])
        for each in FAULTS
        if each.name != _RUNTIME_FAULT and (all_ or each.name not in BENCH_ONLY_FAULTS)
    ]
    extra_cases = [(FAULTS_BY_NAME[fault], kind) for fault, kind in EXTRA_CASES]
    return tuple(
        sorted(
            ((fault, kind) for fault, kind in (*default_cases, *extra_cases) if fault.needs_containers is real),
            key=_slowest_first,
        )
    )


def _slowest_first(case: tuple[Fault, str]) -> bool:
    return case[0].name != "missing-secret-volume"


async def run_faults(cluster: TargetCluster, found: Iterable[tuple[Fault, str]]) -> list[Outcome]:
    return await asyncio.gather(*(_run_in_slot(cluster, _run_fault(cluster, *each)) for each in found))


async def run_healthy_states(cluster: TargetCluster, states: Iterable[HealthyState]) -> list[Outcome]:
    return await asyncio.gather(*(_run_in_slot(cluster, _run_healthy_state(cluster, each)) for each in states))


async def _run_in_slot(cluster: TargetCluster, work: Any) -> Outcome:
    async with cluster.slots:
        outcome: Outcome = await work
    return outcome


async def _run_fault(cluster: TargetCluster, fault: Fault, kind: str) -> Outcome:
    name = f"{kind.removeprefix('Pinterest').lower()}-{fault.name}"
    before = await cluster.wait_for_diagnosis(
        name,
        (await cluster.write(name, **{**KIND_SPECS[kind], **_REQUIRED_SPEC.get(fault.name, {})})).generation,
        wrong=False,
    )
    if before.is_problem:
        return Outcome(
            name, before.reason, "", False, False, f"not healthy before the fault: {before.what} {before.note}"
        )
    broken = await cluster.change(name, Break(fault=fault.name))
    outcome = await apply_remedy(cluster, name, broken.generation, {each.code for each in fault.expected_reasons})
    await cluster.workloads.delete(cluster.project, name)
    return outcome


async def apply_remedy(cluster: TargetCluster, name: str, generation: int, reasons: set[str]) -> Outcome:
    """Waits for the diagnosis, runs the proposed command, and checks that it fixes the problem."""
    diagnosis = await cluster.wait_for_diagnosis(name, generation, wrong=True)
    details = f"{diagnosis.what}\n{diagnosis.note}\n{diagnosis.next}"
    fixed = False
    if diagnosis.next.startswith("pin "):
        code, output = await cluster.pin(*shlex.split(diagnosis.next)[1:])
        after = await cluster.why(name)
        fixed = code == 0 and not after.is_problem and after.reason not in _PAUSED_REASONS
        details = f"{details}\n{output}{after.reason} {after.what}"
    return Outcome(name, diagnosis.reason, diagnosis.next, diagnosis.reason in reasons, fixed, details)


class HealthyState(NamedTuple):
    """A healthy workload in a busy phase: starting, rolling out, scaling, running a batch."""

    name: str
    spec: dict[str, Any]
    steps: Sequence[Change | dict[str, Any]] = ()
    """Changes and edits, one after the other, without waiting for the previous one."""
    immediate: bool = False
    """Start the steps at once, without waiting until the workload is done."""
    needs_containers: bool = False
    bench_only: bool = False


def healthy_states(*, real: bool, all_: bool = False) -> tuple[HealthyState, ...]:
    return tuple(each for each in HEALTHY_STATES if each.needs_containers is real and (all_ or not each.bench_only))


async def _run_healthy_state(cluster: TargetCluster, state: HealthyState) -> Outcome:
    """Goes through the steps. The outcome counts as detected if none of them causes an alarm."""
    name = f"s-{state.name}"
    summary = await cluster.write(name, **state.spec)
    diagnosis = Diagnosis(label="", is_problem=False, reason="", what="")
    if not state.immediate:
        diagnosis = await cluster.wait_for_diagnosis(name, summary.generation, wrong=False)
    for step in state.steps:
        if diagnosis.is_problem:
            break
        if isinstance(step, dict):
            summary = await cluster.write(name, **{**state.spec, **step})
        else:
            summary = await cluster.change(name, step)
        diagnosis = await cluster.why(name)
    if not diagnosis.is_problem:
        diagnosis = await cluster.wait_for_diagnosis(name, summary.generation, wrong=False)
    await cluster.workloads.delete(cluster.project, name)
    return Outcome(
        state.name,
        diagnosis.reason,
        diagnosis.next,
        not diagnosis.is_problem,
        details=f"{diagnosis.what}\n{diagnosis.note}",
    )


def document(name: str, real: bool, *, kind: str, template: dict[str, Any] | None = None, **spec: Any) -> str:
    least = {"image": IMAGE, "cpu": "10m", "memory": "16Mi"}
    pod = {"spec": {"securityContext": _security(), **(template or {})}}
    whole = {**least, **spec, "template": pod, **({} if real else {"simulated": True})}
    return json.dumps({"apiVersion": "pinterest.com/v1", "kind": kind, "metadata": {"name": name}, "spec": whole})


def _security() -> dict[str, Any]:
    return {"runAsUser": 1000, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


_EDIT = {"environment": {"CHANGED": "now"}}
_SLOW_START = {"command": ["sh", "-c", f"sleep 6; {_SERVE}"]}
_WITH_INIT_CONTAINER = {
    "template": {"initContainers": [{"name": "migrate", "image": IMAGE, "command": ["sleep", "5"]}]},
}
_WARMS_UP = {"command": ["sh", "-c", f"sleep 2; touch /tmp/warm; {_SERVE}"]}
_FAILING_TASK = "sleep 1; exit 3"
_SLOW_ROLLOUT = {"rollout": {"minReadySeconds": 4}}

HEALTHY_STATES: tuple[HealthyState, ...] = (
    *(
        state
        for short, spec in (("service", SERVICE), ("set", _STATEFUL_SET))
        for state in (
            HealthyState(f"{short}-starts", spec),
            HealthyState(f"{short}-up", spec, [Scale(replicas=4)]),
            HealthyState(f"{short}-down", {**spec, "replicas": 4}, [Scale(replicas=1)]),
            HealthyState(f"{short}-none", spec, [Scale(replicas=0)]),
            HealthyState(f"{short}-changes", {**spec, "replicas": 3}, [_EDIT]),
            HealthyState(f"{short}-restarts", {**spec, "replicas": 2}, [Restart()]),
            HealthyState(f"{short}-paused", spec, [Pause(by="ann", because="looking at errors"), Restart()]),
            HealthyState(f"{short}-resumed", spec, [Pause(by="ann"), Restart(), Resume(by="ann")]),
            HealthyState(f"{short}-back", {**spec, "replicas": 2}, [_EDIT, Rollback()]),
            HealthyState(f"{short}-edits", spec, [Scale(replicas=3), _EDIT, Restart()], immediate=True),
        )
    ),
    HealthyState("batch-real", {**_JOB_SET, "tasks": 12, "parallelism": 3}),
    HealthyState("batch-narrow", {**_JOB_SET, "tasks": 6, "parallelism": 1}, [Scale(replicas=3)], immediate=True),
    HealthyState("batch-suspended", _JOB_SET, [Pause(by="ann", because="later")], immediate=True),
    HealthyState("batch-resumed", _JOB_SET, [Pause(by="ann"), Resume(by="ann")], immediate=True),
    HealthyState("batch-rerun", _JOB_SET, [Rerun(tasks="1")]),
    HealthyState("service-edit-and-revert", SERVICE, [_EDIT, {}], immediate=True),
    HealthyState("service-configured", SERVICE, [{"configuration": {"index.html": "good bye"}}]),
    HealthyState("service-moves", SERVICE, [{"port": 8081}]),
    HealthyState("service-slow-rollout", {**SERVICE, "replicas": 3, "rollout": {"minReadySeconds": 1}}, [_EDIT]),
    HealthyState("set-in-steps", {**_STATEFUL_SET, "replicas": 3, "rollout": {"partition": 2}}, [_EDIT]),
    HealthyState("batch-of-items", {"kind": "PinterestJobSet", "items": ["a", "b"], "command": ["true"]}),
    HealthyState("batch-half-is-enough", {**_JOB_SET, "tasks": 4, "enough": "50%"}),
    HealthyState("nightly-at-another-time", _CRON_JOB, [{"schedule": "30 4 1 1 *"}]),
    HealthyState("nightly-twice", _CRON_JOB, [Rerun(), Rerun()], immediate=True),
    HealthyState("nightly-resumed", _CRON_JOB, [Pause(by="ann"), Resume(by="ann")]),
    HealthyState("nightly-waits", _CRON_JOB),
    HealthyState("nightly-real", _CRON_JOB, [Rerun()]),
    HealthyState("nightly-suspended", _CRON_JOB, [Pause(by="ann")]),
    HealthyState("starts-slowly", {**SERVICE, **_SLOW_START}, needs_containers=True),
    HealthyState("prepares", {**SERVICE, **_WITH_INIT_CONTAINER}, needs_containers=True),
    HealthyState("first-replica", SERVICE, needs_containers=True),
    HealthyState("rolls", {**SERVICE, "replicas": 2}, [_EDIT], needs_containers=True),
    HealthyState("rolls-slowly", {**SERVICE, "replicas": 2}, [_SLOW_START], needs_containers=True),
    HealthyState("slow-rollout", {**SERVICE, **_SLOW_ROLLOUT, "replicas": 2}, [_EDIT], needs_containers=True),
    HealthyState("grows", SERVICE, [Scale(replicas=3)], needs_containers=True),
    HealthyState("shrinks", {**SERVICE, "replicas": 3}, [Scale(replicas=1)], needs_containers=True),
    HealthyState("rolls-back", SERVICE, [_EDIT, Rollback()], needs_containers=True),
    HealthyState("restarts", {**SERVICE, "replicas": 2}, [Restart()], needs_containers=True),
    HealthyState("numbered", {**_STATEFUL_SET, "replicas": 2}, [_EDIT], needs_containers=True),
    HealthyState("numbered-slowly", {**_STATEFUL_SET, **_SLOW_START, "replicas": 2}, needs_containers=True),
    HealthyState("works", {**_JOB_SET, "tasks": 4, "parallelism": 2, "command": ["sleep", "3"]}, needs_containers=True),
    HealthyState("works-twice", _JOB_SET, [Rerun(tasks="0")], needs_containers=True),
    HealthyState("retries", {**_JOB_SET, "retries": 3, "command": ["sh", "-c", "sleep 1"]}, needs_containers=True),
    HealthyState("sweeps", _CRON_JOB, [Rerun()], needs_containers=True),
    HealthyState("warms-up", {**SERVICE, **_WARMS_UP}, needs_containers=True, bench_only=True),
    HealthyState(
        "configuration-reloaded",
        SERVICE,
        [{"configuration": {"index.html": "good bye"}}],
        needs_containers=True,
        bench_only=True,
    ),
    HealthyState(
        "tries-again",
        {**_JOB_SET, "retries": 3, "command": ["sh", "-c", _FAILING_TASK]},
        needs_containers=True,
        bench_only=True,
    ),
    HealthyState("stores", {**_STATEFUL_SET, "storage": "1Mi"}, [_EDIT], bench_only=True),
    HealthyState("stores-more", {**_STATEFUL_SET, "storage": "1Mi"}, [Scale(replicas=2)], bench_only=True),
    HealthyState("trains", _TRAINING_JOB, needs_containers=True, bench_only=True),
    HealthyState("trains-again", _TRAINING_JOB, [Rerun()], needs_containers=True, bench_only=True),
)
