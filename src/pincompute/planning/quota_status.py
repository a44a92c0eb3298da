"""Status of a project's quotas: whether Kubernetes enforces them yet, and which one is used up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import QUOTA_EXCEEDED, QUOTA_USED_UP
from pincompute.objects.content import Object
from pincompute.objects.quantity import format_bytes, format_cores, parse_quantity
from pincompute.planning.pods.pod import GPU_RESOURCE
from pincompute.planning.snapshot import Native

_RESOURCE_NAMES = {
    "requests.cpu": "CPU",
    "requests.memory": "memory",
    f"requests.{GPU_RESOURCE}": "GPUs",
    "requests.storage": "storage",
}
"""Names for messages; other resources keep the name that Kubernetes gives them."""
_BYTE_RESOURCES = ("requests.memory", "requests.storage")


class QuotaLimit(NamedTuple):
    """Limit and usage of one resource in one quota."""

    quota: str
    resource: str
    hard: Fraction
    used: Fraction

    def __str__(self) -> str:
        format_amount = format_bytes if self.resource in _BYTE_RESOURCES else format_cores
        name = _RESOURCE_NAMES.get(self.resource, self.resource.removeprefix("count/").partition(".")[0])
        return f"{format_amount(self.used)} of {format_amount(self.hard)} {name}"


def uncounted_quota(quotas: Iterable[Object], seen: Iterable[Native]) -> str:
    """A message about the first quota that is not enforced yet: Kubernetes has not counted its usage; else empty."""
    counted = _quotas_by_name(seen)
    for quota in quotas:
        name, hard = quota["metadata"]["name"], quota["spec"]["hard"]
        if _parse_amounts(hard) != _parse_amounts(counted[name].status.hard if name in counted else {}):
            return f"quota '{name}' is not enforced yet"
    return ""


def quota_problem(project: str, quotas: Iterable[Object], seen: Iterable[Native]) -> Problem | None:
    """The problem of a quota that is exceeded, or else of one that is used up."""
    limits = tuple(_limits(quotas, seen))
    exceeded = [each for each in limits if each.used > each.hard]
    used_up = [each for each in limits if each.used == each.hard and each.hard]
    if exceeded:
        note = "running pods continue, and no more pods start"
        return _limit_problem(project, exceeded, f"quota '{exceeded[0].quota}' is exceeded", note)
    if used_up:
        return _limit_problem(project, used_up, f"quota '{used_up[0].quota}' is used up", "no more pods start")
    return None


def _limit_problem(project: str, limits: list[QuotaLimit], what: str, note: str) -> Problem:
    """The problem of the first quota, with the numbers of all its resources that are short."""
    first = limits[0]
    numbers = ", ".join(str(each) for each in limits if each.quota == first.quota)
    reason = QUOTA_EXCEEDED if first.used > first.hard else QUOTA_USED_UP
    return Problem(
        reason,
        f"{what} ({numbers})",
        Where(object=f"project {project}"),
        note,
        f"delete or scale down workloads, or raise the quota in the file of {project}",
    )


def _limits(quotas: Iterable[Object], seen: Iterable[Native]) -> Iterator[QuotaLimit]:
    counted = _quotas_by_name(seen)
    for quota in quotas:
        name = quota["metadata"]["name"]
        used = _parse_amounts(counted[name].status.used) if name in counted else {}
        for resource, hard in sorted(_parse_amounts(quota["spec"]["hard"]).items()):
            yield QuotaLimit(name, resource, hard, used.get(resource, Fraction(0)))


def _quotas_by_name(seen: Iterable[Native]) -> dict[str, Native]:
    return {each.metadata.name: each for each in seen if each.kind == "ResourceQuota"}


def _parse_amounts(values: dict[str, str]) -> dict[str, Fraction]:
    return {name: parse_quantity(value) for name, value in values.items()}
