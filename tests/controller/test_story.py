"""Stories: what was done stays to be read, what changed nothing takes one line, and memory has a bound."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pincompute.controller.passes import Cause, Key, Made, Outcome
from pincompute.controller.story import KEYS, PASSES, Passed, Story
from pincompute.controller.tally import BOUNDS, Tally

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
WEB = Key("me", "web")


def passed(minute: int, *steps: str, why: str = "") -> Passed:
    outcome = Outcome.WROTE if steps else Outcome.SETTLED
    return Passed(NOW + timedelta(minutes=minute), (Cause.SEEN.words,), 0.1, steps, why, outcome, 0.01)


def test_passes_that_were_no_different_are_one_line() -> None:
    story = Story()
    for minute, steps in enumerate([("Create Deployment/web",), (), (), (), ("Apply Deployment/web",)]):
        story.add(WEB, passed(minute, *steps))
    assert [(each.steps, each.times, each.at.minute) for _, each in story.of("me", "web")] == [
        (("Create Deployment/web",), 1, 0),
        ((), 3, 3),
        (("Apply Deployment/web",), 1, 4),
    ]


def test_only_so_much_is_remembered() -> None:
    story = Story()
    for minute in range(PASSES + 3):
        story.add(WEB, passed(minute, f"Apply Deployment/{minute}"))
    assert next(each.steps[0] for _, each in story.of("me", "web")) == "Apply Deployment/3"
    for number in range(KEYS):
        story.add(Key("you", str(number)), passed(0))
    assert story.of("me", "web") == []
    assert len(story.of("you", "0")) == 1


def test_a_story_is_of_every_key_of_that_name() -> None:
    story = Story()
    story.add(Key("", "me", "Project"), passed(1))
    story.add(Key("", "me", "Runtime"), passed(0))
    story.add(Key("", "you", "Project"), passed(0))
    assert [str(key) for key, _ in story.of("", "me")] == ["Runtime/me", "Project/me"]


def test_what_passes_did_is_counted() -> None:
    tally = Tally()
    tally.add(WEB, Made(Outcome.WROTE, steps=("Create Deployment/web", "Create Service/web")), 0.001)
    tally.add(WEB, Made(), 100)
    tally.add(Key("", "me", "Project"), Made(), 0.0011)
    assert tally.made == 3
    assert tally.passes["Workload", Outcome.WROTE] == tally.passes["Project", Outcome.SETTLED] == 1
    assert tally.steps["Create", "Deployment"] == 1
    assert (tally.took[0], tally.took[1], tally.took[len(BOUNDS)]) == (1, 1, 1)
