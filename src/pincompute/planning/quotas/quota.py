"""Quotas as last counted: whether they hold already, and which is used up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import QUOTA_EXCEEDED, QUOTA_USED_UP
from pincompute.objects.content import Object
from pincompute.objects.quantity import amount, binary, cores
from pincompute.planning.pods.pod import GPU
from pincompute.planning.snapshot import Native

_WORDS = {
    "requests.cpu": "processors",
    "requests.memory": "memory",
    f"requests.{GPU}": "GPUs",
    "requests.storage": "storage",
}
"""What a person calls it; the rest is called as Kubernetes counts it."""
_BYTES = ("requests.memory", "requests.storage")


class Bound(NamedTuple):
    """One thing that a quota bounds."""

    quota: str
    resource: str
    hard: Fraction
    used: Fraction

    def __str__(self) -> str:
        shown = binary if self.resource in _BYTES else cores
        word = _WORDS.get(self.resource, self.resource.removeprefix("count/").partition(".")[0])
        return f"{shown(self.used)} of {shown(self.hard)} {word}"


def uncounted(quotas: Iterable[Object], seen: Iterable[Native]) -> str:
    """Until Kubernetes has counted a quota as it is wanted, it does not hold."""
    counted = _counted(seen)
    for each in quotas:
        name, hard = each["metadata"]["name"], each["spec"]["hard"]
        if _amounts(hard) != _amounts(counted[name].status.hard if name in counted else {}):
            return f"the quota '{name}' is not counted yet"
    return ""


def first_cause(project: str, quotas: Iterable[Object], seen: Iterable[Native]) -> Problem | None:
    """More used than allowed is told before just as much."""
    bounds = tuple(_bounds(quotas, seen))
    over = [each for each in bounds if each.used > each.hard]
    full = [each for each in bounds if each.used == each.hard and each.hard]
    if over:
        note = "nothing is ended for it, and nothing more starts"
        return _problem(project, over, f"the quota '{over[0].quota}' is less than what is used", note)
    return _problem(project, full, f"the quota '{full[0].quota}' is used up", "nothing more starts") if full else None


def _problem(project: str, bounds: list[Bound], what: str, note: str) -> Problem:
    """All that is short in the first quota."""
    first = bounds[0]
    numbers = ", ".join(str(each) for each in bounds if each.quota == first.quota)
    reason = QUOTA_EXCEEDED if first.used > first.hard else QUOTA_USED_UP
    return Problem(
        reason,
        f"{what} ({numbers})",
        Where(object=f"project {project}"),
        note,
        f"end what is not needed, or raise the quota in the file of {project}",
    )


def _bounds(quotas: Iterable[Object], seen: Iterable[Native]) -> Iterator[Bound]:
    counted = _counted(seen)
    for each in quotas:
        name = each["metadata"]["name"]
        used = _amounts(counted[name].status.used) if name in counted else {}
        for resource, hard in sorted(_amounts(each["spec"]["hard"]).items()):
            yield Bound(name, resource, hard, used.get(resource, Fraction(0)))


def _counted(seen: Iterable[Native]) -> dict[str, Native]:
    return {each.metadata.name: each for each in seen if each.kind == "ResourceQuota"}


def _amounts(values: dict[str, str]) -> dict[str, Fraction]:
    return {name: amount(value) for name, value in values.items()}
