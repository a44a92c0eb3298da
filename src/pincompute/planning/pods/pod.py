"""Builds the pod template of a workload: its short form and template, our defaults, and the parts of its runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pincompute.api.names import (
    GPU_TYPE_LABEL,
    IN_PLACE_HASH_LABEL,
    KIND_LABEL,
    PARTS_ANNOTATION,
    PRIORITY_CLASS_PREFIX,
    RESTARTS_ANNOTATION,
    SIMULATED_LABEL,
    TEMPLATE_HASH_LABEL,
    WORKLOAD_LABEL,
)
from pincompute.api.pod_template import main_container
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.objects.content import Object, content_hash
from pincompute.planning import names
from pincompute.planning.natives import tracking_labels
from pincompute.planning.pods.config_bundles import config_annotations, config_problems
from pincompute.planning.pods.container import (
    CONTAINER_SECURITY_DEFAULTS,
    POD_SECURITY_DEFAULTS,
    with_resource_defaults,
)
from pincompute.planning.pods.duplicates import duplicate_problems
from pincompute.planning.pods.iam import iam_audience, iam_mounts, iam_problem, iam_variables, iam_volumes
from pincompute.planning.pods.injection import inject_parts
from pincompute.planning.pods.metrics import metrics_annotations, metrics_ports
from pincompute.planning.pods.mtls import call_variables, mtls_annotations, mtls_problem
from pincompute.planning.pods.secrets import secrets_annotations, secrets_problem, with_secrets_group
from pincompute.planning.pods.security_level import security_problem
from pincompute.planning.pods.templates import in_place_hash_of
from pincompute.planning.pods.traffic import endpoints_annotation
from pincompute.planning.runtimes.selection import choose_runtime
from pincompute.planning.snapshot import Cluster, Snapshot

DEFAULT_CPU = "100m"
DEFAULT_MEMORY = "128Mi"
GPU_RESOURCE = "nvidia.com/gpu"
_CONFIGURATION = "configuration"


class PodOverlay(NamedTuple):
    """Fields that a kind adds to its pod template."""

    container: Object = {}
    """Fields of the main container, such as its readiness probe. The template overrides them."""
    pod: Object = {}
    """Fields of the pod, such as restartPolicy. They override the template."""
    defaults: Object = {}
    """Fields of the pod that the template overrides."""
    environment: Sequence[Object] = ()
    """Variables of all containers of the workload."""
    volumes: Sequence[Object] = ()
    mounts: Sequence[Object] = ()
    """Volume mounts of the main container."""
    labels: Object = {}
    annotations: Object = {}
    main_environment: Sequence[Object] = ()
    """Variables of the main container."""


class BuiltTemplate(NamedTuple):
    """A pod template, and the runtime and parts it was built with."""

    template: Object
    runtime: int = 0
    parts: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    sidecars: tuple[str, ...] = ()
    """Names of the containers of parts that run as sidecars."""

    @property
    def in_place_hash(self) -> str:
        """Hash of the template without sidecar images; empty if there are no sidecars."""
        return str(self.template["metadata"]["labels"].get(IN_PLACE_HASH_LABEL, ""))

    @property
    def template_hash(self) -> str:
        return str(self.template["metadata"]["labels"][TEMPLATE_HASH_LABEL])


def build_template(snapshot: Snapshot, overlay: PodOverlay) -> BuiltTemplate:
    """Build the pod template of a workload, with the runtime that applies to it now."""
    owner: Workload = snapshot.owner
    chosen = choose_runtime(owner, snapshot.runtimes, snapshot.now)
    plain = _plain(owner, snapshot.cluster, _with_iam_token(owner, snapshot.project, overlay))
    problems = (
        *chosen.problems,
        *filter(
            None,
            (
                iam_problem(owner, snapshot.project),
                secrets_problem(owner, chosen.number, chosen.parts),
                mtls_problem(owner, chosen.number, chosen.parts),
                security_problem(owner, snapshot.project, plain["spec"]),
            ),
        ),
        *duplicate_problems(plain, owner.metadata.key),
        *config_problems(owner, chosen.parts),
    )
    injected = inject_parts(plain, chosen.parts, owner.spec.sidecar_config, chosen.other_parts)
    template = injected.template
    metadata = template["metadata"]
    if injected.sidecars:
        metadata["labels"] = {**metadata["labels"], IN_PLACE_HASH_LABEL: in_place_hash_of(template, injected.sidecars)}
    if injected.parts:
        # The annotation has the parts and not the number of the runtime: a new runtime with the same parts must not
        # change the template, because that would replace all pods.
        metadata["annotations"] = {**metadata.get("annotations", {}), PARTS_ANNOTATION: " ".join(injected.parts)}
    metadata["labels"] = {**metadata["labels"], TEMPLATE_HASH_LABEL: content_hash(template)}
    return BuiltTemplate(template, chosen.number, injected.parts, (*problems, *injected.problems), injected.sidecars)


def _with_iam_token(owner: Workload, project: Project | None, overlay: PodOverlay) -> PodOverlay:
    audience = iam_audience(owner, project)
    return overlay._replace(
        main_environment=[*overlay.main_environment, *iam_variables(owner, audience)],
        volumes=[*overlay.volumes, *iam_volumes(audience)],
        mounts=[*overlay.mounts, *iam_mounts(audience)],
    )


def is_simulated(owner: Workload, cluster: Cluster) -> bool:
    """True if the workload asks for it, or if no node of the cluster runs containers."""
    return cluster.simulated or owner.spec.simulated


def _plain(owner: Workload, cluster: Cluster, overlay: PodOverlay) -> Object:
    """Template before injection."""
    given = owner.spec.template
    metadata = given.get("metadata", {})
    return {
        **given,
        "metadata": {
            **metadata,
            "labels": {**metadata.get("labels", {}), **tracking_labels(owner), **overlay.labels},
            **_non_empty(annotations=_annotations(owner, overlay, metadata.get("annotations", {}))),
        },
        "spec": _pod(owner, cluster, overlay, given.get("spec", {})),
    }


def _annotations(owner: Workload, overlay: PodOverlay, given: Object) -> Object:
    return {
        **given,
        **overlay.annotations,
        **_restarts(owner),
        **secrets_annotations(owner),
        **config_annotations(owner),
        **metrics_annotations(owner),
        **endpoints_annotation(owner),
        **mtls_annotations(owner),
    }


def _restarts(owner: Workload) -> dict[str, str]:
    """Annotation with the restart counter of a long-running kind. It changes the template, so that pods restart."""
    restarts = getattr(getattr(owner.spec, "rollout", None), "restarts", 0)
    return {RESTARTS_ANNOTATION: str(restarts)} if restarts else {}


def _pod(owner: Workload, cluster: Cluster, overlay: PodOverlay, given: Object) -> Object:
    spec = owner.spec
    pod: Object = {
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        **overlay.defaults,
        **given,
        "securityContext": with_secrets_group(
            owner, _security_context({**POD_SECURITY_DEFAULTS, **overlay.defaults.get("securityContext", {})}, given)
        ),
        "containers": _containers(owner, overlay, given),
        **_non_empty(
            initContainers=[_other_container(owner, overlay, each) for each in given.get("initContainers", ())]
        ),
        "serviceAccountName": owner.metadata.name,
        "priorityClassName": f"{PRIORITY_CLASS_PREFIX}{spec.tier}",
        **overlay.pod,
    }
    volumes = [*given.get("volumes", ()), *overlay.volumes, *_configuration_volume(owner)]
    if volumes:
        pod["volumes"] = volumes
    if spec.whole_node:
        pod["affinity"] = _whole_node_affinity(given.get("affinity", {}))
    if spec.gpus and spec.gpu_type:
        pod["nodeSelector"] = {**pod.get("nodeSelector", {}), GPU_TYPE_LABEL: spec.gpu_type}
    if is_simulated(owner, cluster):
        pod["tolerations"] = [
            *pod.get("tolerations", ()), {"key": SIMULATED_LABEL, "operator": "Exists", "effect": "NoSchedule"}
        ]  # fmt: skip
        pod["nodeSelector"] = {**pod.get("nodeSelector", {}), SIMULATED_LABEL: "true"}
    return pod


def _containers(owner: Workload, overlay: PodOverlay, given: Object) -> list[Object]:
    """Main container, merged from short form and template, and the other containers of the template."""
    others = given.get("containers", [])
    main = main_container(owner.spec.template, owner.main_container_name, own=bool(owner.spec.image))
    main_container_ = _main_container(owner, overlay, main or {})
    if ports := metrics_ports(owner, [main_container_, *others, *given.get("initContainers", ())]):
        main_container_["ports"] = [*main_container_.get("ports", ()), *ports]
    if main is None:
        return [main_container_, *(_other_container(owner, overlay, each) for each in others)]
    return [main_container_ if each is main else _other_container(owner, overlay, each) for each in others]


def workload_containers(owner: Workload) -> tuple[list[Object], list[Object]]:
    """Containers and init containers of a pod, without the fields of its kind and its runtime."""
    given = owner.spec.template.get("spec", {})
    init_containers = [_other_container(owner, PodOverlay(), each) for each in given.get("initContainers", ())]
    return _containers(owner, PodOverlay(), given), init_containers


def secured_pod(owner: Workload) -> Object:
    """The pod as the file describes it, with the platform's security contexts: what Pod Security judges."""
    given = owner.spec.template.get("spec", {})
    containers, init_containers = workload_containers(owner)
    context = _security_context(POD_SECURITY_DEFAULTS, given)
    return {**given, "securityContext": context, "containers": containers, "initContainers": init_containers}


