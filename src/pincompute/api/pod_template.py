"""Kubernetes' pod template: the fields that users commonly set. Other fields are passed through unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pincompute.api.custom_resource import FieldError, FieldPath
from pincompute.api.names import GROUP
from pincompute.api.structs import OpenStruct, quantity_meta
from pincompute.objects.content import Object

Labels = dict[str, str]


def _text(description: str) -> Meta:
    return Meta(description=description)


class EnvironmentVariable(OpenStruct, frozen=True, kw_only=True):
    """An environment variable."""

    name: Annotated[str, _text("Name of the variable, such as LOG_LEVEL.")]
    value: Annotated[str, _text("Value, such as info.")] = ""
    value_from: Annotated[Object, _text("Source of the value, such as fieldRef: {fieldPath: status.podIP}.")] = {}


class ContainerPort(OpenStruct, frozen=True, kw_only=True):
    """A port of a container."""

    container_port: Annotated[int, Meta(description="Port number, such as 8080.", ge=1, le=65535)]
    name: Annotated[str, _text("Port name, such as http.")] = ""
    protocol: Annotated[str, _text("TCP, UDP or SCTP; TCP by default.")] = "TCP"
    host_port: Annotated[int, _text("Host port that forwards to it, such as 80; rarely needed.")] = 0


class Resources(OpenStruct, frozen=True, kw_only=True):
    """Resource requests and limits of a container."""

    requests: Annotated[
        dict[str, Annotated[int | str, quantity_meta("Quantity, such as 500m.")]],
        _text("Requested resources, such as cpu: 500m."),
    ] = {}
    limits: Annotated[
        dict[str, Annotated[int | str, quantity_meta("Quantity, such as 512Mi.")]],
        _text("Resource limits, such as memory: 512Mi."),
    ] = {}


class VolumeMount(OpenStruct, frozen=True, kw_only=True):
    """Mount of a volume in a container."""

    name: Annotated[str, _text("Name of the volume, such as scratch.")]
    mount_path: Annotated[str, _text("Mount path, such as /scratch.")]
    sub_path: Annotated[str, _text("Subdirectory of the volume, such as images; the whole volume by default.")] = ""
    sub_path_expr: Annotated[str, _text("Subdirectory with variables, such as $(POD_NAME).")] = ""
    read_only: Annotated[bool, _text("Mount read-only; false by default.")] = False


class Container(OpenStruct, frozen=True, kw_only=True):
    """A container."""

    name: Annotated[str, _text("Container name, such as web; the main container has the name of the workload.")]
    image: Annotated[str, _text("Container image, such as web:1.2.")] = ""
    command: Annotated[list[str], _text("Command instead of the image's entry point, such as [python3].")] = []
    args: Annotated[list[str], _text("Arguments of the command, such as [app.py].")] = []
    working_dir: Annotated[str, _text("Working directory, such as /srv.")] = ""
    env: Annotated[list[EnvironmentVariable], _text("Environment variables, such as - {name: A, value: b}.")] = []
    env_from: Annotated[
        list[Object], _text("Sources of environment variables, such as - {configMapRef: {name: web}}.")
    ] = []
    ports: Annotated[
        list[ContainerPort], _text("Ports that the container listens on, such as - {containerPort: 8080}.")
    ] = []
    resources: Annotated[Resources, _text("Resources, such as requests: {cpu: 1}.")] = Resources()
    resize_policy: Annotated[list[Object], _text("Restart behaviour on resize, such as - {resourceName: cpu}.")] = []
    restart_policy: Annotated[str, _text("Always turns an init container into a sidecar; none by default.")] = ""
    restart_policy_rules: Annotated[
        list[Object], _text("Restart rules by exit code, such as - {action: Restart}.")
    ] = []
    volume_mounts: Annotated[list[VolumeMount], _text("Volume mounts, such as - {name: a, mountPath: /a}.")] = []
    volume_devices: Annotated[list[Object], _text("Block devices, such as - {name: a, devicePath: /dev/a}.")] = []
    liveness_probe: Annotated[Object, _text("Liveness probe, such as httpGet: {path: /alive, port: 80}.")] = {}
    readiness_probe: Annotated[Object, _text("Readiness probe, such as httpGet: {path: /ready, port: 80}.")] = {}
    startup_probe: Annotated[Object, _text("Startup probe, such as tcpSocket: {port: 80}.")] = {}
    lifecycle: Annotated[Object, _text("Lifecycle hooks, such as preStop: {sleep: {seconds: 5}}.")] = {}
    security_context: Annotated[Object, _text("Security context, such as runAsUser: 1000.")] = {}
    image_pull_policy: Annotated[str, _text("Always, IfNotPresent or Never.")] = ""
    termination_message_path: Annotated[
        str, _text("File for the termination message, such as /dev/termination-log.")
    ] = ""
    termination_message_policy: Annotated[
        str, _text("File, or FallbackToLogsOnError, which is the default of PinCompute.")
    ] = ""
    stdin: Annotated[bool, _text("Keep standard input open; false by default.")] = False
    stdin_once: Annotated[bool, _text("Close standard input after the first client detaches; false by default.")] = (
        False
    )
    tty: Annotated[bool, _text("Allocate a terminal; false by default.")] = False


class Volume(OpenStruct, frozen=True, kw_only=True):
    """A volume. Its source is a field named after its type, such as emptyDir."""

    name: Annotated[str, _text("Volume name, such as scratch.")]


class Toleration(OpenStruct, frozen=True, kw_only=True):
    """Toleration of a node taint."""

    key: Annotated[str, _text("Taint key, such as dedicated.")] = ""
    operator: Annotated[str, _text("Equal or Exists; Equal by default.")] = ""
    value: Annotated[str, _text("Taint value, such as ads.")] = ""
    effect: Annotated[str, _text("NoSchedule, PreferNoSchedule or NoExecute; all by default.")] = ""


class PodSpec(OpenStruct, frozen=True, kw_only=True):
    """Spec of a pod."""

    containers: Annotated[
        list[Container],
        _text("Containers in addition to, or instead of, the short form's, such as - {name: proxy, image: proxy:1}."),
    ] = []
    init_containers: Annotated[
        list[Container],
        _text("Init containers, run one after the other before the others, such as - {name: fetch, image: fetch:1}."),
    ] = []
    ephemeral_containers: Annotated[
        list[Object], _text("Not allowed in a template, such as - {name: debug}; added by kubectl debug.")
    ] = []
    volumes: Annotated[list[Volume], _text("Volumes, such as - {name: scratch, emptyDir: {}}.")] = []
    node_selector: Annotated[Labels, _text("Labels that a node must have, such as zone: a.")] = {}
    node_name: Annotated[str, _text("Name of one node, such as node-7; rarely needed.")] = ""
    affinity: Annotated[Object, _text("Node and pod affinity, such as podAntiAffinity: …")] = {}
    tolerations: Annotated[list[Toleration], _text("Tolerated taints, such as - {key: a, operator: Exists}.")] = []
    topology_spread_constraints: Annotated[
        list[Object], _text("Topology spread constraints, such as - {maxSkew: 1, …}.")
    ] = []
    security_context: Annotated[Object, _text("Security context of all containers, such as fsGroup: 1000.")] = {}
    termination_grace_period_seconds: Annotated[int, _text("Seconds between SIGTERM and SIGKILL, such as 30.")] = 30
    active_deadline_seconds: Annotated[
        int, _text("Maximum duration in seconds, such as 3600; unlimited by default.")
    ] = 0
    dns_policy: Annotated[str, _text("DNS policy; ClusterFirst by default.")] = ""
    dns_config: Annotated[Object, _text("DNS configuration, such as options: [{name: ndots, value: '1'}].")] = {}
    host_aliases: Annotated[
        list[Object], _text("Additional entries of /etc/hosts, such as - {ip: 10.0.0.1, hostnames: [db]}.")
    ] = []
    hostname: Annotated[str, _text("Host name of the pod, such as web.")] = ""
    hostname_override: Annotated[
        str, _text("Host name of the pod, with precedence over all other fields, such as web.ads.")
    ] = ""
    subdomain: Annotated[str, _text("DNS subdomain below the namespace, such as web.")] = ""
    set_hostname_as_fqdn: Annotated[bool, _text("Use the fully qualified name as host name; false by default.")] = (
        msgspec.field(name="setHostnameAsFQDN", default=False)
    )
    host_network: Annotated[bool, _text("Use the node's network; false by default.")] = False
    host_pid: Annotated[bool, _text("Share the node's process namespace; false by default.")] = msgspec.field(
        name="hostPID", default=False
    )
    host_ipc: Annotated[bool, _text("Share the node's IPC namespace; false by default.")] = msgspec.field(
        name="hostIPC", default=False
    )
    host_users: Annotated[bool, _text("Use the node's user namespace; true by default.")] = True
    share_process_namespace: Annotated[
        bool, _text("Share one process namespace among the containers; false by default.")
    ] = False
    image_pull_secrets: Annotated[list[Object], _text("Registry credentials, such as - {name: registry}.")] = []
    scheduler_name: Annotated[str, _text("Scheduler name; the cluster's default by default.")] = ""
    scheduling_gates: Annotated[
        list[Object], _text("Gates that must be removed before the pod is scheduled, such as - {name: a}.")
    ] = []
    readiness_gates: Annotated[list[Object], _text("Readiness gates, such as - {conditionType: a}.")] = []
    runtime_class_name: Annotated[str, _text("Runtime class, such as gvisor.")] = ""
    overhead: Annotated[
        dict[str, Annotated[int | str, quantity_meta("Quantity, such as 10m.")]],
        _text("Resource overhead of the runtime class, such as cpu: 10m; set by Kubernetes."),
    ] = {}
    enable_service_links: Annotated[
        bool, _text("Set environment variables for all Services; false by default in PinCompute.")
    ] = False
    automount_service_account_token: Annotated[
        bool, _text("Mount a token for the Kubernetes API; false by default in PinCompute.")
    ] = False
    preemption_policy: Annotated[str, _text("Follows from the tier.")] = ""
    priority: Annotated[int, _text("Follows from the tier.")] = 0
    priority_class_name: Annotated[str, _text("Follows from the tier.")] = ""
    service_account_name: Annotated[
        str, _text("Not allowed: every workload has its own service account by default.")
    ] = ""
    service_account: Annotated[str, _text("Not allowed: every workload has its own service account by default.")] = ""
    restart_policy: Annotated[str, _text("Follows from the kind.")] = ""
    resource_claims: Annotated[list[Object], _text("Claims of dynamic resources, such as - {name: gpu, …}.")] = []
    resources: Annotated[Resources, _text("Resources of all containers together.")] = Resources()
    os: Annotated[Object, _text("Operating system, such as name: linux.")] = {}


class TemplateMetadata(OpenStruct, frozen=True, kw_only=True):
    """Metadata of the pods."""

    labels: Annotated[Labels, _text("Labels of the pods, such as canary: yes.")] = {}
    annotations: Annotated[Labels, _text("Annotations of the pods, such as example.com/scrape: yes.")] = {}


class PodTemplate(OpenStruct, frozen=True, kw_only=True):
    """Kubernetes' pod template."""

    metadata: Annotated[TemplateMetadata, _text("Labels and annotations of the pods.")] = TemplateMetadata()
    spec: Annotated[PodSpec, _text("Spec of the pods; every Kubernetes field is allowed.")] = PodSpec()


