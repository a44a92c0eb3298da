"""Every fault of the catalogue put on a workload that is well, told by `why`, and cured by what it says; and as many
states that are busy and healthy, of which it must say nothing wrong.

The tests and the figures share it."""

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

from tests.busybox import IMAGE

from pincompute.api.account import Answer
from pincompute.api.admission import admit_workload
from pincompute.api.change import Break, Change, Pause, Rerun, Restart, Resume, Rollback, Scale
from pincompute.api.documents import read_one
from pincompute.api.names import DESK
from pincompute.api.summary import Summary
from pincompute.base.reasons import PAUSED, SUSPENDED
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.planning.faults.catalogue import BY_NAME, FAULTS, Fault

PROJECT = "me"
PATIENCE = 180.0
AT_ONCE = 6
"""Workloads that live through their fault side by side."""
ALSO = (
    ("wrong-tag", "PinterestStatefulSet"),
    ("wrong-tag", "PinterestJobSet"),
    ("wrong-command", "PinterestJobSet"),
    ("crashes", "PinterestStatefulSet"),
    ("wrong-port", "PinterestStatefulSet"),
    ("hungry", "PinterestJobSet"),
    ("no-node", "PinterestStatefulSet"),
    ("too-much-cpu", "PinterestStatefulSet"),
    ("too-much-memory", "PinterestJobSet"),
)
"""Faults of kinds whose copies are replaced, or run again, in another way."""
FURTHER = frozenset(
    {
        "hook-fails", "task-too-short", "run-fails", "run-cannot-begin", "run-has-no-image", "run-too-long",
        "run-overlaps", "copy-fails", "copy-cannot-begin", "copies-hungry", "never-together",
    }
)  # fmt: skip
"""Faults that only the figures are made of: a gate has its time."""
_RUNTIME = "lost-runtime"
"""Of which nothing is seen where no runtime is."""
_KEPT_STILL = (PAUSED.code, SUSPENDED.code)

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
_STORES = {"smaller": {"storage": "1Mi"}}
"""What there must be for a fault to be put."""
_KINDS = {each["kind"]: each for each in (SERVICE, _STATEFUL_SET, _JOB_SET, _CRON_JOB, _TRAINING_JOB)}


class Place(NamedTuple):
    """A platform, and who looks on."""

    state: Path
    name: str
    client: Client
    real: bool
    turns: asyncio.Semaphore
    project: str = PROJECT

    @property
    def workloads(self) -> Workloads:
        return Workloads(self.client)

    async def pin(self, *words: str) -> tuple[int, str]:
        variables = {"PIN_STATE": str(self.state), "PIN_NAME": self.name, "PIN_PROJECT": self.project}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pincompute", *words,
            env={**os.environ, **variables}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, said.decode()

    async def write(self, name: str, **fields: Any) -> Summary:
        document = _document(name, self.real, **fields)
        return await self.workloads.write(admit_workload(read_one(document), self.project), manager=DESK)

    async def change(self, name: str, change: Change) -> Summary:
        return (await self.workloads.amend(self.project, name, change, manager=DESK)).summary

    async def why(self, name: str) -> Answer:
        return await self.workloads.why(self.project, name, self.client.clock.now())

    async def told(self, name: str, generation: int, *, wrong: bool) -> Answer:
        """Asked at each change until something is wrong, or nothing is left to be done."""
        answer = await self.why(name)
        try:
            async with asyncio.timeout(PATIENCE), aclosing(self.workloads.follow(self.project, name)) as summaries:
                async for summary in summaries:
                    if summary.generation < generation:
                        continue
                    answer = await self.why(name)
                    still = answer.reason in _KEPT_STILL
                    if answer.wrong or still or (not wrong and summary.done):
                        break
        except TimeoutError:
            pass
        return answer


class Told(NamedTuple):
    """What came of one fault, or of one healthy state."""

    name: str
    first: str
    """The reason that was told first."""
    next: str
    well: bool
    """It was named, or nothing was said where nothing is wrong."""
    cured: bool = True
    words: str = ""

    def __str__(self) -> str:
        outcome = "ok" if self.well and self.cured else "NOT CURED" if self.well else "MISSED"
        more = f"\n{self.words}" if outcome != "ok" else ""
        return f"{self.name}: {self.first}, next: {self.next}: {outcome}{more}"


@asynccontextmanager
async def place(state: Path, name: str, *, real: bool) -> AsyncIterator[Place]:
    async with Client(load(state / name / "kubeconfig"), agent="catalogue") as client:
        yield Place(state, name, client, real, asyncio.Semaphore(AT_ONCE))


