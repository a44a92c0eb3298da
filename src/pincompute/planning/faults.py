"""A catalogue of real faults: each an ordinary change of a workload, and what `why` has to name first of all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from pincompute.api.pod import main_container
from pincompute.api.workload import Hold, Workload
from pincompute.base import reasons
from pincompute.base.reasons import Reason
from pincompute.objects.content import Object

W = TypeVar("W", bound=Workload)
Put = Callable[[Workload], Workload]

_NOWHERE = "nowhere"
_SERVES = ("PinterestService", "PinterestStatefulSet")
_RUNS_ON = (*_SERVES, "PinterestDaemon")
_ONE_PROGRAM = (*_RUNS_ON, "PinterestJobSet")
"""Kinds whose pods are made at once, and all of one template."""
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


def _with(workload: W, **fields: Any) -> W:
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, **fields))


def _fields(**fields: Any) -> Put:
    def put(workload: Workload) -> Workload:
        return _with(workload, **fields)

    return put


def _both(first: Put, second: Put) -> Put:
    def put(workload: Workload) -> Workload:
        return second(first(workload))

    return put


def _elsewhere(image: str) -> str:
    return f"registry.invalid/{image.rpartition('/')[2]}"


def _main(workload: Workload) -> Object:
    return main_container(workload.spec.template, workload.main, own=bool(workload.spec.image)) or {}


def _image(rename: Callable[[str], str]) -> Put:
    def put(workload: Workload) -> Workload:
        if workload.spec.image:
            return _with(workload, image=rename(workload.spec.image))
        return _container(image=rename(_main(workload)["image"]))(workload)

    return put


def _tagged(image: str) -> str:
    """Of the same name; a port of the registry is no tag."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}:{_NOWHERE}"


def _container(**fields: Any) -> Put:
    """Of the program's own container, by the template."""

    def put(workload: Workload) -> Workload:
        main = _main(workload)
        return _pod(
            containers=[
                {**(main or {"name": workload.main}), **fields},
                *(each for each in _given(workload).get("containers", ()) if each is not main),
            ]
        )(workload)

    return put


def _pod(**fields: Any) -> Put:
    def put(workload: Workload) -> Workload:
        return _with(workload, template={**workload.spec.template, "spec": {**_given(workload), **fields}})

    return put


def _given(workload: Workload) -> Object:
    found: Object = workload.spec.template.get("spec", {})
    return found


def _runs(*command: str) -> Put:
    """Another program of the same image."""

    def put(workload: Workload) -> Workload:
        main = _main(workload)
        if "command" in main or "args" in main:
            return _container(command=[*command], args=[])(_with(workload, command=[], arguments=[]))
        return _with(workload, command=[*command], arguments=[])

    return put


def _asks(**amounts: str) -> Put:
    """Whether the short form or the template says how much now."""

    def put(workload: Workload) -> Workload:
        main = _main(workload)
        if "resources" not in main:
            return _with(workload, **amounts)
        less = {name: value for name, value in main.items() if name != "resources"}
        others = [each for each in _given(workload)["containers"] if each is not main]
        return _with(_pod(containers=[less, *others])(workload), **amounts)

    return put


def _rights(**rights: Any) -> Put:
    """Added to those that the container has."""

    def put(workload: Workload) -> Workload:
        return _container(securityContext={**_main(workload).get("securityContext", {}), **rights})(workload)

    return put


def _before(name: str, *command: str) -> Put:
    """A container that runs before the program does, of the same image."""

    def put(workload: Workload) -> Workload:
        image = workload.spec.image or _main(workload).get("image", "")
        first = {"name": name, "image": image, "command": [*command]}
        return _pod(initContainers=[first, *_given(workload).get("initContainers", ())])(workload)

    return put


def _volume(**source: Object) -> Put:
    def put(workload: Workload) -> Workload:
        return _pod(volumes=[*_given(workload).get("volumes", ()), {"name": _NOWHERE, **source}])(workload)

    return put


