"""The pod templates within natives: where they stand, how many copies there are, what they ask for, how two differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from pincompute.api.names import SHAPE
from pincompute.objects.content import Object, digest
from pincompute.objects.quantity import amount

_ROLES = {"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs"}
ENDING = frozenset({"Job", "CronJob", *_ROLES})
"""Natives whose pods end by themselves."""


class Templated(NamedTuple):
    """One template, and of how many pods it is."""

    native: str
    """Kind, name and role: by it the same template is found again in another plan."""
    ends: bool
    template: Object
    copies: int


class Use(NamedTuple):
    """What is kept on nodes."""

    cpu: Fraction = Fraction()
    memory: Fraction = Fraction()

    def plus(self, other: Use, times: int = 1) -> Use:
        return Use(self.cpu + other.cpu * times, self.memory + other.memory * times)

    def most(self, other: Use) -> Use:
        return Use(max(self.cpu, other.cpu), max(self.memory, other.memory))


def templates(wanted: Iterable[Object], nodes: int) -> Iterator[Templated]:
    """Of every native that makes pods; a daemon has as many as there are nodes for it."""
    for native in wanted:
        kind, name, spec = native["kind"], f"{native['kind']}/{native['metadata']['name']}", native.get("spec", {})
        ends = kind in ENDING
        if kind in {"Deployment", "StatefulSet"}:
            yield Templated(name, ends, spec["template"], spec.get("replicas", 1))
        elif kind == "DaemonSet":
            yield Templated(name, ends, spec["template"], nodes)
        elif kind == "Job":
            yield Templated(name, ends, spec["template"], spec.get("parallelism", 1))
        elif kind == "CronJob":
            job = spec["jobTemplate"]["spec"]
            yield Templated(name, ends, job["template"], job.get("parallelism", 1))
        elif kind in _ROLES:
            for role, each in spec[_ROLES[kind]].items():
                yield Templated(f"{name}/{role}", ends, each["template"], each.get("replicas", 1))


def same_pods(before: Object, after: Object) -> bool:
    """Only what is written on the pods may differ, which no container notices."""
    return bool(before["spec"] == after["spec"])


def shape_of(template: Object, sidecars: Sequence[str]) -> str:
    """What stays where only the images of these change: an init container that has ended would never run again."""
    spec = template["spec"]
    beside = [{**each, "image": ""} if each["name"] in sidecars else each for each in spec["initContainers"]]
    return digest({**template, "spec": {**spec, "initContainers": beside}})


def in_place(before: Object, after: Object) -> bool:
    """Only images of sidecars differ: the kubelet restarts those containers, and no other."""
    old, new = (each.get("metadata", {}).get("labels", {}).get(SHAPE) for each in (before, after))
    return bool(old and old == new)


def use(template: Object) -> Use:
    """As Kubernetes counts: sidecars and containers together, or what starts before them where that is more."""
    beside, peak = Use(), Use()
    for each in template["spec"].get("initContainers", ()):
        if each.get("restartPolicy") == "Always":
            beside = beside.plus(_requests(each))
            peak = peak.most(beside)
        else:
            peak = peak.most(beside.plus(_requests(each)))
    for each in template["spec"].get("containers", ()):
        beside = beside.plus(_requests(each))
    return beside.most(peak)


def _requests(container: Object) -> Use:
    resources = container.get("resources", {})
    asked = {**resources.get("limits", {}), **resources.get("requests", {})}
    return Use(amount(asked.get("cpu", 0)), amount(asked.get("memory", 0)))