def faults(*, real: bool, all_: bool = False) -> tuple[tuple[Fault, str], ...]:
    """Those that need a node which runs programs, or the others, each on a kind of its own, and some on another too;
    what takes longest to be seen comes first."""
    each_once = [
        (each, each.kinds[0]) for each in FAULTS if each.name != _RUNTIME and (all_ or each.name not in FURTHER)
    ]
    further = [(BY_NAME[fault], kind) for fault, kind in ALSO]
    return tuple(sorted(((fault, kind) for fault, kind in (*each_once, *further) if fault.runs is real), key=_soon))


def _soon(case: tuple[Fault, str]) -> bool:
    return case[0].name != "no-keys"


async def suffered(place: Place, found: Iterable[tuple[Fault, str]]) -> list[Told]:
    return await asyncio.gather(*(_in_turn(place, _suffer(place, *each)) for each in found))


async def lived(place: Place, states: Iterable[State]) -> list[Told]:
    return await asyncio.gather(*(_in_turn(place, _live(place, each)) for each in states))


async def _in_turn(place: Place, work: Any) -> Told:
    async with place.turns:
        told: Told = await work
    return told


async def _suffer(place: Place, fault: Fault, kind: str) -> Told:
    name = f"{kind.removeprefix('Pinterest').lower()}-{fault.name}"
    before = await place.told(
        name, (await place.write(name, **{**_KINDS[kind], **_STORES.get(fault.name, {})})).generation, wrong=False
    )
    if before.wrong:
        return Told(name, before.reason, "", False, False, f"it was never well: {before.what} {before.note}")
    broken = await place.change(name, Break(fault=fault.name))
    told = await cured(place, name, broken.generation, {each.code for each in fault.reasons})
    await place.workloads.delete(place.project, name)
    return told


async def cured(place: Place, name: str, generation: int, reasons: set[str]) -> Told:
    """What is told first, and what comes of typing what it says."""
    answer = await place.told(name, generation, wrong=True)
    words = f"{answer.what}\n{answer.note}\n{answer.next}"
    well = False
    if answer.next.startswith("pin "):
        code, said = await place.pin(*shlex.split(answer.next)[1:])
        after = await place.why(name)
        well = code == 0 and not after.wrong and after.reason not in _KEPT_STILL
        words = f"{words}\n{said}{after.reason} {after.what}"
    return Told(name, answer.reason, answer.next, answer.reason in reasons, well, words)


class State(NamedTuple):
    """Busy, and healthy."""

    name: str
    spec: dict[str, Any]
    steps: Sequence[Change | dict[str, Any]] = ()
    """One after the other, without waiting until what came before is done."""
    at_once: bool = False
    """The steps do not wait until it was well."""
    runs: bool = False
    further: bool = False
    """Only the figures are made of it, too."""


def states(*, real: bool, all_: bool = False) -> tuple[State, ...]:
    return tuple(each for each in STATES if each.runs is real and (all_ or not each.further))


async def _live(place: Place, state: State) -> Told:
    """Whatever is said while it goes its way."""
    name = f"s-{state.name}"
    summary = await place.write(name, **state.spec)
    answer = Answer(label="", wrong=False, reason="", what="")
    if not state.at_once:
        answer = await place.told(name, summary.generation, wrong=False)
    for step in state.steps:
        if answer.wrong:
            break
        if isinstance(step, dict):
            summary = await place.write(name, **{**state.spec, **step})
        else:
            summary = await place.change(name, step)
        answer = await place.why(name)
    if not answer.wrong:
        answer = await place.told(name, summary.generation, wrong=False)
    await place.workloads.delete(place.project, name)
    return Told(state.name, answer.reason, answer.next, not answer.wrong, words=f"{answer.what}\n{answer.note}")


def _document(name: str, real: bool, *, kind: str, template: dict[str, Any] | None = None, **spec: Any) -> str:
    least = {"image": IMAGE, "cpu": "10m", "memory": "16Mi"}
    pod = {"spec": {"securityContext": _security(), **(template or {})}}
    whole = {**least, **spec, "template": pod, **({} if real else {"simulated": True})}
    return json.dumps({"apiVersion": "pinterest.com/v1", "kind": kind, "metadata": {"name": name}, "spec": whole})