_PLATFORM_FIELDS = {
    "priorityClassName": "set by the tier: write tier: reserved, on-demand or preemptible",
    "priority": "set by the tier: write tier: reserved, on-demand or preemptible",
    "preemptionPolicy": "set by the tier: write tier: reserved, on-demand or preemptible",
    "serviceAccountName": "every workload has its own service account: write iamRole for access to the cloud",
    "serviceAccount": "every workload has its own service account: write iamRole for access to the cloud",
    "restartPolicy": "set by the kind: leave it out",
    "ephemeralContainers": "added to a running pod by kubectl debug",
}
"""Fields that the platform sets, with the way to influence each."""


def main_container(template: Object, name: str, *, own: bool) -> Object | None:
    """Container of the template that the short form's fields apply to, or None if the short form has its own.

    It is the container with the workload's name. Without one, and if the short form sets no image, it is the first.
    """
    containers = [each for each in list_at(mapping_at(template, "spec"), "containers") if isinstance(each, dict)]
    named = next((each for each in containers if each.get("name") == name), None)
    return named if named or own or not containers else containers[0]


def resource_names(container: Object) -> frozenset[str]:
    """Resources for which a container has requests or limits."""
    resources = mapping_at(container, "resources")
    return frozenset(mapping_at(resources, "requests")) | frozenset(mapping_at(resources, "limits"))


