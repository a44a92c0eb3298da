"""The pass history: equal passes are folded, memory is bounded; and the counters of the loop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pincompute.controller.counters import LoopCounters
from pincompute.controller.pass_history import MAX_KEYS, MAX_PASSES_PER_KEY, PassHistory, PassRecord
from pincompute.controller.passes import Key, Outcome, PassResult, Trigger

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
WEB = Key("me", "web")


def new_record(minute: int, *steps: str, why: str = "") -> PassRecord:
    outcome = Outcome.CHANGED if steps else Outcome.UNCHANGED
    return PassRecord(
        NOW + timedelta(minutes=minute), (Trigger.OBJECT_CHANGED.description,), 0.1, steps, why, outcome, 0.01
    )


def test_folds_equal_passes_without_steps() -> None:
    history = PassHistory()
    for minute, steps in enumerate([("Create Deployment/web",), (), (), (), ("Apply Deployment/web",)]):
        history.add(WEB, new_record(minute, *steps))
    assert [(each.steps, each.count, each.at.minute) for _, each in history.find("me", "web")] == [
        (("Create Deployment/web",), 1, 0),
        ((), 3, 3),
        (("Apply Deployment/web",), 1, 4),
    ]


def test_bounds_passes_and_keys() -> None:
    history = PassHistory()
    for minute in range(MAX_PASSES_PER_KEY + 3):
        history.add(WEB, new_record(minute, f"Apply Deployment/{minute}"))
    assert next(each.steps[0] for _, each in history.find("me", "web")) == "Apply Deployment/3"
    for number in range(MAX_KEYS):
        history.add(Key("you", str(number)), new_record(0))
    assert history.find("me", "web") == []
    assert len(history.find("you", "0")) == 1


def test_finds_keys_of_every_kind_by_name() -> None:
    history = PassHistory()
    history.add(Key("", "me", "Project"), new_record(1))
    history.add(Key("", "me", "Runtime"), new_record(0))
    history.add(Key("", "you", "Project"), new_record(0))
    assert [str(key) for key, _ in history.find("", "me")] == ["Runtime/me", "Project/me"]


def test_counts_passes_steps_and_durations() -> None:
    counters = LoopCounters()
    counters.add(WEB, PassResult(Outcome.CHANGED, steps=("Create Deployment/web", "Create Service/web")), 0.001)
    counters.add(WEB, PassResult(), 100)
    counters.add(Key("", "me", "Project"), PassResult(), 0.0011)
    assert counters.total_passes == 3
    assert counters.passes["Workload", Outcome.CHANGED] == counters.passes["Project", Outcome.UNCHANGED] == 1
    assert counters.steps["Create", "Deployment"] == 1
    buckets = counters.durations.cumulative_buckets()
    assert (buckets[0], buckets[1], buckets[-2:]) == (("0.001", 1), ("0.0025", 2), [("30.0", 2), ("+Inf", 3)])
