"""A workload's pods: what the short form and the template say, what we add to all, and what the runtime injects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pincompute.api.names import KIND, PARTS, PRIORITY, RESTARTS, SHAPE, SIMULATED, TEMPLATE, WORKLOAD
from pincompute.api.pod import main_container
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.objects.content import Object, digest
from pincompute.planning import names
from pincompute.planning.natives import labels
from pincompute.planning.pods.container import SAFE, SAFE_CONTAINER, amounts
from pincompute.planning.pods.injection import inject
from pincompute.planning.pods.templates import shape_of
from pincompute.planning.pods.twice import twice
from pincompute.planning.runtimes.runtime import runtime_of
from pincompute.planning.snapshot import Cluster, Snapshot

LEAST_CPU = "100m"
LEAST_MEMORY = "128Mi"
GPU = "nvidia.com/gpu"
_CONFIGURATION = "configuration"


class Shape(NamedTuple):
    """What a kind asks of its pods beside what all have."""

    container: Object = {}
    """Fields of the main container, such as its readiness probe; the template may say otherwise."""
    pod: Object = {}
    """Fields of the pod, such as restartPolicy; the template may not."""
    defaults: Object = {}
    """Fields of the pod that the template may say otherwise."""
    environment: Sequence[Object] = ()
    """Variables of every container that the workload has."""
    volumes: Sequence[Object] = ()
    mounts: Sequence[Object] = ()
    """Where the main container sees them."""
    labels: Object = {}
    annotations: Object = {}


class Made(NamedTuple):
    """A pod template, and what went into it."""

    template: Object
    runtime: int = 0
    parts: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    sidecars: tuple[str, ...] = ()
    """The containers of parts that run beside the program."""

    @property
    def shape(self) -> str:
        """Of what stays where only the images of those change; empty where there are none."""
        return str(self.template["metadata"]["labels"].get(SHAPE, ""))

    @property
    def digest(self) -> str:
        return str(self.template["metadata"]["labels"][TEMPLATE])


def make(snapshot: Snapshot, shape: Shape) -> Made:
    """The template of a workload's pods, with the runtime that is its own at this time."""
    owner: Workload = snapshot.owner
    chosen = runtime_of(owner, snapshot.runtimes, snapshot.now)
    plain = _plain(owner, snapshot.cluster, shape)
    problems = (*chosen.problems, *twice(plain, owner.metadata.place))
    injected = inject(plain, chosen.parts, owner.spec.sidecar_config, chosen.others)
    template = injected.template
    metadata = template["metadata"]
    if injected.sidecars:
        metadata["labels"] = {**metadata["labels"], SHAPE: shape_of(template, injected.sidecars)}
    if injected.parts:
        # Not the runtime's number: another one with the same parts must not make the pods anew.
        metadata["annotations"] = {**metadata.get("annotations", {}), PARTS: " ".join(injected.parts)}
    metadata["labels"] = {**metadata["labels"], TEMPLATE: digest(template)}
    return Made(template, chosen.number, injected.parts, (*problems, *injected.problems), injected.sidecars)


def simulated(owner: Workload, cluster: Cluster) -> bool:
    """Because it says so, or because this cluster can do no other."""
    return cluster.simulated or owner.spec.simulated


def _plain(owner: Workload, cluster: Cluster, shape: Shape) -> Object:
    """Before anything is injected."""
    given = owner.spec.template
    metadata = given.get("metadata", {})
    return {
        **given,
        "metadata": {
            **metadata,
            "labels": {**metadata.get("labels", {}), **labels(owner), **shape.labels},
            **_said(annotations={**metadata.get("annotations", {}), **shape.annotations, **_restarts(owner)}),
        },
        "spec": _pod(owner, cluster, shape, given.get("spec", {})),
    }


def _restarts(owner: Workload) -> dict[str, str]:
    """Of kinds that run on; another number is another template, and copies are replaced as for any other change."""
    restarts = getattr(getattr(owner.spec, "rollout", None), "restarts", 0)
    return {RESTARTS: str(restarts)} if restarts else {}


def _pod(owner: Workload, cluster: Cluster, shape: Shape, given: Object) -> Object:
    spec = owner.spec
    pod: Object = {
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        **shape.defaults,
        **given,
        "securityContext": _rights({**SAFE, **shape.defaults.get("securityContext", {})}, given),
        "containers": _containers(owner, shape, given),
        **_said(initContainers=[_beside(owner, shape, each) for each in given.get("initContainers", ())]),
        "serviceAccountName": owner.metadata.name,
        "priorityClassName": f"{PRIORITY}{spec.tier}",
        **shape.pod,
    }
    volumes = [*given.get("volumes", ()), *shape.volumes, *_configuration_volume(owner)]
    if volumes:
        pod["volumes"] = volumes
    if spec.whole_node:
        pod["affinity"] = _alone(given.get("affinity", {}))
    if simulated(owner, cluster):
        pod["tolerations"] = [
            *pod.get("tolerations", ()), {"key": SIMULATED, "operator": "Exists", "effect": "NoSchedule"}
        ]  # fmt: skip
        pod["nodeSelector"] = {**pod.get("nodeSelector", {}), SIMULATED: "true"}
    return pod


