"""The operator killed at every write of a service's life, in each way: the world ends as if it had not been."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from simulation.crashes import PASSES, WAYS, every_point, learn
from simulation.scenarios import SCENARIOS, Scenario

ROOT = Path(__file__).parents[2]
TRACE = """
import hashlib, sys
from simulation.crashes import Crash, Point, course
from simulation.scenarios import SCENARIOS
found = course(SCENARIOS[sys.argv[1]], Crash(Point(20, "lost")))
print(hashlib.sha256(repr((found.sent, [each.state for each in found.records])).encode()).hexdigest())
"""


def test_a_service_survives_a_crash_at_every_write() -> None:
    scenario = SCENARIOS["PinterestService"]
    learnt = learn(scenario)
    assert not learnt.wrong
    verdicts = list(every_point(scenario, learnt))
    assert len(verdicts) == len(WAYS) * len(learnt.sent)
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
