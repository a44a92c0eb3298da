"""A catalogue of real faults: each an ordinary change of a workload, and what `why` has to name first of all."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.workload import Workload
from pincompute.base import reasons
from pincompute.base.reasons import Reason
from pincompute.planning.faults import harm
from pincompute.planning.faults.harm import NOWHERE, Put

_SERVES = ("PinterestService", "PinterestStatefulSet")
_RUNS_ON = (*_SERVES, "PinterestDaemon")
_ONE_PROGRAM = (*_RUNS_ON, "PinterestJobSet")
"""Kinds whose pods are made at once, and all of one template."""
_AT_TIMES = ("PinterestCronJob",)
_TRAINS = ("PinterestTrainingJob",)
_ENDED = (reasons.PROGRAM_FAILED, reasons.CRASH_LOOP)
"""How it is told depends on how often it has ended by then."""
_NO_ROOM = (reasons.UNSCHEDULABLE, reasons.QUOTA_USED_UP)
"""A project's quota may stand against it before the nodes do."""


class Fault(NamedTuple):
    name: str
    about: str
    reasons: tuple[Reason, ...]
    """Any of which names it."""
    put: Put
    kinds: tuple[str, ...] = _RUNS_ON
    runs: bool = False
    """Only a node that runs programs shows it."""

    def fits(self, workload: Workload) -> bool:
        return workload.kind in self.kinds and not (self.runs and _pretended(workload))


def fitting(workload: Workload) -> tuple[Fault, ...]:
    return tuple(each for each in FAULTS if each.fits(workload))


def _pretended(workload: Workload) -> bool:
    return workload.spec.simulated or workload.status.simulated


_FALSE = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
_CLAIM = {"claimName": NOWHERE}
_SPREAD = {
    "maxSkew": 1,
    "topologyKey": NOWHERE,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": NOWHERE}},
}
_SELECTOR = {"name": NOWHERE, "key": "password"}

