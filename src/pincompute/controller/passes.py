"""The values of one pass: its key, what triggered it, how it ended."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple


class Key(NamedTuple):
    """Identifies an owner with everything that is planned from it: the unit of reconciliation."""

    project: str
    """Empty for cluster-scoped owners, such as a project itself."""
    name: str
    kind: str = ""
    """Empty for workloads: a workload's name is unique in its project over all kinds."""

    def __str__(self) -> str:
        return "/".join(each for each in (self.kind, self.project, self.name) if each)


class Trigger(Enum):
    """Why a pass is made. Lower priorities run first: a user's edit must not wait behind a roll over all workloads."""

    SPEC_CHANGED = "the owner's spec changed", 0
    OBJECT_CHANGED = "the owner or one of its objects changed", 1
    TIMER = "a timer of the last plan expired", 1
    RETRY = "retry after a failed pass", 1
    CONTEXT_CHANGED = "its project, its runtime or the visible kinds changed", 2
    INITIAL_LIST = "found when the operator started", 2

    @property
    def description(self) -> str:
        return self.value[0]

    @property
    def priority(self) -> int:
        return self.value[1]


PRIORITY_COUNT = 1 + max(each.priority for each in Trigger)


class Outcome(StrEnum):
    """How a pass ended. The values are labels of metrics."""

    UNCHANGED = "unchanged"
    """Everything was as wanted; no request was sent."""
    CHANGED = "changed"
    """Steps were executed or the status was written."""
    DELETED = "deleted"
    """The owner no longer exists."""
    STALE_CACHE = "stale_cache"
    """The cache does not show our own last write yet; the pass was skipped."""
    CONFLICT = "conflict"
    """An object was modified between the snapshot and a write."""
    FAILED = "failed"
    """The API server or the plan refused; the reason is in the owner's status."""
    PANICKED = "panicked"
    """An unexpected exception: a bug of ours."""


class PassResult(NamedTuple):
    """How a pass ended, and what follows from it."""

    outcome: Outcome = Outcome.UNCHANGED
    requeue_after_s: float | None = None
    """When to reconcile again without any event; None for not at all."""
    steps: tuple[str, ...] = ()
    """Executed steps, such as `Apply Deployment/hello`."""
    why: str = ""
    """The reason why the state is not as wanted, or why the pass failed."""


RETRIED_OUTCOMES = frozenset({Outcome.CONFLICT, Outcome.FAILED, Outcome.PANICKED})
"""Outcomes after which the key is retried with backoff."""
