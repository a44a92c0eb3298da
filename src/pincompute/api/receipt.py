"""Submissions as recorded by the desk."""

from __future__ import annotations

from typing import Any

from pincompute.api.structs import LenientStruct
from pincompute.api.workload_summary import WorkloadSummary


class SubmissionReceipt(LenientStruct, frozen=True, omit_defaults=False):
    """Record of a submission. The document itself is left out: only its authors may read it."""

    id: str
    accepted_at: str
    caller: str
    project: str
    kind: str
    name: str
    verb: str
    """deploy, delete, or the name of the change."""
    state: str
    """accepted, delivered or refused."""
    url: str
    """URL of this receipt, for polling."""
    attempts: int = 0
    """Number of failed delivery attempts."""
    last_delivery_error: str = ""
    """Error of the last delivery attempt."""
    errors: list[dict[str, Any]] = []
    """Problems for which it was refused."""


class SubmissionOutcome(LenientStruct, frozen=True, omit_defaults=False):
    """Result for one document of a set."""

    receipt: SubmissionReceipt
    summary: WorkloadSummary | None = None
    """State in the cluster; None if it is not delivered yet or was refused."""