def _main_container(owner: Workload, overlay: PodOverlay, given: Object) -> Object:
    spec = owner.spec
    container: Object = {
        "name": owner.main_container_name,
        **_non_empty(image=spec.image, command=spec.command, args=spec.arguments),
        **overlay.container,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **given,
        "securityContext": _security_context(CONTAINER_SECURITY_DEFAULTS, given),
    }
    container.setdefault("imagePullPolicy", default_pull_policy(container.get("image", "")))
    container["resources"] = _resources(owner, given.get("resources", {}))
    container["env"] = [
        *_variables(owner, overlay),
        *overlay.main_environment,
        *({"name": name, "value": spec.environment[name]} for name in sorted(spec.environment)),
        *given.get("env", ()),
    ]
    mounts = [*given.get("volumeMounts", ()), *overlay.mounts, *_configuration_mount(owner)]
    if mounts:
        container["volumeMounts"] = mounts
    return container


def _other_container(owner: Workload, overlay: PodOverlay, given: Object) -> Object:
    """Container other than the main one: as in the template, with our variables and defaults."""
    return {
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **given,
        "securityContext": _security_context(CONTAINER_SECURITY_DEFAULTS, given),
        "resources": with_resource_defaults(given.get("resources", {}), DEFAULT_CPU, DEFAULT_MEMORY),
        "env": [*_variables(owner, overlay), *given.get("env", ())],
    }


