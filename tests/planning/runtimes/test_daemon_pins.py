"""Daemons with a revision that a runtime pins: running and retained revisions, and the health of a roll."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pincompute.api.daemon import PinterestDaemon
from pincompute.api.runtime import DaemonPin, RollCursor, RuntimeSpec
from pincompute.base import reasons
from pincompute.base.reasons.runtimes import PINNED_REVISION_MISSING
from pincompute.objects.content import Object
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.observed_pods import OwnerReference
from pincompute.planning.plan import Plan
from pincompute.planning.revision import MAX_REVISIONS
from pincompute.planning.runtimes.daemon_pins import RuntimePin, missing_pin_problems, pin_of, pinned_revisions
from pincompute.planning.runtimes.roll import advance_roll, roll_health
from pincompute.planning.runtimes.roll_preview import RollEffect, plan_roll
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Native, Snapshot
from runtime_builders import CLUSTER, DONE_AT, NOW, build_part, build_resource, build_runtimes, build_service

SINCE = "2026-01-31T11:00:00Z"
FILES = {"a.ini": "a = 1"}


def runtime(number: int, *daemons: str, roll: Any = None, **status: Any) -> Any:
    spec: Object = {"parts": ["logs-1"], "daemons": list(daemons)}
    if roll is not None:
        spec["roll"] = roll
    metadata = {"name": str(number), "uid": f"runtime-{number}", "generation": 1}
    return build_resource({"kind": "Runtime", "metadata": metadata, "spec": spec, "status": status})


def known(*runtimes: Any) -> Runtimes:
    return build_runtimes(build_part("logs-1"), *runtimes)


def daemon(image: str = "shipper:1", generation: int = 1, status: Any = None, **spec: Any) -> PinterestDaemon:
    metadata = {"name": "shipper", "namespace": "infra", "uid": "owner-1", "generation": generation}
    document = {"kind": "PinterestDaemon", "metadata": metadata, "spec": {"image": image, **spec}}
    return build_resource({**document, "status": status or {}})  # type: ignore[no-any-return]


def planned_daemon(owner: PinterestDaemon, natives: tuple[Native, ...], runtimes: Runtimes = Runtimes()) -> Plan:  # noqa: B008
    return PLANNERS["PinterestDaemon"](Snapshot(owner, natives, (), CLUSTER, NOW, None, runtimes))


class History:
    """A daemon that is planned for one revision after the other, with the objects that each pass leaves behind."""

    def __init__(self, runtimes: Runtimes = Runtimes()) -> None:  # noqa: B008
        self.natives: dict[str, Native] = {}
        self.status: Object = {}
        self.generation = 0
        self.runtimes = runtimes

    def deploy(self, image: str, **spec: Any) -> Plan:
        self.generation += 1
        self.image, self.spec = image, spec
        return self.reconcile()

    def reconcile(self) -> Plan:
        plan = planned_daemon(self.daemon_now, tuple(self.natives.values()), self.runtimes)
        if not plan.problems:
            kept = {f"{kind}/{name}" for kind, name in plan.retained}
            wanted = {f"{each['kind']}/{each['metadata']['name']}": each for each in plan.wanted}
            self.natives = {name: each for name, each in self.natives.items() if name in kept} | {
                name: msgspec.convert(each, Native) for name, each in wanted.items()
            }
        self.status = msgspec.to_builtins(plan.status)
        return plan

    @property
    def daemon_now(self) -> PinterestDaemon:
        return daemon(self.image, self.generation, self.status, **self.spec)


def image_of(plan: Plan) -> str:
    (daemon_set,) = (each for each in plan.wanted if each["kind"] == "DaemonSet")
    image: str = daemon_set["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def names_of(plan: Plan) -> set[str]:
    return {each["metadata"]["name"] for each in plan.wanted if each["kind"] == "ConfigMap"}


def test_pin_is_of_the_next_runtime_once_its_roll_has_begun() -> None:
    current = runtime(1, "infra/shipper@1", done=DONE_AT)
    waiting, begun = runtime(2, "infra/shipper@2", roll={}), {"percent": 0, "since": SINCE}
    rolling = runtime(2, "infra/shipper@2", roll={}, cursor=begun)
    stopped = runtime(2, "infra/shipper@2", roll={"stopped": "ann"}, cursor=begun)
    pins = [pin_of(daemon(), known(current, each)) for each in (waiting, rolling, stopped)]
    assert pins == [RuntimePin(1, 1), RuntimePin(2, 2), RuntimePin(1, 1)]
    assert pin_of(daemon(), known(current, runtime(2, roll={}, cursor=begun))) is None
    assert pinned_revisions(daemon(), known(current, stopped)) == {1, 2}


@pytest.mark.parametrize(
    "owner",
    [
        build_service("shipper"),
        build_resource({"kind": "PinterestDaemon", "metadata": {"name": "shipper"}, "spec": {"image": "a:1"}}),
    ],
)
def test_pin_is_of_one_daemon_of_one_project(owner: Any) -> None:
    """A daemon of the same name in another project, or another kind of the same name, is not affected."""
    runtimes = known(runtime(1, "infra/shipper@1", done=DONE_AT))
    assert pin_of(owner, runtimes) is None
    assert pinned_revisions(owner, runtimes) == frozenset()


def test_pinned_revision_runs_with_its_files_and_the_one_of_the_file_is_recorded() -> None:
    history = History()
    history.deploy("shipper:1", configuration=FILES)
    history.deploy("shipper:2", configuration={"a.ini": "a = 2"})
    history.runtimes = known(runtime(7, "infra/shipper@1", done=DONE_AT))
    plan = history.deploy("shipper:3")
    status: Any = plan.status
    assert image_of(plan) == "shipper:1"
    assert (status.revision, status.pinned_revision, status.pinned_by) == (3, 1, 7)
    assert status.recorded == [1, 2, 3]
    (files,) = (each for each in plan.wanted if each.get("data") == FILES)
    assert names_of(plan) == {"shipper-3", files["metadata"]["name"]}
    assert {name for _, name in plan.retained} >= {"shipper-1", "shipper-2"}
    (message,) = [each.message for each in status.conditions if each.type == "Ready"]
    assert message == "shipper@1 ready on 0 of ? nodes so far; pinned by runtime 7"
    # Planning again from the objects of this pass changes nothing.
    assert history.reconcile().wanted == plan.wanted


def test_pin_of_the_revision_in_the_file_changes_nothing_but_the_status() -> None:
    history = History()
    before = history.deploy("shipper:1")
    history.runtimes = known(runtime(7, "infra/shipper@1", done=DONE_AT))
    after = history.reconcile()
    assert after.wanted == before.wanted
    status: Any = after.status
    assert (status.pinned_revision, status.pinned_by) == (1, 7)


def test_next_runtime_changes_the_revision_and_a_stop_puts_the_former_one_back() -> None:
    history = History(known(runtime(7, "infra/shipper@1", done=DONE_AT)))
    history.deploy("shipper:1")
    history.deploy("shipper:2")
    assert image_of(history.reconcile()) == "shipper:1"
    begun = {"percent": 0, "since": SINCE}
    current = runtime(7, "infra/shipper@1", done=DONE_AT)
    history.runtimes = known(current, runtime(8, "infra/shipper@2", roll={}, cursor=begun))
    assert image_of(history.reconcile()) == "shipper:2"
    history.runtimes = known(current, runtime(8, "infra/shipper@2", roll={"stopped": "ann"}))
    assert image_of(history.reconcile()) == "shipper:1"
    # A runtime without pins leaves it to the file.
    history.runtimes = known(runtime(9, done=DONE_AT))
    assert image_of(history.reconcile()) == "shipper:2"


def test_pinned_records_are_retained_however_old() -> None:
    history = History(known(runtime(7, "infra/shipper@1", done=DONE_AT)))
    plans = [history.deploy(f"shipper:{number}") for number in range(1, MAX_REVISIONS + 5)]
    plan = plans[-1]
    assert image_of(plan) == "shipper:1"
    status: Any = plan.status
    assert status.recorded == [1, *range(5, MAX_REVISIONS + 5)]
    # Without the pin it is pruned like the others.
    history.runtimes = known(runtime(9, done=DONE_AT))
    history.reconcile()
    assert "ConfigMap/shipper-1" not in history.natives


@pytest.mark.parametrize("damage", ["missing", "foreign", "altered", "undecodable"])
def test_revision_without_a_valid_record_is_refused_and_nothing_changes(damage: str) -> None:
    """A record of another owner, or one with altered content, would run a program that was never deployed."""
    history = History()
    history.deploy("shipper:1")
    history.deploy("shipper:2")
    record = history.natives.pop("ConfigMap/shipper-1")
    data = {"altered": '{"image": "evil:1"}', "undecodable": "{"}.get(damage)
    if damage == "foreign":
        owners = (OwnerReference(uid="another", controller=True),)
        record = msgspec.structs.replace(
            record, metadata=msgspec.structs.replace(record.metadata, owner_references=owners)
        )
    if damage != "missing":
        changed = {"spec.json": data} if data else record.data
        history.natives["ConfigMap/shipper-1"] = msgspec.structs.replace(record, data=changed)
    history.runtimes = known(runtime(7, "infra/shipper@1", done=DONE_AT))
    plan = history.reconcile()
    (problem,) = plan.problems
    assert (problem.reason, plan.wanted) == (PINNED_REVISION_MISSING, ())
    assert problem.what == "runtime 7 pins shipper@1, a revision without a record; nothing is changed"


def test_preview_without_natives_shows_the_revision_of_the_file() -> None:
    runtimes = known(runtime(7, "infra/shipper@1", done=DONE_AT))
    snapshot = Snapshot(daemon("shipper:2"), (), (), CLUSTER, NOW, None, runtimes, natives_known=False)
    status = {"revision": 1, "content": "of the former file"}
    previewed = PLANNERS["PinterestDaemon"](snapshot._replace(owner=daemon("shipper:2", 2, status)))
    assert (previewed.problems, image_of(previewed)) == ((), "shipper:2")


def test_new_daemon_without_the_pinned_revision_is_not_started() -> None:
    history = History(known(runtime(7, "infra/shipper@3", done=DONE_AT)))
    plan = history.deploy("shipper:1")
    assert ([each.reason for each in plan.problems], plan.wanted) == ([PINNED_REVISION_MISSING], ())


def test_restarts_and_the_pause_of_the_file_apply_to_the_pinned_revision() -> None:
    history = History(known(runtime(7, "infra/shipper@1", done=DONE_AT)))
    history.deploy("shipper:1", rollout={"waves": [50, 100]})
    history.deploy("shipper:2")
    pinned = image_of(history.reconcile())
    before = history.reconcile().wanted
    plan = history.deploy("shipper:2", rollout={"restarts": 1, "paused": "ann: investigating"})
    assert (pinned, image_of(plan)) == ("shipper:1", "shipper:1")
    assert next(each for each in plan.wanted if each["kind"] == "DaemonSet") not in before


def test_data_of_other_kinds_is_not_cached() -> None:
    labels = {"pinterest.com/kind": "PinterestService"}
    found = msgspec.convert({"metadata": {"name": "web-1", "labels": labels}, "data": {"a": "b"}}, Native)
    assert found.data == {}


def healthy(revision: int, by: int, *, ready: bool = True, recorded: tuple[int, ...] = (1, 2)) -> Any:
    condition: Object = {
        "type": "Ready", "status": "True" if ready else "False", "message": "",
        "reason": "Available" if ready else "CrashLoop", "lastTransitionTime": "2026-01-31T11:30:00Z",
    }  # fmt: skip
    fields = {"observedGeneration": 1, "revision": 2, "conditions": [condition], "recorded": list(recorded)}
    return daemon(status={**fields, "pinnedRevision": revision, "pinnedBy": by})


def rolling(owner: Any, **status: Any) -> tuple[Any, Runtimes]:
    current = runtime(1, "infra/shipper@1", done=DONE_AT)
    next_ = runtime(2, "infra/shipper@2", roll={"pauseSeconds": 0}, **status)
    runtimes = known(current, next_)
    return next_, runtimes._replace(health=roll_health([owner, build_service()], runtimes, NOW))


def test_roll_begins_with_the_daemons_and_then_the_first_wave() -> None:
    next_, runtimes = rolling(healthy(1, 1))
    first = advance_roll(next_, runtimes, NOW)
    assert first.cursor == RollCursor(percent=0, since="2026-01-31T12:00:00Z")
    assert first.message == "wave 0 of 3 (pinned daemons) started"
    cursor = {"percent": 0, "since": SINCE}
    next_, runtimes = rolling(healthy(1, 1), cursor=cursor)
    assert advance_roll(next_, runtimes, NOW).message == "wave 0 of 3 (pinned daemons): 0 of 1 workloads healthy"
    next_, runtimes = rolling(healthy(2, 2), cursor=cursor)
    second = advance_roll(next_, runtimes, NOW)
    assert (second.cursor or RollCursor()).percent == 5


def test_daemon_that_fails_halts_the_roll_by_name() -> None:
    next_, runtimes = rolling(healthy(2, 2, ready=False), cursor={"percent": 0, "since": SINCE})
    step = advance_roll(next_, runtimes, NOW)
    assert (step.reason, step.cursor) == (reasons.ROLL_UNHEALTHY, next_.status.cursor)
    assert step.message.endswith("1 of 1 workloads have failed since, 0 allowed: infra/shipper")


def test_roll_without_pins_begins_with_the_first_wave() -> None:
    runtimes = known(runtime(1, done=DONE_AT), next_ := runtime(2, roll={}))
    step = advance_roll(next_, runtimes._replace(health=roll_health([healthy(0, 0)], runtimes, NOW)), NOW)
    assert (step.cursor or RollCursor()).percent == 5


def test_daemon_that_no_part_serves_does_not_hold_up_a_roll() -> None:
    runtimes = known(runtime(1, done=DONE_AT), runtime(2, roll={}, cursor={"percent": 100, "since": SINCE}))
    found = roll_health([healthy(0, 0)], runtimes, NOW)
    assert (found.reached, found.healthy) == (0, 0)


def test_unknown_revision_and_unknown_daemon_are_refused_by_name() -> None:
    next_, runtimes = rolling(healthy(1, 1, recorded=(1, 3)))
    step = advance_roll(next_, runtimes, NOW)
    assert (step.reason, step.cursor) == (PINNED_REVISION_MISSING, None)
    assert "runtime 2 pins infra/shipper@2, a revision without a record" in step.message
    (problem,) = missing_pin_problems(next_, [healthy(1, 1, recorded=(1, 3))])
    assert problem.note == "recorded revisions: @1, @3"
    (absent,) = missing_pin_problems(next_, [build_service("shipper")])
    assert absent.what == "runtime 2 pins infra/shipper@2, and there is no daemon infra/shipper"


def test_preview_has_the_daemons_before_the_first_wave() -> None:
    runtimes = known(runtime(1, "infra/shipper@1", done=DONE_AT), runtime(2, "infra/shipper@2", "infra/dns@1"))
    plan = plan_roll(2, runtimes, [Snapshot(healthy(1, 1), (), (), CLUSTER, NOW, None, runtimes)])
    assert plan.part_changes == ("infra/shipper@1 becomes infra/shipper@2", "infra/dns@1 is pinned")
    assert [(each.name, each.effect, each.wave_index) for each in plan.effects] == [
        ("shipper", RollEffect.REPLACED, -1)
    ]
    assert [each.wave.text(plan.roll) for each in plan.waves] == ["pinned daemons", "5%", "25%", "100%"]
    assert [each.reason for each in plan.problems] == [PINNED_REVISION_MISSING]


@pytest.mark.parametrize(
    "pin",
    [
        "shipper@3", "infra/shipper", "infra/shipper@0", "infra/shipper@03", "infra/shipper@1234567", "../shipper@1",
        "infra/ship/per@1", "Infra/shipper@1", "infra/shipper@1 ", "infra/-@1",
    ],
)  # fmt: skip
def test_rejects_pin_that_is_not_project_name_and_revision(pin: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"parts": ["logs-1"], "daemons": [pin]}, RuntimeSpec)


def test_rejects_daemon_that_is_pinned_twice() -> None:
    spec = msgspec.convert({"parts": ["logs-1"], "daemons": ["infra/shipper@1", "infra/shipper@2"]}, RuntimeSpec)
    assert [(each.path, each.what) for each in spec.field_errors("1")] == [
        (("daemons", 1), "infra/shipper is pinned twice")
    ]
    assert str(DaemonPin.parse("infra/shipper@12")) == "infra/shipper@12"