def _containers(owner: Workload, shape: Shape, given: Object) -> list[Object]:
    """The main one as the short form and the template say it together; the others as the template says."""
    others = given.get("containers", [])
    main = main_container(owner.spec.template, owner.main, own=bool(owner.spec.image))
    if main is None:
        return [_main(owner, shape, {}), *(_beside(owner, shape, each) for each in others)]
    return [_main(owner, shape, each) if each is main else _beside(owner, shape, each) for each in others]


def own_containers(owner: Workload) -> tuple[list[Object], list[Object]]:
    """Of one copy, and those that run before them, without what its kind and the runtime add."""
    given = owner.spec.template.get("spec", {})
    before = [_beside(owner, Shape(), each) for each in given.get("initContainers", ())]
    return _containers(owner, Shape(), given), before


def _main(owner: Workload, shape: Shape, given: Object) -> Object:
    spec = owner.spec
    container: Object = {
        "name": owner.main,
        **_said(image=spec.image, command=spec.command, args=spec.arguments),
        **shape.container,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **given,
        "securityContext": _rights(SAFE_CONTAINER, given),
    }
    container.setdefault("imagePullPolicy", default_pull_policy(container.get("image", "")))
    container["resources"] = _resources(owner, given.get("resources", {}))
    container["env"] = [
        *_variables(owner, shape),
        *({"name": name, "value": spec.environment[name]} for name in sorted(spec.environment)),
        *given.get("env", ()),
    ]
    mounts = [*given.get("volumeMounts", ()), *shape.mounts, *_configuration_mount(owner)]
    if mounts:
        container["volumeMounts"] = mounts
    return container


def _beside(owner: Workload, shape: Shape, given: Object) -> Object:
    """A container that is not the main one: it is told where it is, and has what every container must have."""
    return {
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **given,
        "securityContext": _rights(SAFE_CONTAINER, given),
        "resources": amounts(given.get("resources", {}), LEAST_CPU, LEAST_MEMORY),
        "env": [*_variables(owner, shape), *given.get("env", ())],
    }


def _rights(safe: Object, given: Object) -> Object:
    """None on the node, but for those that the template names; what would contradict them is left out."""
    said = given.get("securityContext", {})
    if said.get("runAsUser") == 0:
        safe = {**safe, "runAsNonRoot": False}
    if said.get("privileged"):
        safe = {name: value for name, value in safe.items() if name != "allowPrivilegeEscalation"}
    return {**safe, **said}


def _variables(owner: Workload, shape: Shape) -> list[Object]:
    """Where it is and whose it is."""
    ours = (
        ("PIN_PROJECT", owner.metadata.namespace),
        ("PIN_WORKLOAD", owner.metadata.name),
        ("PIN_KIND", owner.kind),
        ("PIN_TIER", str(owner.spec.tier)),
    )
    return [*({"name": name, "value": value} for name, value in ours), *shape.environment]


def _resources(owner: Workload, given: Object) -> Object:
    spec = owner.spec
    given_to = amounts(given, spec.cpu or LEAST_CPU, spec.memory or LEAST_MEMORY)
    if spec.gpus:
        for each in ("requests", "limits"):
            given_to[each] = {**given_to[each], GPU: spec.gpus}
    return given_to


def default_pull_policy(image: str) -> str:
    """A digest never changes its content; a tag may."""
    return "IfNotPresent" if "@sha256:" in image else "Always"


def _said(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value}


def _configuration_volume(owner: Workload) -> list[Object]:
    if not owner.spec.configuration:
        return []
    return [{"name": _CONFIGURATION, "configMap": {"name": names.configuration(owner)}}]


def _configuration_mount(owner: Workload) -> list[Object]:
    if not owner.spec.configuration:
        return []
    return [{"name": _CONFIGURATION, "mountPath": owner.spec.configuration_path, "readOnly": True}]


def _alone(given: Object) -> Object:
    """Far from every pod of ours, and they from it; what belongs to each node does not count."""
    anti = given.get("podAntiAffinity", {})
    term: Object = {
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {},
        "labelSelector": {
            "matchExpressions": [
                {"key": WORKLOAD, "operator": "Exists"},
                {"key": KIND, "operator": "NotIn", "values": ["PinterestDaemon"]},
            ]
        },
    }
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    return {**given, "podAntiAffinity": {**anti, field: [*anti.get(field, ()), term]}}