def _security_context(defaults: Object, given: Object) -> Object:
    """Security context of the template, completed by defaults that do not contradict it."""
    context = given.get("securityContext", {})
    if context.get("runAsUser") == 0:
        defaults = {**defaults, "runAsNonRoot": False}
    if context.get("privileged"):
        defaults = {name: value for name, value in defaults.items() if name != "allowPrivilegeEscalation"}
    return {**defaults, **context}


def _variables(owner: Workload, overlay: PodOverlay) -> list[Object]:
    """Variables that identify the workload, the URLs of those that it calls, and the variables of its kind."""
    identity = (
        ("PIN_PROJECT", owner.metadata.namespace),
        ("PIN_WORKLOAD", owner.metadata.name),
        ("PIN_KIND", owner.kind),
        ("PIN_TIER", str(owner.spec.tier)),
    )
    named = ({"name": name, "value": value} for name, value in identity)
    return [*named, *call_variables(owner), *overlay.environment]


def _resources(owner: Workload, given: Object) -> Object:
    spec = owner.spec
    resources = with_resource_defaults(given, spec.cpu or DEFAULT_CPU, spec.memory or DEFAULT_MEMORY)
    if spec.gpus:
        for field in ("requests", "limits"):
            resources[field] = {**resources[field], GPU_RESOURCE: spec.gpus}
    return resources


def default_pull_policy(image: str) -> str:
    """Pull images with a tag every time, because the tag may be moved; a digest always names the same content."""
    return "IfNotPresent" if "@sha256:" in image else "Always"


def _non_empty(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value}


def _configuration_volume(owner: Workload) -> list[Object]:
    if not owner.spec.configuration:
        return []
    return [{"name": _CONFIGURATION, "configMap": {"name": names.configuration(owner)}}]


def _configuration_mount(owner: Workload) -> list[Object]:
    if not owner.spec.configuration:
        return []
    return [{"name": _CONFIGURATION, "mountPath": owner.spec.configuration_path, "readOnly": True}]


def _whole_node_affinity(given: Object) -> Object:
    """Keep all other workloads off the node, except daemons. Anti-affinity works in both directions."""
    anti_affinity = given.get("podAntiAffinity", {})
    term: Object = {
        "topologyKey": "kubernetes.io/hostname",
        "namespaceSelector": {},
        "labelSelector": {
            "matchExpressions": [
                {"key": WORKLOAD_LABEL, "operator": "Exists"},
                {"key": KIND_LABEL, "operator": "NotIn", "values": ["PinterestDaemon"]},
            ]
        },
    }
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    return {**given, "podAntiAffinity": {**anti_affinity, field: [*anti_affinity.get(field, ()), term]}}
