"""Names that can be used once in a pod: ports, paths, variables, volumes and so on, each with its user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pincompute.api.sidecar import PinterestSidecar
from pincompute.objects.content import Object

ExclusiveKey = tuple[str | int, ...]


class ExclusiveName(NamedTuple):
    """One such name, used by the workload or by a part of the runtime."""

    key: ExclusiveKey
    description: str
    """Text for messages, such as port 4000."""
    category: str
    """Word for messages, such as port."""
    user: str
    by_part: bool = False
    """True if a part of the runtime uses it, and not the workload itself."""


def workload_names(template: Object) -> Iterator[ExclusiveName]:
    """Names that the workload uses, from its pod template before injection."""
    pod = template["spec"]
    for label in template["metadata"].get("labels", {}):
        yield _label_name(label, "the workload")
    for gate in pod.get("readinessGates", ()):
        yield _gate_name(str(gate.get("conditionType")), "the workload")
    for volume in _volumes(pod):
        yield _volume_name(volume, "the workload")
    for container in template_containers(pod):
        name = container["name"]
        yield _container_name(name, "the workload")
        yield from _ports(container, f"container '{name}'")
        for variable in container.get("env", ()):
            yield _variable_name(name, variable["name"], "the workload")
        for mount in container.get("volumeMounts", ()):
            yield _mount_path(name, mount["mountPath"], "the workload")


def part_names(part: PinterestSidecar, containers: Iterable[Object], own: Iterable[str]) -> Iterator[ExclusiveName]:
    """Names that a part uses: in its own containers, and in the workload's containers, which `own` lists."""
    spec, user = part.spec, part.metadata.name
    names = tuple(own)
    for container in containers:
        yield _container_name(container["name"], user, part=True)
        yield from _ports(container, user, part=True)
    for volume in spec.volumes:
        yield _volume_name(volume["name"], user, part=True)
    for label in spec.labels:
        yield _label_name(label, user, part=True)
    for gate in spec.readiness_gates:
        yield _gate_name(gate, user, part=True)
    for name in names:
        for variable in spec.environment:
            yield _variable_name(name, variable, user, part=True)
        for mount in spec.mounts:
            yield _mount_path(name, mount["mountPath"], user, part=True)


def template_containers(pod: Object) -> list[Object]:
    return [*pod.get("containers", ()), *pod.get("initContainers", ())]


def _volumes(pod: Object) -> list[str]:
    """Names of volumes, including mounted ones: the volume of a claim may be defined outside the template."""
    mounts = [mount for container in template_containers(pod) for mount in container.get("volumeMounts", ())]
    return sorted({str(each["name"]) for each in (*pod.get("volumes", ()), *mounts)})


def _container_name(name: str, user: str, *, part: bool = False) -> ExclusiveName:
    return ExclusiveName(("container", name), f"container name '{name}'", "container name", user, part)


def _ports(container: Object, user: str, *, part: bool = False) -> Iterator[ExclusiveName]:
    """Ports are exclusive in the whole pod, because its containers share one network namespace."""
    for each in container.get("ports", ()):
        port: Any = each["containerPort"]
        protocol = str(each.get("protocol") or "TCP")
        description = f"port {port}" if protocol == "TCP" else f"port {port} ({protocol})"
        yield ExclusiveName(("port", protocol, port), description, "port", user, part)


def _variable_name(container: str, name: str, user: str, *, part: bool = False) -> ExclusiveName:
    return ExclusiveName(
        ("variable", container, name), f"variable {name} in container '{container}'", "variable", user, part
    )


def _mount_path(container: str, path: str, user: str, *, part: bool = False) -> ExclusiveName:
    normalized = path.rstrip("/") or "/"
    return ExclusiveName(
        ("mount", container, normalized), f"path {normalized} in container '{container}'", "path", user, part
    )


def _volume_name(name: str, user: str, *, part: bool = False) -> ExclusiveName:
    return ExclusiveName(("volume", name), f"volume name '{name}'", "volume name", user, part)


def _label_name(name: str, user: str, *, part: bool = False) -> ExclusiveName:
    return ExclusiveName(("label", name), f"label {name}", "label", user, part)


def _gate_name(name: str, user: str, *, part: bool = False) -> ExclusiveName:
    return ExclusiveName(("gate", name), f"readiness gate {name}", "readiness gate", user, part)
