"""Pods that a ResourceQuota of Kubernetes rejects, parsed from the message of its admission plugin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import POD_REJECTED, QUOTA_USED_UP
from pincompute.objects.quantity import parse_quantity
from pincompute.planning.diagnosis.capacity import format_amount, round_down
from pincompute.planning.diagnosis.cause import template_container
from pincompute.planning.diagnosis.excerpts import excerpt_start
from pincompute.planning.diagnosis.resource_edits import resource_settings
from pincompute.planning.edit_commands import edit_command
from pincompute.planning.pods.pod import DEFAULT_CPU, DEFAULT_MEMORY
from pincompute.planning.snapshot import Snapshot

_EXCEEDED = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
_LEAST_PART_OF_REQUEST = 4
"""A program that asked for more than this many times what is left would hardly run with it."""
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
    fitting = quota_edit(snapshot.owner, requested, used, limited)
    if fitting:
        return Problem(QUOTA_USED_UP, what, note=f"{note}\notherwise: ask for {larger}", next=fitting)
    return Problem(QUOTA_USED_UP, what, note=note, next=f"{ask} {larger}")


def quota_edit(
    owner: Workload, requested: Mapping[str, str], used: Mapping[str, str], limited: Mapping[str, str]
) -> str:
    """The command that asks for what the quota has left for each replica; empty if that is far less than requested."""
    replicas = max(1, int(getattr(owner.spec, "replicas", 1)))
    settings: dict[str, str | int] = {}
    for name, text in requested.items():
        resource, wanted = name.removeprefix("requests.").removeprefix("limits."), parse_quantity(text)
        left = parse_quantity(limited.get(name, "0")) - parse_quantity(used.get(name, "0"))
        if left >= wanted and replicas == 1:
            continue
        # What the other containers of the pod request stays.
        others = wanted - _own_request(owner, resource)
        amount = round_down(resource, left / replicas - others)
        if resource not in {"cpu", "memory"} or others < 0 or amount < wanted / _LEAST_PART_OF_REQUEST:
            return ""
        settings |= resource_settings(owner, owner.main_container_name, resource, format_amount(resource, amount))
    return edit_command(owner, settings)


def _own_request(owner: Workload, resource: str) -> Fraction:
    """The request of the main container."""
    resources = template_container(owner, owner.main_container_name).get("resources", {})
    default = {"cpu": DEFAULT_CPU, "memory": DEFAULT_MEMORY}.get(resource, "0")
    written = (resources.get(each, {}).get(resource) for each in ("requests", "limits"))
    return parse_quantity(getattr(owner.spec, resource, "") or next(filter(None, written), default))


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