def _variable(**source: Object) -> Put:
    def put(workload: Workload) -> Workload:
        env = [*_main(workload).get("env", ()), {"name": "NOWHERE", "valueFrom": source}]
        return _container(env=env)(workload)

    return put


def _paused(workload: Workload) -> Workload:
    """Held still, and then a change that never comes to be."""
    spec: Any = workload.spec
    held = _with(workload, rollout=msgspec.structs.replace(spec.rollout, paused="somebody, who has left"))
    return _with(held, environment={**spec.environment, "CHANGED": "since"})


def _checked(workload: Workload) -> Workload:
    spec: Any = workload.spec
    path = "/is/nowhere/to-be-found"
    if hasattr(spec, "load_balancer"):
        check = msgspec.structs.replace(spec.load_balancer.health_check, path=path)
        return _with(workload, load_balancer=msgspec.structs.replace(spec.load_balancer, health_check=check))
    return _with(workload, health_check=msgspec.structs.replace(spec.health_check, path=path))


def _labelled(*labels: str) -> Object:
    """Nodes that have them."""
    terms = [{"matchExpressions": [{"key": each, "operator": "Exists"} for each in labels]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


_FALSE = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
_CLAIM = {"claimName": _NOWHERE}
_SELECTOR = {"name": _NOWHERE, "key": "password"}

FAULTS: tuple[Fault, ...] = (
    Fault(
        "wrong-tag",
        "the image has no such tag",
        (reasons.IMAGE_PULL_FAILED,),
        _image(_tagged),
        _ONE_PROGRAM,
        runs=True,
    ),
    Fault(
        "wrong-registry",
        "the image's registry is not there",
        (reasons.REGISTRY_UNREACHABLE,),
        _image(_elsewhere),
        _ONE_PROGRAM,
        runs=True,
    ),
    Fault(
        "never-fetched",
        "an image that no node has is never fetched",
        (reasons.IMAGE_PULL_FAILED,),
        _both(_image(_tagged), _container(imagePullPolicy="Never")),
        runs=True,
    ),
    Fault(
        "wrong-command",
        "the command is not in the image",
        (reasons.COMMAND_NOT_FOUND,),
        _runs("/no/such/program"),
        _ONE_PROGRAM,
        runs=True,
    ),
    Fault("ends-at-once", "the program ends at once, and well", _ENDED, _runs("sh", "-c", "exit 0"), runs=True),
    Fault(
        "crashes",
        "the program fails after a second",
        _ENDED,
        _runs("sh", "-c", "sleep 1; echo the index is torn; exit 3"),
        runs=True,
    ),
    Fault(
        "fails",
        "every task fails",
        (reasons.TASK_FAILED,),
        _runs("sh", "-c", "echo bad header; exit 3"),
        ("PinterestJobSet",),
        runs=True,
    ),
    Fault(
        "hungry",
        "the program needs more memory than it has",
        (reasons.OUT_OF_MEMORY,),
        _both(_runs("tail", "/dev/zero"), _asks(memory="32Mi")),
        _ONE_PROGRAM,
        runs=True,
    ),
    Fault(
        "read-only",
        "the program writes where it may not",
        _ENDED,
        _both(_runs("sh", "-c", "echo x > /tmp/x"), _rights(readOnlyRootFilesystem=True)),
        runs=True,
    ),
    Fault(
        "wrong-port",
        "its health is asked for on a port that nothing listens on",
        (reasons.PORT_SILENT,),
        _container(readinessProbe={"tcpSocket": {"port": 9}, "periodSeconds": 1}),
        _SERVES,
        runs=True,
    ),
    Fault(
        "wrong-path",
        "its health is asked for on a path that it does not know",
        (reasons.HEALTH_CHECK_FAILED,),
        _checked,
        ("PinterestService",),
        runs=True,
    ),
    Fault(
        "never-ready",
        "its readiness probe fails",
        (reasons.PROBE_FAILED,),
        _container(readinessProbe=_FALSE),
        runs=True,
    ),
    Fault("killed", "its liveness probe ends it", (reasons.PROBE_FAILED,), _container(livenessProbe=_FALSE), runs=True),
    Fault(
        "never-started", "its startup probe fails", (reasons.PROBE_FAILED,), _container(startupProbe=_FALSE), runs=True
    ),
    Fault(
        "first-fails",
        "what runs before the program fails",
        _ENDED,
        _before("migrate", "sh", "-c", "echo no such table; exit 4"),
        runs=True,
    ),
    Fault(
        "no-configuration",
        "its variables come from a ConfigMap that is not there",
        (reasons.CONFIGURATION_MISSING,),
        _container(envFrom=[{"configMapRef": {"name": _NOWHERE}}]),
        runs=True,
    ),
    Fault(
        "no-secret",
        "a variable comes from a Secret that is not there",
        (reasons.CONFIGURATION_MISSING,),
        _variable(secretKeyRef=_SELECTOR),
        runs=True,
    ),
    Fault(
        "no-keys",
        "a volume is a Secret that is not there",
        (reasons.CONFIGURATION_MISSING,),
        _volume(secret={"secretName": _NOWHERE}),
        runs=True,
    ),
    Fault(
        "as-root",
        "it runs as root where nobody may",
        (reasons.RUNS_AS_ROOT,),
        _rights(runAsUser=0, runAsNonRoot=True),
        runs=True,
    ),
    Fault("privileged", "it asks for rights on the node", (reasons.POD_SECURITY,), _rights(privileged=True), _SERVES),
    Fault("too-much-cpu", "no node has so many processors", _NO_ROOM, _asks(cpu="4000")),
    Fault("too-much-memory", "no node has so much memory", _NO_ROOM, _asks(memory="900Ti")),
    Fault("no-gpu", "no node has such a processor for graphics", _NO_ROOM, _fields(gpus=8)),
    Fault(
        "no-disk",
        "no node has so much scratch space",
        _NO_ROOM,
        _container(resources={"requests": {"ephemeral-storage": "900Ti"}}),
    ),
    Fault(
        "no-node",
        "no node has the label that it asks for",
        (reasons.NO_NODE_MATCHES,),
        _pod(nodeSelector={"disk": _NOWHERE}),
        _SERVES,
    ),
    Fault(
        "no-zone",
        "no node is where it wants to be",
        (reasons.NO_NODE_MATCHES,),
        _pod(affinity=_labelled(_NOWHERE)),
        _SERVES,
    ),
    Fault(
        "no-claim",
        "it mounts a claim that is not there",
        (reasons.CLAIM_NOT_BOUND,),
        _volume(persistentVolumeClaim=_CLAIM),
        _SERVES,
    ),
    Fault(
        "closed-gate",
        "it waits for a gate that nobody opens",
        (reasons.GATE_CLOSED,),
        _pod(readinessGates=[{"conditionType": "example.com/nobody"}]),
        _SERVES,
    ),
    Fault(
        "no-runtime-class",
        "it asks for a way to run containers that no node has",
        (reasons.COPY_REFUSED,),
        _pod(runtimeClassName=_NOWHERE),
        ("PinterestService",),
    ),
    Fault(
        "hold-gone",
        "it holds a runtime that is not there",
        (reasons.HOLD_GONE, reasons.RUNTIME_UNKNOWN, reasons.RUNTIME_GONE),
        _fields(hold=Hold(runtime=999_999, until="2999-12-31", because="nobody knows")),
        _ONE_PROGRAM,
    ),
    Fault(
        "unknown-part",
        "it sets a parameter of a part that is not there",
        (reasons.PART_UNKNOWN,),
        _fields(sidecar_config={_NOWHERE: {"level": "debug"}}),
        _ONE_PROGRAM,
    ),
    Fault("forgotten", "somebody paused it, and left", (reasons.PAUSED,), _paused),
    Fault(
        "too-short",
        "its deadline is shorter than its work",
        (reasons.DEADLINE_EXCEEDED,),
        _both(_runs("sleep", "600"), _fields(deadline_seconds=1)),
        ("PinterestJobSet",),
        runs=True,
    ),
)
BY_NAME = {each.name: each for each in FAULTS}
