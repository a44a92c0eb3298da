"""Glass that is broken: on what terms, for how long, and what is told of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from fleets import noun
from pincompute.api.change import Rollback
from pincompute.api.glass import Glass, Wish
from pincompute.api.project import Project
from pincompute.api.wire import spoken
from pincompute.planning.glass import behind, broken, needless, overdue, refusal, trace
from pincompute.planning.people.answer import answer
from pincompute.planning.people.edits import edit
from pincompute.planning.people.history import Past
from pincompute.planning.people.news import news
from pincompute.planning.people.summary import summarize
from pincompute.planning.plan import Plan
from worlds import NOW, alone, plan

WHY = "INC-4711: checkout is down"
HOUR = timedelta(hours=1)


def workload(glass: Glass | None) -> Any:
    spec = {"image": "web:1", "port": 80}
    return behind(
        noun({"kind": "PinterestService", "metadata": {"name": "web", "project": "ads"}, "spec": spec}), glass
    )


def project(review: str) -> Project:
    spec: dict[str, Any] = {"owner": "team-ads", "review": review, "quota": {"on-demand": {}}}
    return msgspec.convert({"metadata": {"name": "ads"}, "spec": spec, "kind": "Project"}, Project)


HOURS_4 = broken(Wish(WHY), "ann", NOW)


def planned(glass: Glass | None, after: timedelta = timedelta(), before: Plan | None = None) -> Plan:
    owner = workload(glass)
    if before:
        owner = msgspec.structs.replace(owner, status=before.status)
    return plan(alone(owner)._replace(now=NOW + after))


def said(some: Plan) -> list[tuple[str, str]]:
    return [(each.reason, each.message) for each in some.status.conditions if each.type == "Unreviewed"]


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (Wish(WHY), ""),
        (Wish(WHY, 24 * 3600), ""),
        (Wish(WHY, 24 * 3600 + 1), "24 hours at most"),
        (Wish(WHY, 0), "24 hours at most"),
        (Wish(WHY, -1), "24 hours at most"),
        (Wish(" \n"), "nothing is said of why"),
        (Wish("x" * 1025), "more than 1,024 characters"),
    ],
)
def test_on_what_terms(wish: Wish, told: str) -> None:
    problem = refusal(wish)
    assert told in (problem.what if problem else "")
    assert bool(problem) == bool(told)


def test_it_is_on_record_who_did_and_why_and_until_when() -> None:
    assert Glass(until="2026-01-31T16:00:00Z", by="ann", because=WHY) == HOURS_4
    assert trace(HOURS_4) == f"until 2026-01-31T16:00:00Z: {WHY}"


def test_where_nothing_is_closed_nothing_is_broken() -> None:
    assert needless(project("landed"), workload(None)) is None
    for there in (project("open"), None):
        problem = needless(there, workload(None))
        assert problem
        assert problem.next == "leave --break-glass out"


def test_it_is_over_at_that_moment_and_not_before() -> None:
    assert overdue(workload(HOURS_4), NOW + 4 * HOUR - timedelta.resolution) is None
    assert overdue(workload(HOURS_4), NOW + 4 * HOUR)
    assert overdue(workload(None), NOW) is None
    # What cannot be read was over before it began.
    assert overdue(workload(Glass(until="2026-13-31T16:00:00Z")), NOW)


def test_what_runs_does_not_notice() -> None:
    """What it becomes is the same, but for the record of its revision."""
    made = [
        [each for each in some.wanted if each["kind"] != "ConfigMap"]
        for some in (planned(None), planned(HOURS_4), planned(HOURS_4, 5 * HOUR))
    ]
    assert made[0] == made[1] == made[2]
    assert planned(HOURS_4).wanted == planned(HOURS_4, 5 * HOUR).wanted
    assert planned(HOURS_4, HOUR).wake_after == (3 * HOUR).total_seconds()


def test_it_is_told_once_that_it_is_so_that_it_lasts_too_long_and_that_it_is_over() -> None:
    first = planned(HOURS_4)
    late = planned(HOURS_4, 5 * HOUR, first)
    mended = planned(None, 6 * HOUR, late)
    assert [reason for each in (first, late, mended) for reason, _ in said(each)] == ["GlassBroken", "GlassOverdue"]
    told = [
        [(each.reason, each.warning) for each in news(owner, after.status) if each.action == "Review"]
        for owner, after in (
            (workload(HOURS_4), first),
            (msgspec.structs.replace(workload(HOURS_4), status=first.status), planned(HOURS_4, HOUR, first)),
            (msgspec.structs.replace(workload(HOURS_4), status=first.status), late),
            (msgspec.structs.replace(workload(None), status=late.status), mended),
            (msgspec.structs.replace(workload(None), status=mended.status), planned(None, 7 * HOUR, mended)),
        )
    ]
    assert told == [[("GlassBroken", True)], [], [("GlassOverdue", True)], [("Reviewed", False)], []]


def test_why_tells_it_and_calls_it_a_fault_only_when_it_is_over() -> None:
    snapshot = alone(workload(HOURS_4))
    found = answer(snapshot, (), None)
    assert (found.wrong, WHY in found.note, "until 2026-01-31T16:00:00Z" in found.note) == (False, True, True)
    late = answer(snapshot._replace(now=NOW + 5 * HOUR), (), None)
    assert (late.wrong, late.reason, WHY in late.note) == (True, "GlassOverdue", True)
    assert "pin rollback web" in late.next


def test_the_list_shows_it_where_nothing_else_is_wrong() -> None:
    for word, after, reason in (
        ("True", HOUR, "GlassBroken"),
        ("False", HOUR, "Progressing"),
        ("True", 5 * HOUR, "GlassOverdue"),
        ("False", 5 * HOUR, "GlassOverdue"),
    ):
        goal, *others = planned(HOURS_4, after).status.conditions
        said = msgspec.structs.replace(
            planned(HOURS_4, after).status, conditions=[msgspec.structs.replace(goal, status=word), *others]
        )
        assert summarize(msgspec.structs.replace(workload(HOURS_4), status=said)).reason == reason


@pytest.mark.parametrize(("then", "late"), [(None, False), (HOURS_4, True)])
def test_a_rollback_brings_back_how_it_was_let_in(then: Glass | None, late: bool) -> None:
    """So one rule is enough, asked of what is to be."""
    now = workload(broken(Wish("INC-4712"), "ben", NOW))
    now = msgspec.structs.replace(now, metadata=msgspec.structs.replace(now.metadata, generation=2))
    past = Past(owner=now, number=1, at="2026-01-31T08:00:00Z", said=spoken(workload(then).spec))
    done = edit(now, Rollback(), [past]).workload
    assert done.spec.break_glass == then
    assert (overdue(done, NOW + 5 * HOUR) is not None) == late
