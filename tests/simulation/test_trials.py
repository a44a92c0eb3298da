"""Whatever goes wrong at a write of the operator's: the world ends as if it had not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from simulation.scenarios import SCENARIOS
from simulation.steps import Scenario
from simulation.trials import PASSES, every_crash, everything_else, learn, one_point, tried
from simulation.verbs import verbs_of
from simulation.ways import CRASHES, ROBBED, Point

from pincompute.api.kinds import WORKLOADS
from pincompute.controller.resources import NOUNS

ROOT = Path(__file__).parents[2]
CRASHED, SHARE = 5, 17
"""Of so many, one."""
TRACE = """
import hashlib, sys
from simulation.disturbances import Disturbance
from simulation.scenarios import SCENARIOS
from simulation.trials import course
from simulation.ways import Point
found = course(SCENARIOS[sys.argv[1]], Disturbance(Point(20, "lost")))
print(hashlib.sha256(repr((found.sent, [each.state for each in found.records])).encode()).hexdigest())
"""


def test_a_service_survives_whatever_goes_wrong_at_a_write() -> None:
    """A share of the crashes, and of what else can go wrong. `make sim` tries all of it, of every kind."""
    scenario = SCENARIOS["PinterestService"]
    learnt = learn(scenario)
    assert not learnt.wrong
    crashes = every_crash(learnt)
    assert len(crashes) == len(CRASHES) * len(learnt.sent)
    others = everything_else(scenario, learnt)
    points = [*list(dict.fromkeys(crashes.values()))[::CRASHED], *others[::SHARE]]
    verdicts = list(tried(scenario, learnt, points))
    assert len(verdicts) == len(points)
    assert [f"{each.point} {each.sent}: {each.wrong}" for each in verdicts if each.wrong] == []
    assert max(each.passes for each in verdicts) <= PASSES


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_a_kind_that_nobody_disturbs_comes_to_rest(scenario: Scenario) -> None:
    learnt = learn(scenario)
    assert learnt.wrong == ()
    assert len(learnt.records) == len(scenario.steps)
    assert learnt.passes <= PASSES


@pytest.mark.parametrize("kind", ["PinterestService", "Runtime"])
def test_the_same_crash_is_the_same_run(kind: str) -> None:
    """Also where strings hash otherwise, so that no set decides anything."""
    traces = {
        subprocess.run(
            [sys.executable, "-c", TRACE, kind],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("kind", "robbed"), [("PinterestDaemon", "/daemonsets"), ("PinterestTrainingJob", "/configmaps")]
)
def test_what_is_somebody_elses_is_no_part_of_what_was(kind: str, robbed: str) -> None:
    """A DaemonSet in the place of ours makes copies by our template; what came of a training does not depend on it."""
    scenario = SCENARIOS[kind]
    write = next(number for number, sent in enumerate(learn(scenario).sent) if sent.endswith(robbed))
    assert one_point(scenario, Point(write, ROBBED)).wrong == ()


TAKES = {
    "PinterestService": "Scale Pause Resume Restart Rollback Break Heal",
    "PinterestStatefulSet": "Scale Pause Resume Restart Rollback Break Heal",
    "PinterestDaemon": "Pause Resume Restart Rollback Break Heal",
    "PinterestJobSet": "Scale Pause Resume Rollback Rerun",
    "PinterestCronJob": "Pause Resume Rollback Rerun",
    "PinterestTrainingJob": "Scale Pause Resume Rollback Rerun",
}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_every_verb_of_a_kind_is_tried(kind: str) -> None:
    """What breaks a batch or a training on purpose is an edit as any other."""
    steps = (*SCENARIOS[kind].steps, *SCENARIOS[verbs_of(kind)].steps)
    assert {each.verb for each in steps} >= set(TAKES[kind].split())


def test_every_kind_that_we_write_of_has_its_scenario() -> None:
    """Parts come with runtimes."""
    assert set(SCENARIOS) >= set(NOUNS) - {"PinterestSidecar"}
