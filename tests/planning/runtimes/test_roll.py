"""The plan of a roll, and the step of one that is under way."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from fractions import Fraction
from typing import Any, NamedTuple

import fleet
import msgspec
import pytest

from fleets import DONE, NOW, noun, part, runtime, runtimes, service, snapshots
from pincompute.api.names import SHAPE
from pincompute.api.runtime import Cursor
from pincompute.api.status import SUCCEEDED, Progress
from pincompute.base import reasons
from pincompute.planning.planners import PLANNERS
from pincompute.planning.pods.templates import in_place, shape_of, templates, use
from pincompute.planning.runtimes.roll import IN_PLACE, REPLACING, Fate, Line, RollPlan, budget, plan_roll, shape
from pincompute.planning.runtimes.runtime import Health, Runtimes
from pincompute.planning.runtimes.runtime_roll import advance, health_of
from pincompute.planning.runtimes.waves import bucket
from pincompute.planning.snapshot import Native

PARTS = (part("logs-2"), part("logs-3"), part("mesh-1", image="mesh:1", cpu="50m", memory="64Mi", port=15001))
NEXT = (*PARTS, runtime(42, "logs-2", done=DONE))


def line(owner: Any, *new: str, roll: dict[str, Any] | None = None) -> Line:
    known = runtimes(*NEXT, runtime(43, *new, roll=roll))
    (only,) = plan_roll(43, known, snapshots([owner], known)).lines
    return only


def test_another_image_is_in_place() -> None:
    same = {"image": "logs:2", "cpu": "10m"}
    known = runtimes(
        part("logs-2", **same),
        part("logs-3", **{**same, "image": "logs:3"}),
        runtime(42, "logs-2", done=DONE),
        runtime(43, "logs-3"),
    )
    (only,) = plan_roll(43, known, snapshots([service(replicas=12)], known)).lines
    assert (only.fate, only.pods, only.change.cpu) == (Fate.IN_PLACE, 12, 0)
    assert only.seconds == 12 * IN_PLACE


def test_another_part_replaces_pods_and_says_what_it_costs() -> None:
    only = line(service(replicas=4), "logs-2", "mesh-1", roll={"unavailable": "50%"})
    assert (only.fate, only.pods) == (Fate.REPLACED, 4)
    assert only.change == (4 * Fraction(50, 1000), 4 * 64 * 1024**2)
    assert only.seconds == 2 * REPLACING
    assert line(service(replicas=5), "mesh-1", roll={"unavailable": 2}).seconds == 3 * REPLACING


def test_a_part_that_goes_replaces_pods_too_and_gives_back_what_it_used() -> None:
    known = runtimes(*PARTS, runtime(42, "logs-2", "mesh-1", done=DONE), runtime(43, "logs-2"))
    planned = plan_roll(43, known, snapshots([service(replicas=4)], known))
    assert [each.fate for each in planned.lines] == [Fate.REPLACED]
    assert planned.lines[0].change.cpu == -4 * Fraction(50, 1000)
    assert planned.parts == ("mesh-1 goes",)


def test_what_a_part_does_not_serve_stays_as_it_is() -> None:
    known = runtimes(
        part("logs-2"),
        part("mesh-1", image="mesh:1", serves={"tiers": ["reserved"]}),
        runtime(42, "logs-2", done=DONE),
        runtime(43, "logs-2", "mesh-1"),
    )
    planned = plan_roll(43, known, snapshots([service("a"), service("b", tier="reserved")], known))
    assert [(each.name, each.fate) for each in planned.lines] == [("a", Fate.UNCHANGED), ("b", Fate.REPLACED)]
    assert planned.parts == ("mesh-1 is new",)


def test_a_hold_and_what_breaks_it() -> None:
    owner = service(hold={"runtime": 42, "until": "2026-12-31"})
    held = line(owner, "mesh-1")
    assert (held.fate, held.until) == (Fate.HELD, "2026-12-31")
    assert line(owner, "mesh-1", roll={"security": "CVE", "breakHolds": True}).fate == Fate.REPLACED
    assert line(service(hold={"runtime": 43, "until": "2026-12-31"}), "mesh-1").fate == Fate.REPLACED


def test_what_would_be_refused_says_why() -> None:
    taken = line(service(port=15001), "mesh-1")
    assert taken.fate == Fate.REFUSED
    assert [each.reason for each in taken.problems] == [reasons.PART_CONFLICT]
    unknown = line(service(sidecarConfig={"logs": {}}), "mesh-1")
    assert [each.reason for each in unknown.problems] == [reasons.PART_UNKNOWN]
    gone = line(service(), "logs-9")
    assert [each.reason for each in gone.problems] == [reasons.PART_GONE]


def test_work_that_ends_by_itself_is_not_disturbed() -> None:
    """By natives alone, so that it holds for every kind of work."""
    spec = {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}
    job: dict[str, Any] = {
        "kind": "Job",
        "metadata": {"name": "a"},
        "spec": {"parallelism": 3, "template": {"spec": spec}},
    }
    cron = {
        "kind": "CronJob",
        "metadata": {"name": "a"},
        "spec": {"jobTemplate": {"spec": {"template": {"spec": spec}}}},
    }
    roles = {"Worker": {"replicas": 2, "template": {"spec": spec}}, "PS": {"template": {"spec": spec}}}
    training = {"kind": "TFJob", "metadata": {"name": "a"}, "spec": {"tfReplicaSpecs": roles}}
    daemon = {"kind": "DaemonSet", "metadata": {"name": "a"}, "spec": {"template": {"spec": spec}}}
    found = list(
        templates([job, cron, training, daemon, {"kind": "Service", "metadata": {"name": "a"}, "spec": {}}], 7)
    )
    assert [(each.native, each.ends, each.copies) for each in found] == [
        ("Job/a", True, 3),
        ("CronJob/a", True, 1),
        ("TFJob/a/Worker", True, 2),
        ("TFJob/a/PS", True, 1),
        ("DaemonSet/a", False, 7),
    ]


def test_work_that_runs_gets_it_when_it_begins_again() -> None:
    metadata = {"name": "resize", "uid": "uid-1", "generation": 1}
    owner = noun({"kind": "PinterestJobSet", "metadata": metadata, "spec": {"image": "resize:1", "tasks": 5}})
    known = runtimes(*NEXT, runtime(43, "mesh-1"))
    (new,) = snapshots([owner], known)
    first = PLANNERS[owner.kind](new)
    natives = tuple(msgspec.convert(each, Native) for each in first.wanted)
    running = new._replace(owner=msgspec.structs.replace(owner, status=first.status), natives=natives)
    for seen in (new, running):
        (only,) = plan_roll(43, known, [seen]).lines
        assert (only.fate, only.pods, only.seconds) == (Fate.WHEN_FINISHED, 5, 0)
    # Another image reaches what runs where it is.
    images = runtimes(*NEXT, runtime(43, "logs-3"))
    fates = [plan_roll(43, images, [seen]).lines[0].fate for seen in (new, running)]
    assert fates == [Fate.WHEN_FINISHED, Fate.IN_PLACE]
    assert PLANNERS[owner.kind](running._replace(runtimes=known.finished(43))).wanted == first.wanted


def test_what_has_ended_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = {"runtime": 42, "conditions": [condition("Succeeded", "True", "Available", DONE)]}
    owner = service(status=ended)
    monkeypatch.setattr(type(owner), "GOAL", SUCCEEDED)
    assert line(owner, "mesh-1").fate == Fate.UNCHANGED


def test_a_roll_that_is_half_done_counts_only_what_is_left() -> None:
    known = runtimes(*NEXT, runtime(43, "mesh-1", roll={}, cursor={"percent": 50, "since": DONE}))
    owners = [service(uid=str(number)) for number in range(40)]
    planned = plan_roll(43, known, snapshots(owners, known))
    assert len(planned.of(Fate.REPLACED)) == sum(bucket(each) >= 50 for each in owners)


def test_sidecars_count_with_the_containers_and_init_containers_where_they_need_more() -> None:
    def asks(name: str, cpu: str, **more: str) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}

    pod = {
        "containers": [asks("a", "1")],
        "initContainers": [asks("s", "500m", restartPolicy="Always"), asks("i", "2")],
    }
    assert use({"spec": pod}).cpu == Fraction(5, 2)
    pod["initContainers"][1] = asks("i", "100m")
    assert use({"spec": pod}).cpu == Fraction(3, 2)


@pytest.mark.parametrize(
    ("change", "same"),
    [({"image": "b"}, True), ({"env": []}, False), ({"name": "b"}, False), ({"image": "b", "args": ["x"]}, False)],
)
def test_in_place_is_the_image_of_a_sidecar_and_nothing_else(change: dict[str, Any], same: bool) -> None:
    before, after = (_with(each, "a") for each in ({"name": "a", "image": "a"}, {"name": "a", "image": "a"} | change))
    assert in_place(before, after) is same
    before, after = (_with(each) for each in ({"name": "a", "image": "a"}, {"name": "a", "image": "a"} | change))
    assert not in_place(before, after)
    assert not in_place({"spec": {}}, {"spec": {}})


def _with(container: dict[str, Any], *sidecars: str) -> dict[str, Any]:
    """A template whose pods run it before their program, and such beside."""
    spec = {"initContainers": [container]}
    return {"metadata": {"labels": {SHAPE: shape_of({"spec": spec}, sidecars)}}, "spec": spec}


@pytest.mark.parametrize(("pods", "share", "at_a_time"), [(10, "25%", 2), (3, "10%", 1), (10, 4, 4), (1, "100%", 1)])
def test_the_budget_is_never_less_than_one(pods: int, share: int | str, at_a_time: int) -> None:
    assert budget(pods, share) == at_a_time


def planned_fleet(count: int) -> RollPlan:
    known = runtimes(*map(noun, fleet.runtimes())).finished(42)
    return plan_roll(43, known, snapshots(map(noun, fleet.workloads(count)), known))


def test_two_hundred_workloads() -> None:
    planned = planned_fleet(200)
    assert len(planned.lines) == 200
    assert planned.parts == ("logs-2 becomes logs-3", "mesh-1 is new")
    fates = Counter(each.fate for each in planned.lines)
    assert all(fates[each] for each in Fate if each != Fate.UNCHANGED)
    for each in planned.lines:
        assert each.kind != "PinterestJobSet" or each.fate in {Fate.WHEN_FINISHED, Fate.HELD}
    for each in planned.of(Fate.IN_PLACE):
        assert each.change == (0, 0)
    for each in planned.of(Fate.REPLACED):
        assert each.tier == "reserved"
        assert each.change.cpu == each.pods * Fraction(10, 1000)
    moving = fates[Fate.IN_PLACE] + fates[Fate.REPLACED]
    assert sum(each.workloads for each in planned.waves) == moving
    assert planned.seconds == sum(each.seconds for each in planned.waves) >= 3 * 600


def test_the_order_of_workloads_does_not_matter_and_programs_can_read_it() -> None:
    known = runtimes(*map(noun, fleet.runtimes())).finished(42)
    seen = snapshots(map(noun, fleet.workloads(40)), known)
    assert plan_roll(43, known, seen) == plan_roll(43, known, seen[::-1])
    told = shape(plan_roll(43, known, seen))
    assert msgspec.json.decode(msgspec.json.encode(told)) == told


# A roll that is under way.

BEGAN = "2026-01-31T11:55:00Z"
CURSOR = Cursor(percent=5, since=BEGAN)


def condition(type_: str, status: str, reason: str, since: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": since}


def under_way(health: Health, **roll: Any) -> tuple[Any, Runtimes]:
    owner = runtime(43, "logs-3", roll=roll, cursor={"percent": 5, "since": BEGAN})
    return owner, runtimes(*NEXT, owner)._replace(health=health)


class Waiting(NamedTuple):
    """A wave, how those that it reached are doing, and what comes of it."""

    health: Health
    roll: dict[str, Any]
    percent: int
    reason: reasons.Reason
    words: str
    wake_after: float | None = None


WAITING = (
    Waiting(Health(), {}, 5, reasons.PROGRESSING, "wave 1 of 3 (5%) has begun"),
    Waiting(Health(CURSOR, 4, 3), {}, 5, reasons.PROGRESSING, "3 of 4 workloads have it and are well"),
    Waiting(Health(CURSOR, 4, 4), {}, 5, reasons.PROGRESSING, "watched until 2026-01-31T12:05:00Z", 300.0),
    Waiting(Health(CURSOR, 4, 4), {"pauseSeconds": 300}, 25, reasons.PROGRESSING, "wave 2 of 3 (25%) has begun"),
    Waiting(Health(CURSOR, 0, 0), {"pauseSeconds": 0}, 25, reasons.PROGRESSING, "wave 2 of 3"),
    Waiting(Health(CURSOR, 4, 3, ("me/a",)), {}, 5, reasons.ROLL_UNHEALTHY, "1 of 4 workloads fail since"),
    Waiting(Health(CURSOR, 9, 4, tuple("abcde")), {}, 5, reasons.ROLL_UNHEALTHY, "a, b, c and 2 more"),
    Waiting(Health(CURSOR, 4, 3, ("me/a",)), {"failures": 1, "pauseSeconds": 0}, 25, reasons.PROGRESSING, "wave 2"),
    Waiting(Health(CURSOR, 4, 4), {"pauseSeconds": 0, "paused": "ann: errors"}, 5, reasons.PAUSED, "ann: errors"),
)


@pytest.mark.parametrize("row", WAITING, ids=lambda row: row.words)
def test_what_a_wave_waits_for(row: Waiting) -> None:
    step = advance(*under_way(row.health, **row.roll), NOW)
    assert step.cursor is not None
    assert (step.cursor.percent, step.reason, step.wake_after) == (row.percent, row.reason, row.wake_after)
    assert row.words in step.message


def test_a_roll_goes_wave_by_wave_to_its_end_and_rests_there() -> None:
    owner = runtime(43, "logs-3", roll={"waves": [10, 100], "pauseSeconds": 60})
    percents: list[int] = []
    now = NOW
    while not owner.status.done:
        known = runtimes(*NEXT, owner)
        known = known._replace(health=Health(known.cursor, 3, 3))
        step = advance(owner, known, now)
        assert advance(owner, known, now) == step
        status = msgspec.structs.replace(owner.status, cursor=step.cursor, done=step.done)
        owner = msgspec.structs.replace(owner, status=status)
        percents.append(step.cursor.percent if step.cursor else 0)
        now += timedelta(seconds=30)
    assert percents == [10, 10, 100, 100, 100]
    assert runtimes(*NEXT, owner).current == 43


@pytest.mark.parametrize(
    ("health", "proven"),
    [
        (Health(CURSOR, 4, 4, in_place=9), True),
        (Health(CURSOR, 4, 4, replaced=9), True),
        (Health(CURSOR, 4, 4), False),
    ],
)
def test_a_runtime_is_proven_once_copies_have_run_with_it_through_a_wave(health: Health, proven: bool) -> None:
    owner, known = under_way(health, pauseSeconds=0)
    begun = advance(owner, known, NOW).cursor
    assert begun is not None
    assert begun.proven == proven
    assert known.proven(42)
    assert not known.proven(43)
    status = msgspec.structs.replace(owner.status, cursor=begun)
    rolling = msgspec.structs.replace(owner, status=status)
    later = runtimes(*NEXT, rolling)
    assert later.proven(43) == proven
    # And it stays so, although nothing was changed in the wave between.
    following = advance(rolling, later._replace(health=Health(begun, 4, 4)), NOW).cursor
    assert following is not None
    assert following.proven == proven


def test_a_roll_back_is_one_word_and_everybody_has_the_older_one_at_once() -> None:
    owner = runtime(43, "logs-3", roll={"stopped": "ann: logs-3 loses lines"}, cursor={"percent": 25, "since": BEGAN})
    known = runtimes(*NEXT, owner)
    assert (known.current, known.next) == (42, 0)
    step = advance(owner, known, NOW)
    assert (step.cursor, step.reason) == (None, reasons.STOPPED)
    assert step.message == "it was taken back by ann: logs-3 loses lines; everybody has runtime 42 again"


def well(uid: str, number: int, *, ready: str = "True", reason: str = "Available", since: str = DONE) -> Any:
    status = {"runtime": number, "observedGeneration": 1, "conditions": [condition("Ready", ready, reason, since)]}
    return service(f"w-{uid}", uid, status)


def test_health_is_of_those_that_the_wave_has_reached() -> None:
    known = runtimes(*NEXT, runtime(43, "logs-3", roll={}, cursor={"percent": 100, "since": BEGAN}))
    later = "2026-01-31T11:57:00Z"
    workloads = [
        well("there", 43),
        well("not-yet-planned", 42),
        well("starting", 43, ready="False", reason="Progressing", since=later),
        well("failing", 43, ready="False", reason="CrashLoop", since=later),
        well("failing-before", 43, ready="False", reason="CrashLoop", since=DONE),
        well("kept-still", 42, ready="False", reason="Paused", since=later),
        service("held", "held", hold={"runtime": 42, "until": "2026-12-31"}),
    ]
    found = health_of(workloads, known, NOW)
    assert found == Health(known.cursor, 4, 1, ("me/w-failing",))
    assert health_of(workloads[::-1], known, NOW) == found


def test_without_a_roll_nothing_is_counted() -> None:
    assert health_of([well("there", 42)], runtimes(*NEXT), NOW) == Health()


def test_work_that_gets_on_is_well_before_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = well("there", 43, ready="False", reason="Progressing")
    monkeypatch.setattr(type(owner), "GOAL", SUCCEEDED)
    progress = msgspec.structs.replace(owner.status, progress=Progress(), conditions=[
        msgspec.structs.replace(each, type=SUCCEEDED) for each in owner.status.conditions
    ])  # fmt: skip
    begun = msgspec.structs.replace(owner, status=progress)
    known = runtimes(*NEXT, runtime(43, "logs-3", roll={}, cursor={"percent": 100, "since": BEGAN}))
    assert health_of([begun], known, NOW) == Health(known.cursor, 1, 1)
