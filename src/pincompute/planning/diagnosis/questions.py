"""The questions that a diagnosis from the pods and their controllers leaves open, so that nothing else is read."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto

from pincompute.api.service import PinterestService
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import Diagnosis
from pincompute.base.reasons import QUOTA_USED_UP, find_reason
from pincompute.planning.diagnosis.evidence import CAPACITY_REASONS
from pincompute.planning.diagnosis.remediation import may_be_rolled_back
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.status import active_pods_of

_EXPLAINED_WITHOUT_EVENTS = CAPACITY_REASONS | {QUOTA_USED_UP}
"""Causes whose evidence is in the nodes or in the pods of the project."""


class Question(Enum):
    INGRESS = auto()
    """Does an ingress controller serve the address?"""
    EVENTS = auto()
    """Which events tell more, or that an edit was reverted?"""
    REVISIONS = auto()
    """Which revision was healthy?"""


def open_questions(snapshot: Snapshot, first: Diagnosis, edited: datetime | None) -> frozenset[Question]:
    """The questions after the first diagnosis, which knows neither events nor revisions nor an Ingress."""
    owner: Workload = snapshot.owner
    reason = find_reason(first.reason)
    asked: set[Question] = set()
    if reason not in _EXPLAINED_WITHOUT_EVENTS:
        asked.add(Question.EVENTS)
    if isinstance(owner, PinterestService) and owner.spec.has_ingress and _all_ready(snapshot):
        asked.add(Question.INGRESS)
    if reason and reason.is_problem and may_be_rolled_back(owner, reason, edited):
        asked.add(Question.REVISIONS)
    return frozenset(asked)


def _all_ready(snapshot: Snapshot) -> bool:
    pods = active_pods_of(snapshot)
    return bool(pods) and all(pod.ready for pod in pods)
