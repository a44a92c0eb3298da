"""Pod templates in native objects: where they are, their number of replicas and resources, and how two differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from pincompute.api.names import IN_PLACE_HASH_LABEL
from pincompute.objects.content import Object, content_hash
from pincompute.objects.quantity import parse_quantity

ROLES_FIELDS = {"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs"}
"""Field with the roles of a training job, by kind."""
FINITE_KINDS = frozenset({"Job", "CronJob", *ROLES_FIELDS})
"""Kinds of native objects with pods that run to completion."""


class NativeTemplate(NamedTuple):
    """A pod template of a native object, with its number of replicas."""

    key: str
    """Kind, name and role, with which the same template is found in another plan."""
    is_finite: bool
    template: Object
    replicas: int


class ResourceUse(NamedTuple):
    """Requested resources."""

    cpu: Fraction = Fraction()
    memory: Fraction = Fraction()

    def plus(self, other: ResourceUse, times: int = 1) -> ResourceUse:
        return ResourceUse(self.cpu + other.cpu * times, self.memory + other.memory * times)

    def maximum(self, other: ResourceUse) -> ResourceUse:
        return ResourceUse(max(self.cpu, other.cpu), max(self.memory, other.memory))


def pod_templates(wanted: Iterable[Object], nodes: int) -> Iterator[NativeTemplate]:
    """Find the templates of all native objects. A daemon has as many replicas as nodes."""
    for native in wanted:
        kind, name, spec = native["kind"], f"{native['kind']}/{native['metadata']['name']}", native.get("spec", {})
        is_finite = kind in FINITE_KINDS
        if kind in {"Deployment", "StatefulSet"}:
            yield NativeTemplate(name, is_finite, spec["template"], spec.get("replicas", 1))
        elif kind == "DaemonSet":
            yield NativeTemplate(name, is_finite, spec["template"], nodes)
        elif kind == "Job":
            yield NativeTemplate(name, is_finite, spec["template"], spec.get("parallelism", 1))
        elif kind == "CronJob":
            job = spec["jobTemplate"]["spec"]
            yield NativeTemplate(name, is_finite, job["template"], job.get("parallelism", 1))
        elif kind in ROLES_FIELDS:
            for role, role_spec in spec[ROLES_FIELDS[kind]].items():
                yield NativeTemplate(f"{name}/{role}", is_finite, role_spec["template"], role_spec.get("replicas", 1))


def same_pod_spec(before: Object, after: Object) -> bool:
    """True if the specs are the same. Labels and annotations may differ: they have no effect on containers."""
    return bool(before["spec"] == after["spec"])


def in_place_hash_of(template: Object, sidecars: Sequence[str]) -> str:
    """Hash of the template without the images of its sidecars.

    Images of other init containers are part of it: they have terminated and would not run again in place.
    """
    spec = template["spec"]
    containers = [{**each, "image": ""} if each["name"] in sidecars else each for each in spec["initContainers"]]
    return content_hash({**template, "spec": {**spec, "initContainers": containers}})


def can_update_in_place(before: Object, after: Object) -> bool:
    """True if only sidecar images differ, so that the kubelet restarts those containers and no other."""
    old, new = (each.get("metadata", {}).get("labels", {}).get(IN_PLACE_HASH_LABEL) for each in (before, after))
    return bool(old and old == new)


def resource_use(template: Object) -> ResourceUse:
    """Effective requests, as Kubernetes computes them: the sum of all running containers, or the peak of the start."""
    running, peak = ResourceUse(), ResourceUse()
    for container in template["spec"].get("initContainers", ()):
        if container.get("restartPolicy") == "Always":
            running = running.plus(_requests(container))
            peak = peak.maximum(running)
        else:
            peak = peak.maximum(running.plus(_requests(container)))
    for container in template["spec"].get("containers", ()):
        running = running.plus(_requests(container))
    return running.maximum(peak)


def _requests(container: Object) -> ResourceUse:
    resources = container.get("resources", {})
    requests = {**resources.get("limits", {}), **resources.get("requests", {})}
    return ResourceUse(parse_quantity(requests.get("cpu", 0)), parse_quantity(requests.get("memory", 0)))
