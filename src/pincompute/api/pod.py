"""Kubernetes' pod template, as far as people use it; fields that are not named here pass through untouched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pincompute.api.names import GROUP
from pincompute.api.noun import Fault, Path
from pincompute.api.wire import Open, amount
from pincompute.objects.content import Object

Labels = dict[str, str]


def _text(description: str) -> Meta:
    return Meta(description=description)


class EnvironmentVariable(Open, frozen=True, kw_only=True):
    """One variable."""

    name: Annotated[str, _text("Its name, such as LOG_LEVEL.")]
    value: Annotated[str, _text("Its value, such as info.")] = ""
    value_from: Annotated[Object, _text("Where its value stands, such as fieldRef: {fieldPath: status.podIP}.")] = {}


class ContainerPort(Open, frozen=True, kw_only=True):
    """One port that a container listens on."""

    container_port: Annotated[int, Meta(description="Its number, such as 8080.", ge=1, le=65535)]
    name: Annotated[str, _text("Its name, such as http.")] = ""
    protocol: Annotated[str, _text("TCP, UDP or SCTP; TCP by default.")] = "TCP"
    host_port: Annotated[int, _text("A port of the node that leads to it, such as 80; seldom right.")] = 0


class Resources(Open, frozen=True, kw_only=True):
    """What a container is given."""

    requests: Annotated[
        dict[str, Annotated[int | str, amount("An amount, such as 500m.")]],
        _text("What is kept for it, such as cpu: 500m."),
    ] = {}
    limits: Annotated[
        dict[str, Annotated[int | str, amount("An amount, such as 512Mi.")]],
        _text("What it may use at most, such as memory: 512Mi."),
    ] = {}


class VolumeMount(Open, frozen=True, kw_only=True):
    """Where a container sees a volume."""

    name: Annotated[str, _text("Which volume, such as scratch.")]
    mount_path: Annotated[str, _text("Where, such as /scratch.")]
    sub_path: Annotated[str, _text("Which folder of it, such as images; all of it by default.")] = ""
    sub_path_expr: Annotated[str, _text("The same with variables, such as $(POD_NAME).")] = ""
    read_only: Annotated[bool, _text("Whether it can only be read; false by default.")] = False


class Container(Open, frozen=True, kw_only=True):
    """One container."""

    name: Annotated[str, _text("Its name, such as web; the workload's own name is the main one's.")]
    image: Annotated[str, _text("Its image, such as web:1.2.")] = ""
    command: Annotated[list[str], _text("What to run instead of the image's entry point, such as [python3].")] = []
    args: Annotated[list[str], _text("What to hand to it, such as [app.py].")] = []
    working_dir: Annotated[str, _text("The folder it starts in, such as /srv.")] = ""
    env: Annotated[list[EnvironmentVariable], _text("Its variables, such as - {name: A, value: b}.")] = []
    env_from: Annotated[list[Object], _text("Whole sets of variables, such as - {configMapRef: {name: web}}.")] = []
    ports: Annotated[list[ContainerPort], _text("The ports it listens on, such as - {containerPort: 8080}.")] = []
    resources: Annotated[Resources, _text("What it is given, such as requests: {cpu: 1}.")] = Resources()
    resize_policy: Annotated[list[Object], _text("What a resize restarts, such as - {resourceName: cpu}.")] = []
    restart_policy: Annotated[str, _text("Always, which makes an init container a sidecar; none by default.")] = ""
    restart_policy_rules: Annotated[list[Object], _text("Restarts by exit code, such as - {action: Restart}.")] = []
    volume_mounts: Annotated[
        list[VolumeMount], _text("Where it sees volumes, such as - {name: a, mountPath: /a}.")
    ] = []
    volume_devices: Annotated[list[Object], _text("Block devices, such as - {name: a, devicePath: /dev/a}.")] = []
    liveness_probe: Annotated[Object, _text("When to restart it, such as httpGet: {path: /alive, port: 80}.")] = {}
    readiness_probe: Annotated[Object, _text("When it may be asked, such as httpGet: {path: /ready, port: 80}.")] = {}
    startup_probe: Annotated[Object, _text("When it has started, such as tcpSocket: {port: 80}.")] = {}
    lifecycle: Annotated[Object, _text("What to do first and last, such as preStop: {sleep: {seconds: 5}}.")] = {}
    security_context: Annotated[Object, _text("Its rights on the node, such as runAsUser: 1000.")] = {}
    image_pull_policy: Annotated[str, _text("Always, IfNotPresent or Never.")] = ""
    termination_message_path: Annotated[str, _text("Where it says why it ended, such as /dev/termination-log.")] = ""
    termination_message_policy: Annotated[str, _text("File, or FallbackToLogsOnError, which is our default.")] = ""
    stdin: Annotated[bool, _text("Whether its input is open; false by default.")] = False
    stdin_once: Annotated[bool, _text("Whether its input closes after the first who used it; false by default.")] = (
        False
    )
    tty: Annotated[bool, _text("Whether it has a terminal; false by default.")] = False


class Volume(Open, frozen=True, kw_only=True):
    """One volume; what is in it follows under the name of its type, such as emptyDir."""

    name: Annotated[str, _text("Its name, such as scratch.")]


class Toleration(Open, frozen=True, kw_only=True):
    """One taint of nodes that is borne."""

    key: Annotated[str, _text("Which taint, such as dedicated.")] = ""
    operator: Annotated[str, _text("Equal or Exists; Equal by default.")] = ""
    value: Annotated[str, _text("Its value, such as ads.")] = ""
    effect: Annotated[str, _text("NoSchedule, PreferNoSchedule or NoExecute; all by default.")] = ""


class PodSpec(Open, frozen=True, kw_only=True):
    """What a pod is."""

    containers: Annotated[
        list[Container],
        _text("Containers beside, or instead of, the short form's, such as - {name: proxy, image: proxy:1}."),
    ] = []
    init_containers: Annotated[
        list[Container],
        _text("Containers that run before, one after the other, such as - {name: fetch, image: fetch:1}."),
    ] = []
    ephemeral_containers: Annotated[
        list[Object], _text("Not in a template, such as - {name: debug}: kubectl debug adds them.")
    ] = []
    volumes: Annotated[list[Volume], _text("Volumes, such as - {name: scratch, emptyDir: {}}.")] = []
    node_selector: Annotated[Labels, _text("Labels that a node must have, such as zone: a.")] = {}
    node_name: Annotated[str, _text("One node by name, such as node-7; seldom right.")] = ""
    affinity: Annotated[Object, _text("Nearness to nodes and pods, such as podAntiAffinity: …")] = {}
    tolerations: Annotated[list[Toleration], _text("Taints that are borne, such as - {key: a, operator: Exists}.")] = []
    topology_spread_constraints: Annotated[list[Object], _text("How to spread, such as - {maxSkew: 1, …}.")] = []
    security_context: Annotated[Object, _text("Rights of all its containers, such as fsGroup: 1000.")] = {}
    termination_grace_period_seconds: Annotated[int, _text("Seconds it has to end, such as 30.")] = 30
    active_deadline_seconds: Annotated[int, _text("Seconds it may run, such as 3600; without end by default.")] = 0
    dns_policy: Annotated[str, _text("How names are looked up; ClusterFirst by default.")] = ""
    dns_config: Annotated[Object, _text("How names are looked up, such as options: [{name: ndots, value: '1'}].")] = {}
    host_aliases: Annotated[list[Object], _text("Names of its own, such as - {ip: 10.0.0.1, hostnames: [db]}.")] = []
    hostname: Annotated[str, _text("The host name it sees, such as web.")] = ""
    hostname_override: Annotated[str, _text("The host name it sees, whatever else says, such as web.ads.")] = ""
    subdomain: Annotated[str, _text("The domain below the namespace's, such as web.")] = ""
    set_hostname_as_fqdn: Annotated[bool, _text("Whether its host name is the full one; false by default.")] = (
        msgspec.field(name="setHostnameAsFQDN", default=False)
    )
    host_network: Annotated[bool, _text("Whether it uses the node's network; false by default.")] = False
    host_pid: Annotated[bool, _text("Whether it sees the node's processes; false by default.")] = msgspec.field(
        name="hostPID", default=False
    )
    host_ipc: Annotated[bool, _text("Whether it shares the node's memory segments; false by default.")] = msgspec.field(
        name="hostIPC", default=False
    )
    host_users: Annotated[bool, _text("Whether its users are the node's; true by default.")] = True
    share_process_namespace: Annotated[bool, _text("Whether containers see each other; false by default.")] = False
    image_pull_secrets: Annotated[list[Object], _text("Secrets for registries, such as - {name: registry}.")] = []
    scheduler_name: Annotated[str, _text("Which scheduler places it; the cluster's own by default.")] = ""
    scheduling_gates: Annotated[
        list[Object], _text("What must be lifted before it is placed, such as - {name: a}.")
    ] = []
    readiness_gates: Annotated[list[Object], _text("Conditions it waits for, such as - {conditionType: a}.")] = []
    runtime_class_name: Annotated[str, _text("Which container runtime runs it, such as gvisor.")] = ""
    overhead: Annotated[
        Object, _text("What the container runtime itself uses, such as cpu: 10m; set by Kubernetes.")
    ] = {}
    enable_service_links: Annotated[bool, _text("Whether variables name all Services; false is our default.")] = False
    automount_service_account_token: Annotated[
        bool, _text("Whether it may speak to the Kubernetes API; false is our default.")
    ] = False
    preemption_policy: Annotated[str, _text("Follows from the tier.")] = ""
    priority: Annotated[int, _text("Follows from the tier.")] = 0
    priority_class_name: Annotated[str, _text("Follows from the tier.")] = ""
    service_account_name: Annotated[str, _text("Not to be set: the default is an account of the workload's own.")] = ""
    service_account: Annotated[str, _text("Not to be set: the default is an account of the workload's own.")] = ""
    restart_policy: Annotated[str, _text("Follows from the kind.")] = ""
    resource_claims: Annotated[list[Object], _text("Claims of devices, such as - {name: gpu, …}.")] = []
    resources: Annotated[Resources, _text("What all its containers are given together.")] = Resources()
    os: Annotated[Object, _text("The operating system, such as name: linux.")] = {}


class TemplateMetadata(Open, frozen=True, kw_only=True):
    """What pods carry."""

    labels: Annotated[Labels, _text("Labels of its pods, such as canary: yes.")] = {}
    annotations: Annotated[Labels, _text("Annotations of its pods, such as example.com/scrape: yes.")] = {}


class PodTemplate(Open, frozen=True, kw_only=True):
    """Pods as Kubernetes describes them."""

    metadata: Annotated[TemplateMetadata, _text("Labels and annotations of its pods.")] = TemplateMetadata()
    spec: Annotated[PodSpec, _text("Everything that Kubernetes knows of a pod.")] = PodSpec()


_DECIDED = {
    "priorityClassName": "the tier decides it: write tier: reserved, on-demand or preemptible",
    "priority": "the tier decides it: write tier: reserved, on-demand or preemptible",
    "preemptionPolicy": "the tier decides it: write tier: reserved, on-demand or preemptible",
    "serviceAccountName": "each workload has its own; name the cloud's role in iamRole",
    "serviceAccount": "each workload has its own; name the cloud's role in iamRole",
    "restartPolicy": "the kind decides it",
    "ephemeralContainers": "a template has none; `kubectl debug` adds them to a pod",
}
"""What the platform decides, so that nobody decides it twice."""


def main_container(template: Object, name: str, *, own: bool) -> Object | None:
    """The container of the template that the short form speaks of, if not of one of its own.

    It is the one that is called as the workload; the first, where the short form has no image to make its own of.
    """
    containers = [each for each in _of(_of(template, "spec"), "containers", []) if isinstance(each, dict)]
    named = next((each for each in containers if each.get("name") == name), None)
    return named if named or own or not containers else containers[0]


def amounts_of(container: Object) -> frozenset[str]:
    """Of what a container says how much it is given."""
    resources = _of(container, "resources")
    return frozenset(_of(resources, "requests")) | frozenset(_of(resources, "limits"))


def containers_of(template: Object, path: Path) -> Iterator[tuple[Path, Object]]:
    """Each container, init containers too, with its place."""
    for group in ("containers", "initContainers"):
        for index, each in enumerate(_of(_of(template, "spec"), group, [])):
            if isinstance(each, dict):
                yield (*path, "spec", group, index), each


def template_faults(template: Object, path: Path) -> Iterator[Fault]:
    spec = _of(template, "spec")
    for field, instead in _DECIDED.items():
        if field in spec:
            yield Fault((*path, "spec", field), f"{field} cannot be set", next=instead)
    metadata = _of(template, "metadata")
    for field in ("labels", "annotations"):
        for name in _of(metadata, field):
            if str(name).startswith(f"{GROUP}/"):
                yield Fault((*path, "metadata", field, name), f"{field} of {GROUP} are set by the platform")
    names: set[str] = set()
    for place, each in containers_of(template, path):
        name = each.get("name")
        if name is not None and not isinstance(name, str):
            yield Fault((*place, "name"), "a name is text")
        elif name in names:
            yield Fault((*place, "name"), f"two containers are called '{name}'")
        elif name:
            names.add(name)
        yield from stands_twice(each, "env", "name", place)
        yield from stands_twice(each, "volumeMounts", "mountPath", place)
    yield from stands_twice(spec, "volumes", "name", (*path, "spec"))


def stands_twice(value: Any, field: str, key: str, path: Path) -> Iterator[Fault]:
    """Kubernetes answers such a list with an error of its own server."""
    seen: set[str] = set()
    for index, each in enumerate(_of(value, field, [])):
        said = each.get(key) if isinstance(each, dict) else None
        if said is not None and not isinstance(said, str):
            yield Fault((*path, field, index, key), f"{key} is text")
        elif said in seen:
            yield Fault((*path, field, index, key), f"'{said}' stands twice in {field}")
        elif said:
            seen.add(said)


def _of(value: Any, field: str, default: Any = None) -> Any:
    """Templates come from people: what should be a set of fields may be anything."""
    found = value.get(field) if isinstance(value, dict) else None
    empty: Any = {} if default is None else default
    return found if isinstance(found, type(empty)) else empty
