"""Decisions on break-glass requests: their conditions, their duration and their record."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.admission.break_glass import (
    break_glass_record_text,
    check_break_glass_needed,
    check_break_glass_request,
    grant_break_glass,
    set_break_glass,
)
from pincompute.api.break_glass import BreakGlass, BreakGlassRequest
from pincompute.api.project import Project
from runtime_builders import build_resource
from snapshot_strategies import NOW

REASON = "INC-4711: checkout is down"


def service(override: BreakGlass | None = None) -> Any:
    spec = {"image": "web:1", "port": 80}
    document = {"kind": "PinterestService", "metadata": {"name": "web", "project": "ads"}, "spec": spec}
    return set_break_glass(build_resource(document), override)


def project_with_review(review: str) -> Project:
    spec: dict[str, Any] = {"owner": "team-ads", "review": review, "quota": {"on-demand": {}}}
    return msgspec.convert({"metadata": {"name": "ads"}, "spec": spec, "kind": "Project"}, Project)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (BreakGlassRequest(REASON), ""),
        (BreakGlassRequest(REASON, 24 * 3600), ""),
        (BreakGlassRequest(REASON, 24 * 3600 + 1), "at most 24 hours"),
        (BreakGlassRequest(REASON, 0), "at most 24 hours"),
        (BreakGlassRequest(REASON, -1), "at most 24 hours"),
        (BreakGlassRequest(" \n"), "needs a reason"),
        (BreakGlassRequest("x" * 1025), "longer than 1,024 characters"),
    ],
)
def test_requires_reason_and_limited_duration(request_: BreakGlassRequest, error: str) -> None:
    problem = check_break_glass_request(request_)
    assert error in (problem.what if problem else "")
    assert bool(problem) == bool(error)


def test_records_user_reason_and_end() -> None:
    override = grant_break_glass(BreakGlassRequest(REASON), "ann", NOW)
    assert override == BreakGlass(until="2026-01-31T16:00:00Z", by="ann", because=REASON)
    assert break_glass_record_text(override) == f"until 2026-01-31T16:00:00Z: {REASON}"


def test_rejects_break_glass_where_no_review_is_required() -> None:
    assert check_break_glass_needed(project_with_review("landed"), service()) is None
    for project in (project_with_review("open"), None):
        problem = check_break_glass_needed(project, service())
        assert problem
        assert problem.next == "leave out --break-glass"
