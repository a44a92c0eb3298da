"""A set: documents that are submitted together, and are accepted as a whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DOCUMENT_INVALID, SET_REFUSED
from pincompute.desk.store.record import Submission, SubmissionRecord
from pincompute.planning.footprint import WorkloadKey

MAX_DOCUMENTS = 256
_MAX_NAMES = 3
"""How many workloads a message names before it counts the others."""
_NEXT = "fix the refused documents, and deploy the set again"


def check_set_size(count: int) -> Problem | None:
    if count <= MAX_DOCUMENTS:
        return None
    return Problem(DOCUMENT_INVALID, f"the set has {count} documents, and the limit is {MAX_DOCUMENTS}")


def link_set(submissions: Sequence[Submission], text: str) -> list[Submission]:
    """The submissions of one text, as they are recorded: bound to each other under one idempotency key.

    The digest of the whole text becomes part of each, so that a submission is only repeated together with all others of
    its set.
    """
    if len(submissions) == 1:
        return list(submissions)
    digest, first = hashlib.sha256(text.encode()).hexdigest(), submissions[0].id
    return [
        each._replace(
            about=f"{each.about}\0{digest}",
            idempotency_key=_numbered_key(each.idempotency_key, number),
            audit_reason="; ".join(filter(None, (each.audit_reason, f"of the set of {first}"))),
        )
        for number, each in enumerate(submissions)
    ]


def _numbered_key(key: str, number: int) -> str:
    """A header cannot contain a line feed, so no caller's own key is the same."""
    return f"{key}\n{number}" if key and number else key


def document_label(key: WorkloadKey, number: int) -> str:
    """The name of a document's workload; its number in the set if the document could not be read."""
    return key.name or f"document {number}"


def skipped_problem(key: WorkloadKey, invalid: Sequence[str]) -> Problem:
    """The problem of a valid document in a set with invalid ones."""
    what = f"{key.name} was not deployed: {_names(invalid)} of the same set refused"
    return Problem(SET_REFUSED, what, Where(object=f"{key.project}/{key.name}"), next=_NEXT)


def set_refusal(records: Sequence[SubmissionRecord]) -> Refused:
    """The answer to a refused set: the problems of its invalid documents, then which documents were valid."""
    problems = [problem for each in records for problem in each.decisions[0].refusal().problems]
    invalid = [each for each in problems if each.reason is not SET_REFUSED]
    valid = [each.workload_key.name for each in records if each.decisions[0].rule == SET_REFUSED.code]
    if not valid:
        return Refused(*invalid)
    what = f"nothing of the set was deployed; without errors: {_names(valid)}"
    return Refused(*invalid, Problem(SET_REFUSED, what, next=_NEXT))


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
