"""One fault at one write of the operator: the cluster ends as in the undisturbed run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.fault_runs import (
    MAX_PASSES,
    crash_points,
    other_fault_points,
    run_fault_points,
    run_one_point,
    run_undisturbed,
)
from simulation.faults import CRASHES, NAME_TAKEN, FaultPoint
from simulation.scenario_steps import Scenario
from simulation.scenarios import SCENARIOS
from simulation.user import DEFAULT_PROJECT
from simulation.verb_scenarios import verb_scenario_name

from pincompute.api.kinds import WORKLOADS
from pincompute.controller.resources import CUSTOM_RESOURCES

ROOT = Path(__file__).parents[2]
EVERY_NTH_CRASH, EVERY_NTH_FAULT, EVERY_NTH_PIN_CRASH = 5, 17, 11
"""The share of all fault points that is run here."""
PRINT_DIGEST_OF_RUN = """
import hashlib, sys
from simulation.fault_injection import FaultInjector
from simulation.scenarios import SCENARIOS
from simulation.fault_runs import run_scenario
from simulation.faults import CRASH_RESPONSE_LOST, FaultPoint
found = run_scenario(SCENARIOS[sys.argv[1]], FaultInjector(FaultPoint(20, CRASH_RESPONSE_LOST)))
print(hashlib.sha256(repr((found.writes, [each.state for each in found.records])).encode()).hexdigest())
"""


def test_service_survives_faults_at_its_writes() -> None:
    """A share of all fault points; `make sim` runs all of them, for every scenario."""
    scenario = SCENARIOS["PinterestService"]
    undisturbed = run_undisturbed(scenario)
    assert not undisturbed.violations
    crashes = crash_points(undisturbed)
    assert len(crashes) == len(CRASHES) * len(undisturbed.writes)
    others = other_fault_points(scenario, undisturbed)
    points = [*list(dict.fromkeys(crashes.values()))[::EVERY_NTH_CRASH], *others[::EVERY_NTH_FAULT]]
    verdicts = list(run_fault_points(scenario, undisturbed, points))
    assert len(verdicts) == len(points)
    assert [f"{each.point} {each.write}: {each.violations}" for each in verdicts if each.violations] == []
    assert max(each.passes for each in verdicts) <= MAX_PASSES


def test_pinned_daemon_runs_the_revision_of_the_runtime_in_force() -> None:
    """Also after crashes: at a share of the writes, `make sim` has all of them."""
    scenario = SCENARIOS["PinnedDaemon"]
    undisturbed = run_undisturbed(scenario)
    states = [dict(each.state) if each else {} for each in undisturbed.records]
    daemon_sets = (each.get(("DaemonSet", DEFAULT_PROJECT, "shipper"), "") for each in states)
    assert [re.findall("shipper:([0-9])", each) for each in daemon_sets] == [
        ["1"],
        ["1"],
        ["1"],
        ["2"],
        ["2"],
        ["2"],
        [],
    ]
    points = list(dict.fromkeys(crash_points(undisturbed).values()))[::EVERY_NTH_PIN_CRASH]
    verdicts = run_fault_points(scenario, undisturbed, points)
    assert [f"{each.point} {each.write}: {each.violations}" for each in verdicts if each.violations] == []


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_undisturbed_scenario_settles_after_every_step(scenario: Scenario) -> None:
    undisturbed = run_undisturbed(scenario)
    assert undisturbed.violations == ()
    assert len(undisturbed.records) == len(scenario.steps)
    assert undisturbed.passes <= MAX_PASSES


def test_expired_workloads_of_every_kind_are_deleted_once_each() -> None:
    """The service of the scenario is postponed while it is stopped, and deleted after the others."""
    undisturbed = run_undisturbed(SCENARIOS["Expiry"])
    descriptions = [each.description for each in SCENARIOS["Expiry"].steps]
    deleted = [
        (write.split("/")[-2], descriptions[step])
        for write, step in zip(undisturbed.writes, undisturbed.steps, strict=True)
        if write.startswith("DELETE /apis/pinterest.com/")
    ]
    assert sorted(deleted) == sorted(
        (kind.plural(), f"until {'it is deleted, too' if name == 'PinterestService' else 'the others are deleted'}")
        for name, kind in WORKLOADS.items()
    )


@pytest.mark.parametrize("kind", ["PinterestService", "Runtime"])
def test_run_with_crash_is_reproducible(kind: str) -> None:
    """With other hash seeds as well: no decision may depend on the order of a set."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", PRINT_DIGEST_OF_RUN, kind],
            cwd=ROOT,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("kind", "path"), [("PinterestDaemon", "/daemonsets"), ("PinterestTrainingJob", "/configmaps")]
)
def test_foreign_object_is_not_taken_for_an_own_one(kind: str, path: str) -> None:
    """A foreign DaemonSet creates pods with our labels; the result of a training must not depend on a foreign
    record."""
    scenario = SCENARIOS[kind]
    number = next(number for number, write in enumerate(run_undisturbed(scenario).writes) if path in write)
    assert run_one_point(scenario, FaultPoint(number, NAME_TAKEN)).violations == ()


VERBS = {
    "PinterestService": "Scale Pause Resume Restart Rollback Break Heal",
    "PinterestStatefulSet": "Scale Pause Resume Restart Rollback Break Heal",
    "PinterestDaemon": "Pause Resume Restart Rollback Break Heal",
    "PinterestJobSet": "Scale Pause Resume Rollback Rerun",
    "PinterestCronJob": "Pause Resume Rollback Rerun",
    "PinterestTrainingJob": "Scale Pause Resume Rollback Rerun",
}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_scenarios_use_every_verb_of_a_kind(kind: str) -> None:
    """Faults of batches and trainings are left out: they are edits like any other."""
    steps = (*SCENARIOS[kind].steps, *SCENARIOS[verb_scenario_name(kind)].steps)
    assert {each.verb for each in steps} >= set(VERBS[kind].split())


def test_every_kind_has_a_scenario() -> None:
    """Parts are created with runtimes."""
    assert set(SCENARIOS) >= set(CUSTOM_RESOURCES) - {"PinterestSidecar"}
