"""What was broken on purpose: by which fault, what it was before, and how it becomes that again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from pincompute.api.names import BROKEN
from pincompute.api.wire import spoken
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import ALREADY_BROKEN, FAULT_UNKNOWN, REVISION_UNKNOWN
from pincompute.objects.content import digest
from pincompute.planning.faults.catalogue import BY_NAME
from pincompute.planning.faults.fault import Fault
from pincompute.planning.people.history import Past, former

W = TypeVar("W", bound=Workload)


class Broken(NamedTuple):
    fault: str
    revision: int
    """What it was before."""
    spec: str
    """The digest of what the fault made of it: with any other, somebody has changed it since."""


def broken(workload: Workload) -> Broken | None:
    """Nothing where it never was, or is no more."""
    words = workload.metadata.annotations.get(BROKEN, "").split()
    if len(words) != 3 or not words[1].isdigit():
        return None
    found = Broken(words[0], int(words[1]), words[2])
    return found if found.spec == digest(spoken(workload.spec)) else None


def spoiled(workload: Workload, fault: str, past: Sequence[Past]) -> Workload:
    """With the fault put on it, and noted."""
    found = broken(workload)
    name, number = workload.metadata.name, workload.metadata.generation
    if found:
        raise Refused(
            Problem(
                ALREADY_BROKEN,
                f"{name} is broken already",
                Where(object=workload.metadata.place),
                next=f"pin heal {name}",
            )
        )
    if not any(each.number == number for each in past):
        what = f"{name}@{number} is not on record, and nothing could put it back"
        raise Refused(Problem(REVISION_UNKNOWN, what, Where(object=workload.metadata.place), next=f"pin why {name}"))
    made = _chosen(workload, fault).put(workload)
    if made.spec == workload.spec:
        what = f"{fault} changes nothing of {name}: it is so already"
        raise Refused(Problem(ALREADY_BROKEN, what, Where(object=workload.metadata.place), next=f"pin why {name}"))
    return _noted(made, f"{fault} {number} {digest(spoken(made.spec))}")


def healed(workload: W, found: Broken, past: Sequence[Past]) -> tuple[W, Past]:
    """As it was, and what that is."""
    target = former(workload, past, found.revision)
    return _noted(msgspec.structs.replace(workload, spec=target.spec), ""), target


def _chosen(workload: Workload, fault: str) -> Fault:
    found = BY_NAME.get(fault)
    name = workload.metadata.name
    if found is None:
        raise Refused(Problem(FAULT_UNKNOWN, f"there is no fault '{fault}'", next=f"pin break {name}"))
    if why := found.hindrance(workload):
        what = f"{fault} would not be seen of {name}: {why}"
        raise Refused(Problem(FAULT_UNKNOWN, what, Where(object=workload.metadata.place), next=f"pin break {name}"))
    return found


def _noted(workload: W, words: str) -> W:
    kept = {name: value for name, value in workload.metadata.annotations.items() if name != BROKEN}
    annotations = {**kept, BROKEN: words} if words else kept
    return msgspec.structs.replace(
        workload, metadata=msgspec.structs.replace(workload.metadata, annotations=annotations)
    )
