"""A catalogue of real faults: each an ordinary change of a workload, and what `why` has to name first of all."""

from __future__ import annotations

from pincompute.api.workload import Hold, Workload
from pincompute.base import reasons
from pincompute.planning.faults import harm
from pincompute.planning.faults.fault import ENDED, NO_ROOM, ONE_PROGRAM, SERVES, Fault, has_a_runtime, stores
from pincompute.planning.faults.harm import NOWHERE
from pincompute.planning.faults.work import WORK

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
        ONE_PROGRAM,
        runs=True,
    ),
    Fault(
        "wrong-registry",
        "the image's registry is not there",
        (reasons.REGISTRY_UNREACHABLE, reasons.IMAGE_PULL_FAILED),
        harm.image(harm.elsewhere),
        ONE_PROGRAM,
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
        ONE_PROGRAM,
        runs=True,
    ),
    Fault("ends-at-once", "the program ends at once, and well", ENDED, harm.runs("sh", "-c", "exit 0"), runs=True),
    Fault(
        "crashes",
        "the program fails after a second",
        ENDED,
        harm.runs("sh", "-c", "sleep 1; echo the index is torn; exit 3"),
        runs=True,
    ),
    Fault(
        "hungry",
        "the program needs more memory than it has",
        (reasons.OUT_OF_MEMORY,),
        harm.both(harm.runs("dd", "if=/dev/zero", "of=/dev/null", "bs=50000000", "count=1"), harm.asks(memory="32Mi")),
        ONE_PROGRAM,
        runs=True,
    ),
    Fault(
        "read-only",
        "the program writes where it may not",
        ENDED,
        harm.both(harm.runs("sh", "-c", "echo x > /tmp/x"), harm.rights(readOnlyRootFilesystem=True)),
        runs=True,
    ),
    Fault(
        "wrong-port",
        "its health is asked for on a port that nothing listens on",
        (reasons.PORT_SILENT,),
        harm.container(readinessProbe={"tcpSocket": {"port": 9}, "periodSeconds": 1}),
        SERVES,
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
        ENDED,
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
        "privileged", "it asks for rights on the node", (reasons.POD_SECURITY,), harm.rights(privileged=True), SERVES
    ),
    Fault("too-much-cpu", "no node has so many processors", NO_ROOM, harm.asks(cpu="4000"), ONE_PROGRAM),
    Fault("too-much-memory", "no node has so much memory", NO_ROOM, harm.asks(memory="900Ti"), ONE_PROGRAM),
    Fault("no-gpu", "no node has such a processor for graphics", NO_ROOM, harm.fields(gpus=8)),
    Fault(
        "no-disk",
        "no node has so much scratch space",
        NO_ROOM,
        harm.container(resources={"requests": {"ephemeral-storage": "900Ti"}}),
    ),
    Fault(
        "no-node",
        "no node has the label that it asks for",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(nodeSelector={"disk": NOWHERE}),
        SERVES,
    ),
    Fault(
        "no-zone",
        "no node is where it wants to be",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(affinity=harm.labelled(NOWHERE)),
        SERVES,
    ),
    Fault(
        "no-claim",
        "it mounts a claim that is not there",
        (reasons.CLAIM_NOT_BOUND,),
        harm.volume(persistentVolumeClaim=_CLAIM),
        SERVES,
    ),
    Fault(
        "closed-gate",
        "it waits for a gate that nobody opens",
        (reasons.GATE_CLOSED,),
        harm.pod(readinessGates=[{"conditionType": "example.com/nobody"}]),
        SERVES,
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
        SERVES,
    ),
    Fault(
        "no-friend",
        "it wants to be near something that is nowhere",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(affinity=harm.near(NOWHERE)),
        SERVES,
    ),
    Fault(
        "uneven",
        "it wants to be spread over something that no node is part of",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(topologySpreadConstraints=[_SPREAD]),
        SERVES,
    ),
    Fault(
        "hook-fails",
        "what is to be done when it starts cannot be done",
        (reasons.START_FAILED, *ENDED, reasons.KILLED),
        harm.container(lifecycle={"postStart": {"exec": {"command": ["false"]}}}),
        runs=True,
    ),
    Fault("forgotten", "somebody paused it, and left", (reasons.PAUSED,), harm.paused),
    Fault(
        "no-such-volume",
        "it mounts a volume that it does not have",
        (reasons.CLUSTER_REFUSED,),
        harm.container(volumeMounts=[{"name": NOWHERE, "mountPath": "/nowhere"}]),
    ),
    Fault(
        "misspelled",
        "a field has a value that Kubernetes does not know",
        (reasons.CLUSTER_REFUSED,),
        harm.container(imagePullPolicy="Perhaps"),
    ),
    Fault(
        "on-no-node",
        "it names a node that there is not",
        (reasons.NO_NODE_MATCHES,),
        harm.pod(nodeName=NOWHERE),
        ("PinterestService",),
    ),
    Fault(
        "smaller",
        "its storage is to shrink",
        (reasons.CANNOT_CHANGE,),
        harm.shrinks,
        ("PinterestStatefulSet",),
        of=stores,
        otherwise="it stores nothing",
    ),
    Fault(
        "lost-runtime",
        "it holds a runtime that there is not",
        (reasons.HOLD_GONE,),
        harm.fields(hold=Hold(999_999, "2999-12-31", "nobody knows")),
        of=has_a_runtime,
        otherwise="it has no runtime",
    ),
    *WORK,
)
BY_NAME = {each.name: each for each in FAULTS}


def fitting(workload: Workload) -> tuple[Fault, ...]:
    return tuple(each for each in FAULTS if each.fits(workload))
