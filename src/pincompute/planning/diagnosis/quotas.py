"""Pods that a ResourceQuota of Kubernetes rejects, parsed from the message of its admission plugin."""

from __future__ import annotations

import re

from pincompute.base.problem import Problem
from pincompute.base.reasons import POD_REJECTED, QUOTA_USED_UP
from pincompute.objects.quantity import parse_quantity
from pincompute.planning.diagnosis.excerpts import excerpt_start
from pincompute.planning.snapshot import Snapshot

_EXCEEDED = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
_UNSPECIFIED = re.compile(r"failed quota: (?P<name>[^:]+): must specify (?P<fields>.+)")


def quota_exceeded_problem(snapshot: Snapshot, message: str) -> Problem | None:
    """The problem of a pod that exceeds a quota, with the amounts of each resource that is short."""
    found = _EXCEEDED.search(message)
    if not found:
        return None
    project, replica = snapshot.owner.metadata.namespace, snapshot.owner.REPLICA_NOUN[0]
    requested, used, limited = (_parse_amounts(found[each]) for each in ("requested", "used", "limited"))
    shortages = (
        _shortage_text(replica, _short_resource_name(name), amount, used.get(name, "0"), limited.get(name, "0"))
        for name, amount in requested.items()
    )
    bounds = {name: limited[name] for name in requested if limited.get(name, "0") != "0"}
    is_below_use = any(_exceeds(used.get(name, "0"), limit) for name, limit in bounds.items())
    state = "is used up" if any(value != "0" for value in limited.values()) else "allows nothing"
    if any(_exceeds(requested[name], limit) for name, limit in bounds.items()):
        state = f"is smaller than one {replica}, which can therefore never start"
    elif is_below_use:
        state = "is smaller than what already runs"
    what = f"quota {found['name']} of project {project} {state}"
    # A resource with both a request and a limit occurs twice.
    note = "; ".join(dict.fromkeys(shortages))
    names = {_short_resource_name(name) for name in requested}
    less = " or ".join(each for each in ("cpu", "memory", "gpus") if each in names)
    ask = f"request less {less} in the file, or ask for" if less else "choose another tier in the file, or ask for"
    if is_below_use:
        ask = "run less in the project, or ask for"
    larger = f"a larger quota: kubectl describe quota {found['name']} -n {project}"
    return Problem(QUOTA_USED_UP, what, note=note, next=f"{ask} {larger}")


def quota_unspecified_problem(snapshot: Snapshot, message: str) -> Problem | None:
    """The problem of a pod without a request for a resource that a quota limits."""
    found = _UNSPECIFIED.search(message)
    if not found:
        return None
    project = snapshot.owner.metadata.namespace
    what = f"quota {found['name']} of project {project} requires {excerpt_start(found['fields'])}"
    return Problem(POD_REJECTED, what, next="set it in the file, under resources in the template")


def _shortage_text(replica: str, resource: str, amount: str, used: str, limited: str) -> str:
    if limited == "0":
        return f"no {resource} allowed"
    if resource == "pods":
        return f"{used} of {limited} pods used"
    return f"a {replica} needs {amount} {resource}, {used} of {limited} used"


def _exceeds(amount: str, limit: str) -> bool:
    return parse_quantity(amount) > parse_quantity(limit)


def _parse_amounts(text: str) -> dict[str, str]:
    """Parses `pods=3,requests.cpu=2`."""
    return {name: amount for name, _, amount in (each.partition("=") for each in text.split(","))}


def _short_resource_name(name: str) -> str:
    word = name.removeprefix("requests.").removeprefix("limits.")
    return "gpus" if word.endswith("/gpu") else word