FAULTS: tuple[Fault, ...] = (
    Fault(
        "wrong-tag",
        "the image has no such tag",
        (reasons.IMAGE_PULL_FAILED,),
        harm.image(harm.tagged),
        _ONE_PROGRAM,
        runs=True,
    ),
    Fault(
        "wrong-registry",
        "the image's registry is not there",
        (reasons.REGISTRY_UNREACHABLE, reasons.IMAGE_PULL_FAILED),
        harm.image(harm.elsewhere),
        _ONE_PROGRAM,
        runs=True,
    ),
    Fault(
        "never-fetched",
        "an image that no node has is never fetched",
        (reasons.IMAGE_PULL_FAILED,),
        harm.both(harm.image(harm.tagged), harm.container(imagePullPolicy="Never")),
        runs=True,
    ),
    Fault(
        "wrong-command",
        "the command is not in the image",
        (reasons.COMMAND_NOT_FOUND, reasons.TASK_FAILED),
        harm.runs("/no/such/program"),
        _ONE_PROGRAM,
        runs=True,
    ),
    Fault("ends-at-once", "the program ends at once, and well", _ENDED, harm.runs("sh", "-c", "exit 0"), runs=True),
    Fault(
        "crashes",
        "the program fails after a second",
        _ENDED,
        harm.runs("sh", "-c", "sleep 1; echo the index is torn; exit 3"),
        runs=True,
    ),
    Fault(
        "fails",
        "every task fails",
        (reasons.TASK_FAILED, *_ENDED),
        harm.runs("sh", "-c", "echo bad header; exit 3"),
        ("PinterestJobSet",),
        runs=True,
    ),
    Fault(
        "hungry",
        "the program needs more memory than it has",
        (reasons.OUT_OF_MEMORY,),
        harm.both(harm.runs("dd", "if=/dev/zero", "of=/dev/null", "bs=50000000", "count=1"), harm.asks(memory="32Mi")),
        _ONE_PROGRAM,
        runs=True,
    ),
    Fault(
        "read-only",
        "the program writes where it may not",
        _ENDED,
        harm.both(harm.runs("sh", "-c", "echo x > /tmp/x"), harm.rights(readOnlyRootFilesystem=True)),
        runs=True,
    ),
    Fault(
        "wrong-port",
        "its health is asked for on a port that nothing listens on",
        (reasons.PORT_SILENT,),
        harm.container(readinessProbe={"tcpSocket": {"port": 9}, "periodSeconds": 1}),
        _SERVES,
        runs=True,
    ),
    Fault(
        "wrong-path",
        "its health is asked for on a path that it does not know",
        (reasons.HEALTH_CHECK_FAILED,),
        harm.checked,
        ("PinterestService",),
        runs=True,
    ),
    Fault(
        "never-ready",
        "its readiness probe fails",
        (reasons.PROBE_FAILED,),
        harm.container(readinessProbe=_FALSE),
        runs=True,
    ),
    Fault(
        "killed", "its liveness probe ends it", (reasons.PROBE_FAILED,), harm.container(livenessProbe=_FALSE), runs=True
    ),
    Fault(
        "never-started",
        "its startup probe fails",
        (reasons.PROBE_FAILED,),
        harm.container(startupProbe=_FALSE),
        runs=True,
    ),
    Fault(
        "first-fails",
        "what runs before the program fails",
        _ENDED,
        harm.before("migrate", "sh", "-c", "echo no such table; exit 4"),
        runs=True,
    ),
    Fault(
        "no-configuration",
        "its variables come from a ConfigMap that is not there",
        (reasons.CONFIGURATION_MISSING,),
        harm.container(envFrom=[{"configMapRef": {"name": NOWHERE}}]),
        runs=True,
    ),
    Fault(
        "no-secret",
        "a variable comes from a Secret that is not there",
        (reasons.CONFIGURATION_MISSING,),
        harm.variable(secretKeyRef=_SELECTOR),
        runs=True,
    ),
    Fault(
        "no-keys",
        "a volume is a Secret that is not there",
        (reasons.CONFIGURATION_MISSING,),
        harm.volume(secret={"secretName": NOWHERE}),
        runs=True,
    ),
    Fault(
        "as-root",
        "it runs as root where nobody may",
        (reasons.RUNS_AS_ROOT, reasons.POD_SECURITY),
        harm.rights(runAsUser=0, runAsNonRoot=True),
        runs=True,
    ),
    Fault(
        "privileged", "it asks for rights on the node", (reasons.POD_SECURITY,), harm.rights(privileged=True), _SERVES
    ),
    Fault("too-much-cpu", "no node has so many processors", _NO_ROOM, harm.asks(cpu="4000"), _ONE_PROGRAM),
    Fault("too-much-memory", "no node has so much memory", _NO_ROOM, harm.asks(memory="900Ti"), _ONE_PROGRAM),
    Fault("no-gpu", "no node has such a processor for graphics", _NO_ROOM, harm.fields(gpus=8)),
    Fault(
        "no-disk",
        "no node has so much scratch space",
        _NO_ROOM,
        harm.container(resources={"requests": {"ephemeral-storage": "900Ti"}}),
    ),
    Fault(
        "no-node",
        "no node has the label that it asks for",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(nodeSelector={"disk": NOWHERE}),
        _SERVES,
    ),
    Fault(
        "no-zone",
        "no node is where it wants to be",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(affinity=harm.labelled(NOWHERE)),
        _SERVES,
    ),
    Fault(
        "no-claim",
        "it mounts a claim that is not there",
        (reasons.CLAIM_NOT_BOUND,),
        harm.volume(persistentVolumeClaim=_CLAIM),
        _SERVES,
    ),
    Fault(
        "closed-gate",
        "it waits for a gate that nobody opens",
        (reasons.GATE_CLOSED,),
        harm.pod(readinessGates=[{"conditionType": "example.com/nobody"}]),
        _SERVES,
        runs=True,
    ),
    Fault(
        "no-runtime-class",
        "it asks for a way to run containers that no node has",
        (reasons.COPY_REFUSED,),
        harm.pod(runtimeClassName=NOWHERE),
        ("PinterestService",),
    ),
    Fault(
        "no-storage",
        "its storage is of a class that is not there",
        (reasons.CLAIM_NOT_BOUND,),
        harm.stores,
        ("PinterestStatefulSet",),
    ),
    Fault(
        "on-the-node",
        "it mounts a folder of the node",
        (reasons.POD_SECURITY,),
        harm.volume(hostPath={"path": "/etc"}),
        _SERVES,
    ),
    Fault(
        "no-friend",
        "it wants to be near something that is nowhere",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(affinity=harm.near(NOWHERE)),
        _SERVES,
    ),
    Fault(
        "uneven",
        "it wants to be spread over something that no node is part of",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(topologySpreadConstraints=[_SPREAD]),
        _SERVES,
    ),
    Fault(
        "hook-fails",
        "what is to be done when it starts cannot be done",
        (reasons.START_FAILED, *_ENDED, reasons.KILLED),
        harm.container(lifecycle={"postStart": {"exec": {"command": ["false"]}}}),
        runs=True,
    ),
    Fault("forgotten", "somebody paused it, and left", (reasons.PAUSED,), harm.paused),
    Fault(
        "too-short",
        "its deadline is shorter than its work",
        (reasons.DEADLINE_EXCEEDED,),
        harm.both(harm.runs("sleep", "600"), harm.fields(deadline_seconds=1)),
        ("PinterestJobSet",),
        runs=True,
    ),
    Fault(
        "task-too-short",
        "the deadline of a task is shorter than its work",
        (reasons.DEADLINE_EXCEEDED,),
        harm.both(harm.runs("sleep", "600"), harm.fields(task_deadline_seconds=1)),
        ("PinterestJobSet",),
        runs=True,
    ),
    Fault(
        "run-fails",
        "its next run, which is now, fails",
        _ENDED,
        harm.now(harm.runs("sh", "-c", "echo the ledger is locked; exit 5")),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "run-cannot-begin",
        "its next run, which is now, has a command that is not in the image",
        (reasons.COMMAND_NOT_FOUND,),
        harm.now(harm.runs("/no/such/program")),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "run-has-no-image",
        "its next run, which is now, has an image that is nowhere",
        (reasons.IMAGE_PULL_FAILED,),
        harm.now(harm.image(harm.tagged)),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "run-too-long",
        "its next run, which is now, takes longer than it may",
        (reasons.DEADLINE_EXCEEDED,),
        harm.now(harm.both(harm.runs("sleep", "600"), harm.fields(deadline_seconds=1))),
        _AT_TIMES,
        runs=True,
    ),
    Fault(
        "run-has-no-room",
        "its next run, which is now, needs more than any node has",
        _NO_ROOM,
        harm.now(harm.asks(cpu="4000")),
        _AT_TIMES,
    ),
    Fault(
        "copy-fails",
        "a copy that trains fails",
        (reasons.COPY_FAILED, *_ENDED),
        harm.runs("sh", "-c", "echo the loss is not a number; exit 6"),
        _TRAINS,
        runs=True,
    ),
    Fault(
        "copy-cannot-begin",
        "the command of those that train is not in the image",
        (reasons.COMMAND_NOT_FOUND,),
        harm.runs("/no/such/program"),
        _TRAINS,
        runs=True,
    ),
    Fault(
        "copies-hungry",
        "those that train need more memory than they have",
        (reasons.OUT_OF_MEMORY,),
        harm.both(harm.runs("dd", "if=/dev/zero", "of=/dev/null", "bs=50000000", "count=1"), harm.asks(memory="32Mi")),
        _TRAINS,
        runs=True,
    ),
    Fault(
        "never-together",
        "only some of those that train find room",
        (reasons.GANG_SPLIT, *_NO_ROOM),
        harm.crowded,
        _TRAINS,
        runs=True,
    ),
)
BY_NAME = {each.name: each for each in FAULTS}
