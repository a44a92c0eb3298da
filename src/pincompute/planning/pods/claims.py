"""What a pod has only one of: ports, paths, variables and names, and who in it wants them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pincompute.api.sidecar import PinterestSidecar
from pincompute.objects.content import Object

Key = tuple[str | int, ...]


class Claim(NamedTuple):
    """One such thing, and who wants it."""

    key: Key
    words: str
    """Such as: port 4000."""
    noun: str
    """Such as: port."""
    whose: str
    part: bool = False
    """It belongs to a part of the runtime, and not to the workload itself."""


def of_workload(template: Object) -> Iterator[Claim]:
    """Of a pod template before anything is injected."""
    pod = template["spec"]
    for label in template["metadata"].get("labels", {}):
        yield _label(label, "the workload")
    for gate in pod.get("readinessGates", ()):
        yield _gate(str(gate.get("conditionType")), "the workload")
    for volume in _volumes(pod):
        yield _volume(volume, "the workload")
    for container in own_containers(pod):
        name = container["name"]
        yield _container(name, "the workload")
        yield from _ports(container, f"container '{name}'")
        for variable in container.get("env", ()):
            yield _variable(name, variable["name"], "the workload")
        for mount in container.get("volumeMounts", ()):
            yield _mount(name, mount["mountPath"], "the workload")


def of_part(part: PinterestSidecar, containers: Iterable[Object], own: Iterable[str]) -> Iterator[Claim]:
    """Of the containers that it brings, and of what it adds to the workload's own, which are named."""
    spec, whose = part.spec, part.metadata.name
    names = tuple(own)
    for container in containers:
        yield _container(container["name"], whose, part=True)
        yield from _ports(container, whose, part=True)
    for volume in spec.volumes:
        yield _volume(volume["name"], whose, part=True)
    for label in spec.labels:
        yield _label(label, whose, part=True)
    for gate in spec.readiness_gates:
        yield _gate(gate, whose, part=True)
    for name in names:
        for variable in spec.environment:
            yield _variable(name, variable, whose, part=True)
        for mount in spec.mounts:
            yield _mount(name, mount["mountPath"], whose, part=True)


def own_containers(pod: Object) -> list[Object]:
    return [*pod.get("containers", ()), *pod.get("initContainers", ())]


def _volumes(pod: Object) -> list[str]:
    """Those that are mounted, too: a claim's volume may stand elsewhere than in the template."""
    mounts = [mount for container in own_containers(pod) for mount in container.get("volumeMounts", ())]
    return sorted({str(each["name"]) for each in (*pod.get("volumes", ()), *mounts)})


def _container(name: str, whose: str, *, part: bool = False) -> Claim:
    return Claim(("container", name), f"the container name '{name}'", "container name", whose, part)


def _ports(container: Object, whose: str, *, part: bool = False) -> Iterator[Claim]:
    """All containers of a pod share its network."""
    for each in container.get("ports", ()):
        port: Any = each["containerPort"]
        protocol = str(each.get("protocol") or "TCP")
        words = f"port {port}" if protocol == "TCP" else f"port {port} ({protocol})"
        yield Claim(("port", protocol, port), words, "port", whose, part)


def _variable(container: str, name: str, whose: str, *, part: bool = False) -> Claim:
    return Claim(
        ("variable", container, name), f"the variable {name} in container '{container}'", "variable", whose, part
    )


def _mount(container: str, path: str, whose: str, *, part: bool = False) -> Claim:
    plain = path.rstrip("/") or "/"
    return Claim(("mount", container, plain), f"the path {plain} in container '{container}'", "path", whose, part)


def _volume(name: str, whose: str, *, part: bool = False) -> Claim:
    return Claim(("volume", name), f"the volume name '{name}'", "volume name", whose, part)


def _label(name: str, whose: str, *, part: bool = False) -> Claim:
    return Claim(("label", name), f"the label {name}", "label", whose, part)


def _gate(name: str, whose: str, *, part: bool = False) -> Claim:
    return Claim(("gate", name), f"the readiness gate {name}", "readiness gate", whose, part)
