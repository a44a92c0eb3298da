"""Scenarios of the verbs of the CLI: every verb of every kind that takes it, some of them while work is running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pincompute.api.change import Break, Cancel, Heal, Pause, Rerun, Restart, Resume, Rollback, Scale
from pincompute.kube.resource import Object
from simulation.scenario_steps import Scenario, change_midway_step, change_step, delete_step, make_document, write_step


def verb_scenarios() -> tuple[Scenario, ...]:
    return (
        _replicated("PinterestService", "web", port=8080, replicas=2),
        _replicated("PinterestStatefulSet", "db", port=5432, replicas=2),
        _replicated("PinterestDaemon", "exporter", port=9100),
        _batch(),
        _periodic(),
        _training(),
    )


def verb_scenario_name(kind: str) -> str:
    """The name of the scenario with the verbs of a kind."""
    return f"{kind}Verbs"


def _replicated(kind: str, name: str, **spec: Any) -> Scenario:
    """Pauses, resumes and rolls back a rollout; injects a fault and removes it."""
    scaled = (
        () if kind == "PinterestDaemon" else (change_step("scale", name, Scale(replicas=3), needs_previous_step=True),)
    )
    return Scenario(
        verb_scenario_name(kind),
        (
            write_step("create", make_document(kind, name, image=f"{name}:1", **spec)),
            *scaled,
            change_step("pause", name, Pause(by="ann", because="investigating"), needs_previous_step=True),
            change_step("restart", name, Restart(), needs_previous_step=True),
            change_step("resume", name, Resume(), needs_previous_step=True),
            # The fault sets another image, with which simulated pods run as well.
            change_step("break", name, Break(fault="wrong-tag"), needs_previous_step=True),
            change_step("heal", name, Heal(), needs_previous_step=True),
            change_step(
                "roll back to the first revision", name, Rollback(to=1, partial=True), needs_previous_step=True
            ),
            delete_step("delete", kind, name),
        ),
    )


def _batch() -> Scenario:
    kind, name = "PinterestJobSet", "count"

    def count(image: str, **spec: Any) -> Object:
        return make_document(kind, name, image=image, tasks=4, parallelism=2, **spec)

    return Scenario(
        verb_scenario_name(kind),
        (
            change_midway_step("pause while it runs", count("slow-count:1"), _are_running(2), Pause(by="ann")),
            change_step("scale", name, Scale(replicas=4), needs_previous_step=True),
            change_step("resume", name, Resume(), needs_previous_step=True),
            write_step("tasks that fail", count("failing:1", retries=0), needs_previous_step=True),
            change_step("rerun failed tasks", name, Rerun(memory="1Gi"), needs_previous_step=True),
            change_step("roll back", name, Rollback(partial=True), needs_previous_step=True),
            change_midway_step("cancel while it runs", count("slow-count:2"), _are_running(2), Cancel(by="ann")),
            change_step("rerun what was cancelled", name, Rerun(), needs_previous_step=True),
            delete_step("delete", kind, name),
        ),
    )


def _periodic() -> Scenario:
    kind, name = "PinterestCronJob", "nightly"

    def nightly(image: str) -> Object:
        return make_document(kind, name, image=image, schedule="0 3 1 1 *")

    return Scenario(
        verb_scenario_name(kind),
        (
            write_step("create", nightly("report:1")),
            change_step("run now", name, Rerun(), needs_previous_step=True),
            change_step("pause", name, Pause(by="ann"), needs_previous_step=True),
            change_step("resume", name, Resume(), needs_previous_step=True),
            write_step("another image", nightly("report:2"), needs_previous_step=True),
            change_step(
                "roll back to the first revision", name, Rollback(to=1, partial=True), needs_previous_step=True
            ),
            delete_step("delete", kind, name),
        ),
    )


def _training() -> Scenario:
    kind, name = "PinterestTrainingJob", "ranking"

    def ranking(number: int, **spec: Any) -> Object:
        defaults = {"framework": "pytorch", "image": f"slow-train:{number}", "workers": 1}
        return make_document(kind, name, **defaults, elastic={"minimum": 1, "maximum": 3}, **spec)

    return Scenario(
        verb_scenario_name(kind),
        (
            change_midway_step("scale while it trains", ranking(1), _are_running(1), Scale(replicas=3)),
            change_midway_step("pause while it trains", ranking(2), _are_running(1), Pause(by="ann")),
            change_step("resume", name, Resume(), needs_previous_step=True),
            change_step("rerun", name, Rerun(), needs_previous_step=True),
            write_step(
                "another image, suspended", ranking(3, suspended="ann: the input is late"), needs_previous_step=True
            ),
            change_step("roll back", name, Rollback(partial=True), needs_previous_step=True),
            change_midway_step("cancel while it trains", ranking(4), _are_running(1), Cancel(by="ann")),
            change_step("rerun what was cancelled", name, Rerun(), needs_previous_step=True),
            delete_step("delete", kind, name),
        ),
    )


def _are_running(replicas: int) -> Callable[[Any], bool]:
    """A predicate over a status: at least this many replicas run."""

    def holds(status: Any) -> bool:
        return bool(status.get("running", 0) >= replicas)

    return holds