def containers_of(template: Object, path: FieldPath) -> Iterator[tuple[FieldPath, Object]]:
    """Every container and init container, with its path."""
    for group in ("containers", "initContainers"):
        for index, container in enumerate(list_at(mapping_at(template, "spec"), group)):
            if isinstance(container, dict):
                yield (*path, "spec", group, index), container


def template_errors(template: Object, path: FieldPath) -> Iterator[FieldError]:
    """Platform fields that are set, and duplicates."""
    spec = mapping_at(template, "spec")
    for field, remedy in _PLATFORM_FIELDS.items():
        if field in spec:
            yield FieldError((*path, "spec", field), f"{field} cannot be set", next=remedy)
    metadata = mapping_at(template, "metadata")
    for field in ("labels", "annotations"):
        for name in mapping_at(metadata, field):
            if str(name).startswith(f"{GROUP}/"):
                yield FieldError((*path, "metadata", field, name), f"{field} of {GROUP} are set by the platform")
    names: set[str] = set()
    for container_path, container in containers_of(template, path):
        name = container.get("name")
        if name is not None and not isinstance(name, str):
            yield FieldError((*container_path, "name"), "name must be a string")
        elif name in names:
            yield FieldError((*container_path, "name"), f"duplicate container name '{name}'")
        elif name:
            names.add(name)
        yield from duplicate_errors(container, "env", "name", container_path)
        yield from duplicate_errors(container, "volumeMounts", "mountPath", container_path)
    yield from duplicate_errors(spec, "volumes", "name", (*path, "spec"))


def duplicate_errors(value: Any, field: str, key: str, path: FieldPath) -> Iterator[FieldError]:
    """Duplicate keys in a list. The API server answers those with an internal error instead of a validation error."""
    seen: set[str] = set()
    for index, entry in enumerate(list_at(value, field)):
        name = entry.get(key) if isinstance(entry, dict) else None
        if name is not None and not isinstance(name, str):
            yield FieldError((*path, field, index, key), f"{key} must be a string")
        elif name in seen:
            yield FieldError((*path, field, index, key), f"duplicate {key} '{name}' in {field}")
        elif name:
            seen.add(name)


def mapping_at(value: Any, field: str) -> Object:
    """A mapping inside a template, or {}. A template is user input, so any level can have the wrong type."""
    found = value.get(field) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def list_at(value: Any, field: str) -> list[Any]:
    """A list inside a template, or []. A template is user input, so any level can have the wrong type."""
    found = value.get(field) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []
