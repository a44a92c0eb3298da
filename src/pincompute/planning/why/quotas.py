"""A quota that stands against copies, with the numbers that are short."""

from __future__ import annotations

import re

from pincompute.base.problem import Problem
from pincompute.base.reasons import COPY_REFUSED, QUOTA_USED_UP
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.why.words import beginning

_EXCEEDED = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
_UNSAID = re.compile(r"failed quota: (?P<name>[^:]+): must specify (?P<fields>.+)")


def exceeded(snapshot: Snapshot, words: str) -> Problem | None:
    found = _EXCEEDED.search(words)
    if not found:
        return None
    project, one = snapshot.owner.metadata.namespace, snapshot.owner.COPY[0]
    requested, used, limited = (_amounts(found[each]) for each in ("requested", "used", "limited"))
    short = (
        _short(one, _plain(name), amount, used.get(name, "0"), limited.get(name, "0"))
        for name, amount in requested.items()
    )
    allows = "is used up" if any(value != "0" for value in limited.values()) else "allows nothing"
    what = f"the quota {found['name']} of project {project} {allows}"
    # What is both requested and limited is told once.
    note = "; ".join(dict.fromkeys(short))
    less = " or ".join(each for each in ("cpu", "memory", "gpus") if any(each == _plain(name) for name in requested))
    ask = f"ask for less {less} in the file, or for" if less else "take another tier in the file, or ask for"
    larger = f"a larger quota: kubectl describe quota {found['name']} -n {project}"
    return Problem(QUOTA_USED_UP, what, note=note, next=f"{ask} {larger}")


def unsaid(snapshot: Snapshot, words: str) -> Problem | None:
    """It counts something that the pods do not ask for in numbers."""
    found = _UNSAID.search(words)
    if not found:
        return None
    project = snapshot.owner.metadata.namespace
    what = f"the quota {found['name']} of project {project} wants to know {beginning(found['fields'])}"
    return Problem(COPY_REFUSED, what, next="say it in the file, under resources in the template")


def _short(one: str, what: str, amount: str, used: str, limited: str) -> str:
    if limited == "0":
        return f"it allows no {what}"
    if what == "pods":
        return f"{used} of {limited} pods are used"
    return f"a {one} needs {amount} {what}, and {used} of {limited} are used"


def _amounts(words: str) -> dict[str, str]:
    """`pods=3,requests.cpu=2`."""
    return {name: amount for name, _, amount in (each.partition("=") for each in words.split(","))}


def _plain(name: str) -> str:
    word = name.removeprefix("requests.").removeprefix("limits.")
    return "gpus" if word.endswith("/gpu") else word
