"""Preview of a roll, and the steps of a roll in progress."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from fractions import Fraction
from typing import Any, NamedTuple

import generate_fleet
import msgspec
import pytest

from pincompute.api.names import IN_PLACE_HASH_LABEL
from pincompute.api.runtime import RollCursor
from pincompute.api.status import SUCCEEDED, Progress
from pincompute.base import reasons
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.pods.templates import can_update_in_place, in_place_hash_of, pod_templates, resource_use
from pincompute.planning.runtimes.roll import advance_roll, roll_health
from pincompute.planning.runtimes.roll_preview import (
    IN_PLACE_ESTIMATE_S,
    REPLACE_ESTIMATE_S,
    RollEffect,
    RollPlan,
    WorkloadEffect,
    plan_roll,
    roll_plan_json,
    unavailable_budget,
)
from pincompute.planning.runtimes.selection import RollHealth, Runtimes
from pincompute.planning.runtimes.waves import rollout_bucket
from pincompute.planning.snapshot import Native
from runtime_builders import (
    DONE_AT,
    NOW,
    build_part,
    build_resource,
    build_runtime,
    build_runtimes,
    build_service,
    build_snapshots,
)

PARTS = (
    build_part("logs-2"),
    build_part("logs-3"),
    build_part("mesh-1", image="mesh:1", cpu="50m", memory="64Mi", port=15001),
)
NEXT = (*PARTS, build_runtime(42, "logs-2", done=DONE_AT))


def effect_on(owner: Any, *new: str, roll: dict[str, Any] | None = None) -> WorkloadEffect:
    known = build_runtimes(*NEXT, build_runtime(43, *new, roll=roll))
    (only,) = plan_roll(43, known, build_snapshots([owner], known)).effects
    return only


def test_another_sidecar_image_is_an_in_place_update() -> None:
    same = {"image": "logs:2", "cpu": "10m"}
    known = build_runtimes(
        build_part("logs-2", **same),
        build_part("logs-3", **{**same, "image": "logs:3"}),
        build_runtime(42, "logs-2", done=DONE_AT),
        build_runtime(43, "logs-3"),
    )
    (only,) = plan_roll(43, known, build_snapshots([build_service(replicas=12)], known)).effects
    assert (only.effect, only.pods, only.resource_change.cpu) == (RollEffect.IN_PLACE, 12, 0)
    assert only.seconds == 12 * IN_PLACE_ESTIMATE_S


def test_new_part_replaces_pods_and_reports_its_resources() -> None:
    only = effect_on(build_service(replicas=4), "logs-2", "mesh-1", roll={"unavailable": "50%"})
    assert (only.effect, only.pods) == (RollEffect.REPLACED, 4)
    assert only.resource_change == (4 * Fraction(50, 1000), 4 * 64 * 1024**2)
    assert only.seconds == 2 * REPLACE_ESTIMATE_S
    assert effect_on(build_service(replicas=5), "mesh-1", roll={"unavailable": 2}).seconds == 3 * REPLACE_ESTIMATE_S


def test_removed_part_replaces_pods_and_frees_its_resources() -> None:
    known = build_runtimes(*PARTS, build_runtime(42, "logs-2", "mesh-1", done=DONE_AT), build_runtime(43, "logs-2"))
    planned = plan_roll(43, known, build_snapshots([build_service(replicas=4)], known))
    assert [each.effect for each in planned.effects] == [RollEffect.REPLACED]
    assert planned.effects[0].resource_change.cpu == -4 * Fraction(50, 1000)
    assert planned.part_changes == ("mesh-1 is removed",)


def test_workloads_not_served_by_a_new_part_are_unchanged() -> None:
    known = build_runtimes(
        build_part("logs-2"),
        build_part("mesh-1", image="mesh:1", serves={"tiers": ["reserved"]}),
        build_runtime(42, "logs-2", done=DONE_AT),
        build_runtime(43, "logs-2", "mesh-1"),
    )
    planned = plan_roll(43, known, build_snapshots([build_service("a"), build_service("b", tier="reserved")], known))
    assert [(each.name, each.effect) for each in planned.effects] == [
        ("a", RollEffect.UNCHANGED),
        ("b", RollEffect.REPLACED),
    ]
    assert planned.part_changes == ("mesh-1 is new",)


def test_hold_is_reported_unless_the_roll_breaks_holds() -> None:
    owner = build_service(hold={"runtime": 42, "until": "2026-12-31"})
    held = effect_on(owner, "mesh-1")
    assert (held.effect, held.held_until) == (RollEffect.HELD, "2026-12-31")
    assert effect_on(owner, "mesh-1", roll={"security": "CVE", "breakHolds": True}).effect == RollEffect.REPLACED
    assert effect_on(build_service(hold={"runtime": 43, "until": "2026-12-31"}), "mesh-1").effect == RollEffect.REPLACED


def test_refused_workloads_have_their_problem() -> None:
    conflict = effect_on(build_service(port=15001), "mesh-1")
    assert conflict.effect == RollEffect.REFUSED
    assert [each.reason for each in conflict.problems] == [reasons.PART_CONFLICT]
    unknown = effect_on(build_service(sidecarConfig={"logs": {}}), "mesh-1")
    assert [each.reason for each in unknown.problems] == [reasons.PART_UNKNOWN]
    missing = effect_on(build_service(), "logs-9")
    assert [each.reason for each in missing.problems] == [reasons.PART_MISSING]


def test_templates_of_finite_kinds_are_marked() -> None:
    """Checked on native objects, so that it holds for all kinds."""
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
    templates = list(
        pod_templates([job, cron, training, daemon, {"kind": "Service", "metadata": {"name": "a"}, "spec": {}}], 7)
    )
    assert [(each.key, each.is_finite, each.replicas) for each in templates] == [
        ("Job/a", True, 3),
        ("CronJob/a", True, 1),
        ("TFJob/a/Worker", True, 2),
        ("TFJob/a/PS", True, 1),
        ("DaemonSet/a", False, 7),
    ]


def test_work_in_progress_gets_the_runtime_when_finished() -> None:
    metadata = {"name": "resize", "uid": "uid-1", "generation": 1}
    owner = build_resource({"kind": "PinterestJobSet", "metadata": metadata, "spec": {"image": "resize:1", "tasks": 5}})
    known = build_runtimes(*NEXT, build_runtime(43, "mesh-1"))
    (new,) = build_snapshots([owner], known)
    first = PLANNERS[owner.kind](new)
    natives = tuple(msgspec.convert(each, Native) for each in first.wanted)
    running = new._replace(owner=msgspec.structs.replace(owner, status=first.status), natives=natives)
    for snapshot in (new, running):
        (only,) = plan_roll(43, known, [snapshot]).effects
        assert (only.effect, only.pods, only.seconds) == (RollEffect.WHEN_FINISHED, 5, 0)
    # Images of running sidecars can be updated in place.
    images = build_runtimes(*NEXT, build_runtime(43, "logs-3"))
    effects = [plan_roll(43, images, [snapshot]).effects[0].effect for snapshot in (new, running)]
    assert effects == [RollEffect.WHEN_FINISHED, RollEffect.IN_PLACE]
    assert PLANNERS[owner.kind](running._replace(runtimes=known.after_roll(43))).wanted == first.wanted


def test_finished_work_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = {"runtime": 42, "conditions": [condition("Succeeded", "True", "Available", DONE_AT)]}
    owner = build_service(status=ended)
    monkeypatch.setattr(type(owner), "GOAL", SUCCEEDED)
    assert effect_on(owner, "mesh-1").effect == RollEffect.UNCHANGED


def test_preview_of_a_roll_in_progress_counts_the_rest() -> None:
    known = build_runtimes(*NEXT, build_runtime(43, "mesh-1", roll={}, cursor={"percent": 50, "since": DONE_AT}))
    owners = [build_service(uid=str(number)) for number in range(40)]
    planned = plan_roll(43, known, build_snapshots(owners, known))
    assert len(planned.with_effect(RollEffect.REPLACED)) == sum(rollout_bucket(each) >= 50 for each in owners)


def test_resource_use_is_the_sum_of_running_containers_or_the_peak_of_the_start() -> None:
    def container(name: str, cpu: str, **more: str) -> dict[str, Any]:
        return {"name": name, "resources": {"requests": {"cpu": cpu}}, **more}

    pod = {
        "containers": [container("a", "1")],
        "initContainers": [container("s", "500m", restartPolicy="Always"), container("i", "2")],
    }
    assert resource_use({"spec": pod}).cpu == Fraction(5, 2)
    pod["initContainers"][1] = container("i", "100m")
    assert resource_use({"spec": pod}).cpu == Fraction(3, 2)


@pytest.mark.parametrize(
    ("change", "same"),
    [({"image": "b"}, True), ({"env": []}, False), ({"name": "b"}, False), ({"image": "b", "args": ["x"]}, False)],
)
def test_only_sidecar_images_can_be_updated_in_place(change: dict[str, Any], same: bool) -> None:
    before, after = (_with(each, "a") for each in ({"name": "a", "image": "a"}, {"name": "a", "image": "a"} | change))
    assert can_update_in_place(before, after) is same
    before, after = (_with(each) for each in ({"name": "a", "image": "a"}, {"name": "a", "image": "a"} | change))
    assert not can_update_in_place(before, after)
    assert not can_update_in_place({"spec": {}}, {"spec": {}})


def _with(container: dict[str, Any], *sidecars: str) -> dict[str, Any]:
    """Template with one init container, which is a sidecar if it is listed."""
    spec = {"initContainers": [container]}
    return {"metadata": {"labels": {IN_PLACE_HASH_LABEL: in_place_hash_of({"spec": spec}, sidecars)}}, "spec": spec}


@pytest.mark.parametrize(("pods", "share", "at_a_time"), [(10, "25%", 2), (3, "10%", 1), (10, 4, 4), (1, "100%", 1)])
def test_unavailable_budget_is_at_least_one(pods: int, share: int | str, at_a_time: int) -> None:
    assert unavailable_budget(pods, share) == at_a_time


def planned_fleet(count: int) -> RollPlan:
    known = build_runtimes(*map(build_resource, generate_fleet.runtimes())).after_roll(42)
    return plan_roll(43, known, build_snapshots(map(build_resource, generate_fleet.workloads(count)), known))


def test_preview_of_two_hundred_workloads() -> None:
    planned = planned_fleet(200)
    assert len(planned.effects) == 200
    assert planned.part_changes == ("logs-2 becomes logs-3", "mesh-1 is new")
    counts = Counter(each.effect for each in planned.effects)
    assert all(counts[each] for each in RollEffect if each != RollEffect.UNCHANGED)
    for workload in planned.effects:
        assert workload.kind != "PinterestJobSet" or workload.effect in {RollEffect.WHEN_FINISHED, RollEffect.HELD}
    for workload in planned.with_effect(RollEffect.IN_PLACE):
        assert workload.resource_change == (0, 0)
    for workload in planned.with_effect(RollEffect.REPLACED):
        assert workload.tier == "reserved"
        assert workload.resource_change.cpu == workload.pods * Fraction(10, 1000)
    changed = counts[RollEffect.IN_PLACE] + counts[RollEffect.REPLACED]
    assert sum(each.workloads for each in planned.waves) == changed
    reached = {name: number for number, wave in enumerate(planned.waves) for name in wave.names}
    in_waves = (*planned.with_effect(RollEffect.IN_PLACE), *planned.with_effect(RollEffect.REPLACED))
    assert reached == {f"{each.project}/{each.name}": each.wave_index for each in in_waves}
    assert planned.seconds == sum(each.seconds for each in planned.waves) >= 3 * 600


def test_order_of_workloads_does_not_matter_and_json_is_encodable() -> None:
    known = build_runtimes(*map(build_resource, generate_fleet.runtimes())).after_roll(42)
    snapshots = build_snapshots(map(build_resource, generate_fleet.workloads(40)), known)
    assert plan_roll(43, known, snapshots) == plan_roll(43, known, snapshots[::-1])
    document = roll_plan_json(plan_roll(43, known, snapshots))
    assert msgspec.json.decode(msgspec.json.encode(document)) == document


# A roll in progress.

BEGAN = "2026-01-31T11:55:00Z"
CURSOR = RollCursor(percent=5, since=BEGAN)


def condition(type_: str, status: str, reason: str, since: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": since}


def roll_in_progress(health: RollHealth, **roll: Any) -> tuple[Any, Runtimes]:
    owner = build_runtime(43, "logs-3", roll=roll, cursor={"percent": 5, "since": BEGAN})
    return owner, build_runtimes(*NEXT, owner)._replace(health=health)


class Waiting(NamedTuple):
    """Health of a wave, and the expected step."""

    health: RollHealth
    roll: dict[str, Any]
    percent: int
    reason: reasons.Reason
    message: str
    wake_after_s: float | None = None


WAITING = (
    Waiting(RollHealth(), {}, 5, reasons.PROGRESSING, "wave 1 of 3 (5%) started"),
    Waiting(RollHealth(CURSOR, 4, 3), {}, 5, reasons.PROGRESSING, "3 of 4 workloads healthy"),
    Waiting(RollHealth(CURSOR, 4, 4), {}, 5, reasons.PROGRESSING, "observed until 2026-01-31T12:05:00Z", 300.0),
    Waiting(RollHealth(CURSOR, 4, 4), {"pauseSeconds": 300}, 25, reasons.PROGRESSING, "wave 2 of 3 (25%) started"),
    Waiting(RollHealth(CURSOR, 0, 0), {"pauseSeconds": 0}, 25, reasons.PROGRESSING, "wave 2 of 3"),
    Waiting(RollHealth(CURSOR, 4, 3, ("me/a",)), {}, 5, reasons.ROLL_UNHEALTHY, "1 of 4 workloads have failed since"),
    Waiting(RollHealth(CURSOR, 9, 4, tuple("abcde")), {}, 5, reasons.ROLL_UNHEALTHY, "a, b, c and 2 more"),
    Waiting(RollHealth(CURSOR, 4, 3, ("me/a",)), {"failures": 1, "pauseSeconds": 0}, 25, reasons.PROGRESSING, "wave 2"),
    Waiting(RollHealth(CURSOR, 4, 4), {"pauseSeconds": 0, "paused": "ann: errors"}, 5, reasons.PAUSED, "ann: errors"),
)


@pytest.mark.parametrize("row", WAITING, ids=lambda row: row.message)
def test_step_of_a_wave(row: Waiting) -> None:
    step = advance_roll(*roll_in_progress(row.health, **row.roll), NOW)
    assert step.cursor is not None
    assert (step.cursor.percent, step.reason, step.wake_after_s) == (row.percent, row.reason, row.wake_after_s)
    assert row.message in step.message


def test_roll_goes_wave_by_wave_to_its_end_and_stays_there() -> None:
    owner = build_runtime(43, "logs-3", roll={"waves": [10, 100], "pauseSeconds": 60})
    percents: list[int] = []
    now = NOW
    while not owner.status.done:
        known = build_runtimes(*NEXT, owner)
        known = known._replace(health=RollHealth(known.cursor, 3, 3))
        step = advance_roll(owner, known, now)
        assert advance_roll(owner, known, now) == step
        status = msgspec.structs.replace(owner.status, cursor=step.cursor, done=step.done)
        owner = msgspec.structs.replace(owner, status=status)
        percents.append(step.cursor.percent if step.cursor else 0)
        now += timedelta(seconds=30)
    assert percents == [10, 10, 100, 100, 100]
    assert build_runtimes(*NEXT, owner).current == 43


@pytest.mark.parametrize(
    ("health", "proven"),
    [
        (RollHealth(CURSOR, 4, 4, in_place=9), True),
        (RollHealth(CURSOR, 4, 4, replaced=9), True),
        (RollHealth(CURSOR, 4, 4), False),
    ],
)
def test_runtime_is_proven_after_a_wave_with_changed_pods(health: RollHealth, proven: bool) -> None:
    owner, known = roll_in_progress(health, pauseSeconds=0)
    begun = advance_roll(owner, known, NOW).cursor
    assert begun is not None
    assert begun.proven == proven
    assert known.is_proven(42)
    assert not known.is_proven(43)
    status = msgspec.structs.replace(owner.status, cursor=begun)
    rolling = msgspec.structs.replace(owner, status=status)
    later = build_runtimes(*NEXT, rolling)
    assert later.is_proven(43) == proven
    # It stays proven, although the following wave changed nothing.
    following = advance_roll(rolling, later._replace(health=RollHealth(begun, 4, 4)), NOW).cursor
    assert following is not None
    assert following.proven == proven


def test_stopped_roll_returns_to_the_former_runtime_at_once() -> None:
    owner = build_runtime(
        43, "logs-3", roll={"stopped": "ann: logs-3 loses lines"}, cursor={"percent": 25, "since": BEGAN}
    )
    known = build_runtimes(*NEXT, owner)
    assert (known.current, known.next) == (42, 0)
    step = advance_roll(owner, known, NOW)
    assert (step.cursor, step.reason) == (None, reasons.ROLL_STOPPED)
    assert step.message == "rolled back by ann: logs-3 loses lines; all workloads have runtime 42"


def healthy_service(
    uid: str, number: int, *, ready: str = "True", reason: str = "Available", since: str = DONE_AT
) -> Any:
    status = {"runtime": number, "observedGeneration": 1, "conditions": [condition("Ready", ready, reason, since)]}
    return build_service(f"w-{uid}", uid, status)


def test_health_counts_workloads_that_the_wave_has_reached() -> None:
    known = build_runtimes(*NEXT, build_runtime(43, "logs-3", roll={}, cursor={"percent": 100, "since": BEGAN}))
    later = "2026-01-31T11:57:00Z"
    workloads = [
        healthy_service("healthy", 43),
        healthy_service("not-yet-planned", 42),
        healthy_service("starting", 43, ready="False", reason="Progressing", since=later),
        healthy_service("failing", 43, ready="False", reason="CrashLoop", since=later),
        healthy_service("failing-before", 43, ready="False", reason="CrashLoop", since=DONE_AT),
        healthy_service("paused", 42, ready="False", reason="Paused", since=later),
        healthy_service("expired", 42, ready="False", reason="Expired", since=later),
        build_service("held", "held", hold={"runtime": 42, "until": "2026-12-31"}),
    ]
    health = roll_health(workloads, known, NOW)
    assert health == RollHealth(known.cursor, 4, 1, ("me/w-failing",))
    assert roll_health(workloads[::-1], known, NOW) == health


def test_health_is_empty_without_a_roll() -> None:
    assert roll_health([healthy_service("healthy", 42)], build_runtimes(*NEXT), NOW) == RollHealth()


def test_progressing_finite_work_is_healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = healthy_service("healthy", 43, ready="False", reason="Progressing")
    monkeypatch.setattr(type(owner), "GOAL", SUCCEEDED)
    progress = msgspec.structs.replace(owner.status, progress=Progress(), conditions=[
        msgspec.structs.replace(each, type=SUCCEEDED) for each in owner.status.conditions
    ])  # fmt: skip
    begun = msgspec.structs.replace(owner, status=progress)
    known = build_runtimes(*NEXT, build_runtime(43, "logs-3", roll={}, cursor={"percent": 100, "since": BEGAN}))
    assert roll_health([begun], known, NOW) == RollHealth(known.cursor, 1, 1)
