"""Status, events and diagnosis of a workload that runs under an emergency override."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from pincompute.api.break_glass import BreakGlass
from pincompute.api.change import Rollback
from pincompute.api.structs import without_defaults
from pincompute.planning.break_glass import check_break_glass_expired
from pincompute.planning.diagnosis.explain import diagnose
from pincompute.planning.edits import apply_change
from pincompute.planning.notable_events import status_events
from pincompute.planning.plan import Plan
from pincompute.planning.revision_number import revision_content
from pincompute.planning.views.history import RevisionRecord
from pincompute.planning.views.summary import summarize
from runtime_builders import build_resource
from snapshot_strategies import NOW, new_snapshot, plan_snapshot

REASON = "INC-4711: checkout is down"
HOUR = timedelta(hours=1)
FOUR_HOURS = BreakGlass(until="2026-01-31T16:00:00Z", by="ann", because=REASON)


def service(override: BreakGlass | None) -> Any:
    spec = {"image": "web:1", "port": 80}
    found: Any = build_resource(
        {"kind": "PinterestService", "metadata": {"name": "web", "project": "ads"}, "spec": spec}
    )
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, break_glass=override))


def planned(override: BreakGlass | None, after: timedelta = timedelta(), before: Plan | None = None) -> Plan:
    owner = service(override)
    if before:
        owner = msgspec.structs.replace(owner, status=before.status)
    return plan_snapshot(new_snapshot(owner)._replace(now=NOW + after))


def unreviewed_reasons(plan: Plan) -> list[str]:
    return [each.reason for each in plan.status.conditions if each.type == "Unreviewed"]


def test_expires_exactly_at_its_end() -> None:
    assert check_break_glass_expired(service(FOUR_HOURS), NOW + 4 * HOUR - timedelta.resolution) is None
    assert check_break_glass_expired(service(FOUR_HOURS), NOW + 4 * HOUR)
    assert check_break_glass_expired(service(None), NOW) is None


def test_unparseable_end_counts_as_expired() -> None:
    assert check_break_glass_expired(service(BreakGlass(until="2026-13-31T16:00:00Z")), NOW)


def test_override_changes_nothing_that_runs() -> None:
    """All objects are the same, except for the record of the revision."""
    plans = (planned(None), planned(FOUR_HOURS), planned(FOUR_HOURS, 5 * HOUR))
    running = [[each for each in plan.wanted if each["kind"] != "ConfigMap"] for plan in plans]
    assert running[0] == running[1] == running[2]
    assert planned(FOUR_HOURS).wanted == planned(FOUR_HOURS, 5 * HOUR).wanted


def test_wakes_up_when_the_override_expires() -> None:
    assert planned(FOUR_HOURS, HOUR).wake_after_s == (3 * HOUR).total_seconds()


def test_reports_activation_expiry_and_review_once_each() -> None:
    active = planned(FOUR_HOURS)
    expired = planned(FOUR_HOURS, 5 * HOUR, active)
    reviewed = planned(None, 6 * HOUR, expired)
    assert [reason for plan in (active, expired, reviewed) for reason in unreviewed_reasons(plan)] == [
        "BreakGlassActive",
        "BreakGlassExpired",
    ]
    events = [
        [(each.reason, each.warning) for each in status_events(owner, after.status) if each.action == "Review"]
        for owner, after in (
            (service(FOUR_HOURS), active),
            (msgspec.structs.replace(service(FOUR_HOURS), status=active.status), planned(FOUR_HOURS, HOUR, active)),
            (msgspec.structs.replace(service(FOUR_HOURS), status=active.status), expired),
            (msgspec.structs.replace(service(None), status=expired.status), reviewed),
            (msgspec.structs.replace(service(None), status=reviewed.status), planned(None, 7 * HOUR, reviewed)),
        )
    ]
    assert events == [[("BreakGlassActive", True)], [], [("BreakGlassExpired", True)], [("Reviewed", False)], []]


def test_diagnosis_is_a_problem_only_after_expiry() -> None:
    snapshot = new_snapshot(service(FOUR_HOURS))
    active = diagnose(snapshot, (), None)
    assert (active.is_problem, REASON in active.note, "until 2026-01-31T16:00:00Z" in active.note) == (
        False,
        True,
        True,
    )
    expired = diagnose(snapshot._replace(now=NOW + 5 * HOUR), (), None)
    assert (expired.is_problem, expired.reason, REASON in expired.note) == (True, "BreakGlassExpired", True)
    assert "pin rollback web" in expired.next


def test_summary_shows_the_override_unless_something_else_is_wrong() -> None:
    for goal_status, after, reason in (
        ("True", HOUR, "BreakGlassActive"),
        ("False", HOUR, "Progressing"),
        ("True", 5 * HOUR, "BreakGlassExpired"),
        ("False", 5 * HOUR, "BreakGlassExpired"),
    ):
        status = planned(FOUR_HOURS, after).status
        goal, *others = status.conditions
        conditions = [msgspec.structs.replace(goal, status=goal_status), *others]
        owner = msgspec.structs.replace(
            service(FOUR_HOURS), status=msgspec.structs.replace(status, conditions=conditions)
        )
        assert summarize(owner).reason == reason


@pytest.mark.parametrize(("earlier", "expired"), [(None, False), (FOUR_HOURS, True)])
def test_rollback_restores_the_override_of_the_revision(earlier: BreakGlass | None, expired: bool) -> None:
    """So that one check of the result is enough."""
    now = service(BreakGlass(until="2026-01-31T16:00:00Z", by="ben", because="INC-4712"))
    status = msgspec.structs.replace(now.status, revision=2, content=revision_content(now.spec))
    now = msgspec.structs.replace(now, status=status)
    record = RevisionRecord(
        owner=now, number=1, created_at="2026-01-31T08:00:00Z", raw_spec=without_defaults(service(earlier).spec)
    )
    restored = apply_change(now, Rollback(partial=True), [record]).workload
    assert restored.spec.break_glass == earlier
    assert (check_break_glass_expired(restored, NOW + 5 * HOUR) is not None) == expired