def _security() -> dict[str, Any]:
    return {"runAsUser": 1000, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


_AFTER = {"environment": {"CHANGED": "now"}}
_SLOW = {"command": ["sh", "-c", f"sleep 6; {_SERVE}"]}
_FIRST = {
    "template": {"initContainers": [{"name": "migrate", "image": IMAGE, "command": ["sleep", "5"]}]},
}
_WARMS_UP = {"command": ["sh", "-c", f"sleep 2; touch /tmp/warm; {_SERVE}"]}
_SECOND = "sleep 1; exit 3"
_GUARDED = {"rollout": {"minReadySeconds": 4}}

STATES: tuple[State, ...] = (
    *(
        state
        for short, spec in (("service", SERVICE), ("set", _STATEFUL_SET))
        for state in (
            State(f"{short}-begins", spec),
            State(f"{short}-up", spec, [Scale(copies=4)]),
            State(f"{short}-down", {**spec, "replicas": 4}, [Scale(copies=1)]),
            State(f"{short}-none", spec, [Scale(copies=0)]),
            State(f"{short}-changes", {**spec, "replicas": 3}, [_AFTER]),
            State(f"{short}-restarts", {**spec, "replicas": 2}, [Restart()]),
            State(f"{short}-paused", spec, [Pause(by="ann", because="looking at errors"), Restart()]),
            State(f"{short}-goes-on", spec, [Pause(by="ann"), Restart(), Resume(by="ann")]),
            State(f"{short}-back", {**spec, "replicas": 2}, [_AFTER, Rollback()]),
            State(f"{short}-edits", spec, [Scale(copies=3), _AFTER, Restart()], at_once=True),
        )
    ),
    State("batch-runs", {**_JOB_SET, "tasks": 12, "parallelism": 3}),
    State("batch-narrow", {**_JOB_SET, "tasks": 6, "parallelism": 1}, [Scale(copies=3)], at_once=True),
    State("batch-suspended", _JOB_SET, [Pause(by="ann", because="later")], at_once=True),
    State("batch-goes-on", _JOB_SET, [Pause(by="ann"), Resume(by="ann")], at_once=True),
    State("batch-again", _JOB_SET, [Rerun(tasks="1")]),
    State("service-there-and-back", SERVICE, [_AFTER, {}], at_once=True),
    State("service-configured", SERVICE, [{"configuration": {"index.html": "good bye"}}]),
    State("service-moves", SERVICE, [{"port": 8081}]),
    State("service-with-care", {**SERVICE, "replicas": 3, "rollout": {"minReadySeconds": 1}}, [_AFTER]),
    State("set-in-steps", {**_STATEFUL_SET, "replicas": 3, "rollout": {"partition": 2}}, [_AFTER]),
    State("batch-of-items", {"kind": "PinterestJobSet", "items": ["a", "b"], "command": ["true"]}),
    State("batch-of-which-half-is-enough", {**_JOB_SET, "tasks": 4, "enough": "50%"}),
    State("nightly-at-another-time", _CRON_JOB, [{"schedule": "30 4 1 1 *"}]),
    State("nightly-twice", _CRON_JOB, [Rerun(), Rerun()], at_once=True),
    State("nightly-goes-on", _CRON_JOB, [Pause(by="ann"), Resume(by="ann")]),
    State("nightly-waits", _CRON_JOB),
    State("nightly-runs", _CRON_JOB, [Rerun()]),
    State("nightly-suspended", _CRON_JOB, [Pause(by="ann")]),
    State("starts-slowly", {**SERVICE, **_SLOW}, runs=True),
    State("prepares", {**SERVICE, **_FIRST}, runs=True),
    State("first-copy", SERVICE, runs=True),
    State("rolls", {**SERVICE, "replicas": 2}, [_AFTER], runs=True),
    State("rolls-slowly", {**SERVICE, "replicas": 2}, [_SLOW], runs=True),
    State("rolls-with-care", {**SERVICE, **_GUARDED, "replicas": 2}, [_AFTER], runs=True),
    State("grows", SERVICE, [Scale(copies=3)], runs=True),
    State("shrinks", {**SERVICE, "replicas": 3}, [Scale(copies=1)], runs=True),
    State("turns-round", SERVICE, [_AFTER, Rollback()], runs=True),
    State("begins-anew", {**SERVICE, "replicas": 2}, [Restart()], runs=True),
    State("numbered", {**_STATEFUL_SET, "replicas": 2}, [_AFTER], runs=True),
    State("numbered-slowly", {**_STATEFUL_SET, **_SLOW, "replicas": 2}, runs=True),
    State("works", {**_JOB_SET, "tasks": 4, "parallelism": 2, "command": ["sleep", "3"]}, runs=True),
    State("works-twice", _JOB_SET, [Rerun(tasks="0")], runs=True),
    State("retries", {**_JOB_SET, "retries": 3, "command": ["sh", "-c", "sleep 1"]}, runs=True),
    State("sweeps", _CRON_JOB, [Rerun()], runs=True),
    State("warms-up", {**SERVICE, **_WARMS_UP}, runs=True, further=True),
    State("is-read-anew", SERVICE, [{"configuration": {"index.html": "good bye"}}], runs=True, further=True),
    State("tries-again", {**_JOB_SET, "retries": 3, "command": ["sh", "-c", _SECOND]}, runs=True, further=True),
    State("stores", {**_STATEFUL_SET, "storage": "1Mi"}, [_AFTER], further=True),
    State("stores-more", {**_STATEFUL_SET, "storage": "1Mi"}, [Scale(copies=2)], further=True),
    State("trains", _TRAINING_JOB, runs=True, further=True),
    State("trains-again", _TRAINING_JOB, [Rerun()], runs=True, further=True),
)
