"""Scenarios that combine features: a batch during a roll, a halted or stopped roll, pinned runtimes and daemons,
duplicate names."""

from __future__ import annotations

from typing import Any

from pincompute.api.names import CLI_MANAGER
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.resource import Object
from simulation.scenario_steps import Scenario, ScenarioStep, delete_step, make_document, wait_for_status, write_step
from simulation.user import DEFAULT_PROJECT, SimulatedUser


def combined_scenarios() -> tuple[Scenario, ...]:
    return _batch_in_a_roll(), _roll_taken_back(), _pinned_runtime(), _pinned_daemon(), _duplicate_names()


def _part(version: int) -> Object:
    return make_document("PinterestSidecar", f"logs-{version}", image=f"logs:{version}.0")


def _runtime(number: int, **roll: Any) -> Object:
    defaults = {"waves": [50, 100], "pauseSeconds": 80}
    return make_document("Runtime", str(number), parts=[f"logs-{number}"], roll={**defaults, **roll})


def _service(name: str, **spec: Any) -> Object:
    return make_document("PinterestService", name, **{"image": f"{name}:1", "port": 8080, "replicas": 2, **spec})


def _batch_in_a_roll() -> Scenario:
    """A batch runs during two rolls: running pods get the runtime in place, later pods from the start."""

    def count(**spec: Any) -> Object:
        return make_document(
            "PinterestJobSet", "count", **{"image": "slow-count:1", "tasks": 4, "parallelism": 2, **spec}
        )

    def during_batch(description: str, number: int, work: Object) -> ScenarioStep:
        async def action(user: SimulatedUser) -> None:
            await user.write(work)
            await wait_for_status(user, "PinterestJobSet", "count", lambda status: status.get("running", 0) == 2)
            await user.write(_part(number))
            # Longer than a failover and shorter than a task, so that the number of updated pods is the same in every
            # run.
            await user.write(_runtime(number, waves=[100], pauseSeconds=75))

        return ScenarioStep(description, action, needs_previous_step=True)

    return Scenario(
        "BatchInARoll",
        (
            write_step("runtime 1 is rolled out", _part(1), _runtime(1, waves=[100])),
            during_batch("runtime 2 during the batch", 2, count()),
            during_batch("runtime 3 during the next revision", 3, count(image="slow-count:2")),
            write_step("the batch is rerun", count(image="slow-count:2", attempts=[{"tasks": "0-1"}])),
            delete_step("delete", "PinterestJobSet", "count"),
        ),
    )


def _roll_taken_back() -> Scenario:
    """A roll is paused halfway and resumed; another is stopped halfway."""

    def halfway(description: str, number: int, **then: Any) -> ScenarioStep:
        async def action(user: SimulatedUser) -> None:
            await user.write(_part(number))
            await user.write(_runtime(number))
            await wait_for_status(
                user, "Runtime", str(number), lambda status: status.get("progress", {}).get("there", 0) > 0
            )
            await user.write(_runtime(number, **then))

        return ScenarioStep(description, action, needs_previous_step=True)

    return Scenario(
        "RollTakenBack",
        (
            write_step("workloads without a runtime", _service("web"), _service("api")),
            write_step("runtime 1 is rolled out", _part(1), _runtime(1, waves=[100], pauseSeconds=0)),
            halfway("runtime 2 is paused halfway", 2, paused="ann: investigating"),
            write_step("it is resumed", _runtime(2)),
            halfway("runtime 3 is stopped halfway", 3, stopped="ann: it loses lines"),
        ),
    )


def _pinned_runtime() -> Scenario:
    """A workload pins the older runtime until a security release breaks pins; then the old runtime is deleted."""
    hold = {"runtime": 1, "until": "2026-03-31", "because": "it is measured"}
    return Scenario(
        "RuntimeHeld",
        (
            write_step("runtime 1 is rolled out", _part(1), _runtime(1, waves=[100], pauseSeconds=0)),
            write_step("one of two workloads pins it", _service("web", hold=hold), _service("api")),
            write_step("runtime 2 is rolled out", _part(2), _runtime(2)),
            write_step("runtime 3 breaks pins", _part(3), _runtime(3, breakHolds=True, security="CVE-2026-1234")),
            delete_step("runtime 1 is deleted", "Runtime", "1"),
            delete_step("its part is deleted", "PinterestSidecar", "logs-1"),
            delete_step("delete", "PinterestService", "web", "api"),
        ),
    )


def _pinned_daemon() -> Scenario:
    """Runtimes pin revisions of a daemon: its file changes nothing, a roll does, and a stop takes it back."""

    def shipper(version: int) -> Object:
        rollout = {"waves": [40, 100], "pauseSeconds": 10}
        files = {"shipper.ini": f"version = {version}"}
        return make_document(
            "PinterestDaemon", "shipper", image=f"shipper:{version}", rollout=rollout, configuration=files
        )

    def runtime(number: int, revision: int, **roll: Any) -> Object:
        document = _runtime(number, **{"waves": [100], "pauseSeconds": 0, **roll})
        return {**document, "spec": {**document["spec"], "daemons": [f"{DEFAULT_PROJECT}/shipper@{revision}"]}}

    async def stop_with_daemons(user: SimulatedUser) -> None:
        await user.write(_part(3))
        await user.write(runtime(3, 1, pauseSeconds=80))
        await wait_for_status(user, "Runtime", "3", lambda status: status.get("progress", {}).get("there", 0) > 0)
        await user.write(runtime(3, 1, pauseSeconds=80, stopped="ann: it loses lines"))

    return Scenario(
        "PinnedDaemon",
        (
            write_step("create", shipper(1), _service("web")),
            write_step("runtime 1 pins the first revision", _part(1), runtime(1, 1), needs_previous_step=True),
            write_step("the second revision waits for a runtime", shipper(2), needs_previous_step=True),
            write_step("runtime 2 pins the second revision", _part(2), runtime(2, 2), needs_previous_step=True),
            ScenarioStep("runtime 3 is stopped after its daemons", stop_with_daemons, needs_previous_step=True),
            write_step("runtime 4 pins an unknown revision", _part(4), runtime(4, 9), needs_previous_step=True),
            delete_step("delete", "PinterestDaemon", "shipper"),
        ),
    )


def _duplicate_names() -> Scenario:
    """Workloads of one name, created past the desk: the oldest runs, the others report NameTaken until it is
    deleted."""

    def create_past_desk(kind: str, **spec: Any) -> ScenarioStep:
        async def action(user: SimulatedUser) -> None:
            manifest: Object = {"metadata": {"name": "web", "namespace": DEFAULT_PROJECT}, "spec": spec}
            await user.client.apply(manifest, CUSTOM_RESOURCES[kind], manager=CLI_MANAGER)

        return ScenarioStep(f"a {kind} of the same name", action, needs_previous_step=True)

    return Scenario(
        "Namesakes",
        (
            write_step("create", _service("web")),
            create_past_desk("PinterestCronJob", image="report:1", schedule="0 3 1 1 *"),
            create_past_desk("PinterestJobSet", image="count:1", tasks=2),
            write_step(
                "the first gets another image",
                {**_service("web"), "spec": {"image": "web:2", "port": 80, "replicas": 1}},
            ),
            delete_step("the first is deleted", "PinterestService", "web"),
            delete_step("the second is deleted", "PinterestCronJob", "web"),
            delete_step("the last is deleted", "PinterestJobSet", "web"),
        ),
    )
