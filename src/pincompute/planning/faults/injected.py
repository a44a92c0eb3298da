"""Injection of a fault, and its removal. An annotation on the workload records the fault and the revision before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import quote, unquote

import msgspec

from pincompute.api.names import INJECTED_FAULT_ANNOTATION
from pincompute.api.structs import without_defaults
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import FAULT_ALREADY_INJECTED, FAULT_UNKNOWN, REVISION_UNKNOWN
from pincompute.objects.content import Object, content_hash
from pincompute.planning.faults.catalogue import find_fault
from pincompute.planning.faults.fault import Fault
from pincompute.planning.revision_number import edits_of, expected_revision, revised_fields
from pincompute.planning.views.history import RevisionRecord, find_revision

W = TypeVar("W", bound=Workload)
_WORD_COUNTS = (3, 4)
"""Words of the annotation; those of 0.1 had no edits."""


class InjectedFault(NamedTuple):
    """The content of the annotation."""

    fault: str
    revision: int
    """Revision before the injection."""
    spec_digest: str
    """Digest of the spec with the fault. If the present spec has another one, it was changed since."""
    edits: str = ""
    """Quoted JSON of the fields before the injection that no revision records, such as a pause."""


def injected_fault(workload: Workload) -> InjectedFault | None:
    """The fault of the workload; None without one, and after any later change of the spec."""
    words = workload.metadata.annotations.get(INJECTED_FAULT_ANNOTATION, "").split()
    if len(words) not in _WORD_COUNTS or not words[1].isdigit():
        return None
    fault = InjectedFault(words[0], int(words[1]), *words[2:])
    return fault if fault.spec_digest == content_hash(without_defaults(workload.spec)) else None


def inject_fault(workload: Workload, name: str, past: Sequence[RevisionRecord]) -> Workload:
    """The workload with the fault; refused if it could not be removed again, or would have no effect."""
    where, workload_name = Where(object=workload.metadata.key), workload.metadata.name
    revision = expected_revision(workload).number
    if injected_fault(workload):
        # The present fault is not named: it may have been injected silently, as an exercise.
        what = f"{workload_name} already has an injected fault"
        raise Refused(Problem(FAULT_ALREADY_INJECTED, what, where, next=f"pin heal {workload_name}"))
    if not any(each.number == revision for each in past):
        what = f"revision {workload_name}@{revision} is not recorded yet, so the fault could not be removed again"
        raise Refused(Problem(REVISION_UNKNOWN, what, where, next=f"pin why {workload_name}"))
    fault = choose_fault(workload, name)
    faulty = fault.apply(workload)
    if faulty.spec == workload.spec:
        what = f"{fault.name} does not change {workload_name}: it has that fault already"
        raise Refused(Problem(FAULT_ALREADY_INJECTED, what, where, next=f"pin why {workload_name}"))
    edits = quote(msgspec.json.encode(edits_of(workload.spec)), safe="")
    return _with_annotation(faulty, f"{fault.name} {revision} {content_hash(without_defaults(faulty.spec))} {edits}")


def revert_fault(workload: W, fault: InjectedFault, past: Sequence[RevisionRecord]) -> tuple[W, RevisionRecord]:
    """The workload as before the injection, and the revision that it was then."""
    # A fault such as a pause makes no revision.
    present = (each for each in past if each.number == fault.revision)
    target = next(present, None) or find_revision(workload, past, fault.revision)
    edits: Object = msgspec.json.decode(unquote(fault.edits)) if fault.edits else edits_of(workload.spec)
    spec = msgspec.convert({**revised_fields(target.spec), **edits}, type(workload.spec))
    return _with_annotation(msgspec.structs.replace(workload, spec=spec), ""), target


def choose_fault(workload: Workload, name: str) -> Fault:
    fault = find_fault(name)
    workload_name, next_ = workload.metadata.name, f"pin break {workload.metadata.name}"
    if fault is None:
        raise Refused(Problem(FAULT_UNKNOWN, f"no fault '{name}'", next=next_))
    if why := fault.why_inapplicable(workload):
        what = f"{fault.name} has no effect on {workload_name}: {why}"
        raise Refused(Problem(FAULT_UNKNOWN, what, Where(object=workload.metadata.key), next=next_))
    return fault


def _with_annotation(workload: W, value: str) -> W:
    """With the annotation of this value, or without it if the value is empty."""
    others = {name: text for name, text in workload.metadata.annotations.items() if name != INJECTED_FAULT_ANNOTATION}
    annotations = {**others, INJECTED_FAULT_ANNOTATION: value} if value else others
    return msgspec.structs.replace(
        workload, metadata=msgspec.structs.replace(workload.metadata, annotations=annotations)
    )
