"""One scenario per kind: create, scale, edit, revert an edit midway, delete natives by hand, delete."""

from __future__ import annotations

from typing import Any

from pincompute.api.change import Rerun, Restart, Resume, Scale
from pincompute.api.names import RUN_NOW_ANNOTATION
from pincompute.kube.resource import DEPLOYMENTS, SERVICES, Object
from simulation import combined_scenarios, import_scenario, verb_scenarios
from simulation.scenario_steps import (
    Scenario,
    ScenarioStep,
    change_step,
    delete_step,
    make_document,
    transient_step,
    wait_step,
    write_step,
)
from simulation.user import SimulatedUser

CONVERGENT_KINDS = ("PinterestService", "PinterestStatefulSet", "PinterestDaemon", "Project")
"""Kinds with a final state that does not depend on the edits that the operator saw. In others every revision it saw has
run."""


def _service() -> Scenario:
    kind = "PinterestService"

    def web(**spec: Any) -> Object:
        defaults = {"image": "web:1", "port": 8080, "replicas": 3, "configuration": {"web.ini": "a = 1"}}
        return make_document(kind, "web", **{**defaults, **spec})

    last: Object = {"image": "web:2", "replicas": 4, "configuration": {"web.ini": "a = 2"}, "port": 9090}
    return Scenario(
        kind,
        (
            write_step("create", web()),
            write_step("scale", web(replicas=4)),
            write_step("another image", web(replicas=4, image="web:2")),
            write_step("another configuration", web(**last | {"port": 8080})),
            write_step("another port", web(**last)),
            transient_step("edit and revert", web(**last | {"image": "web:3"}), web(**last)),
            write_step("internal only", web(**last, loadBalancer={"internal": True})),
            change_step("restart", "web", Restart()),
            # Not a rollback, which leads to different revisions if the operator has not seen all of them.
            change_step("scale by a command", "web", Scale(replicas=2), needs_previous_step=True),
            delete_step("its Service is deleted by hand", SERVICES, "web"),
            delete_step("its Deployment is deleted by hand", DEPLOYMENTS, "web"),
            delete_step("delete", kind, "web"),
            write_step("create again", web()),
            delete_step("delete again", kind, "web"),
        ),
    )


def _stateful_set() -> Scenario:
    kind = "PinterestStatefulSet"

    def db(**spec: Any) -> Object:
        return make_document(kind, "db", **{"image": "db:1", "port": 5432, "replicas": 2, "storage": "1Gi", **spec})

    log = {"log": {"size": "1Gi", "path": "/log"}}
    last: Object = {"image": "db:2", "replicas": 3, "storage": "2Gi"}
    return Scenario(
        kind,
        (
            write_step("create", db()),
            write_step("scale", db(replicas=3)),
            write_step("another image", db(image="db:2", replicas=3)),
            write_step("larger storage", db(**last)),
            write_step("another claim", db(**last, claims=log)),
            write_step("another port", db(**last, claims=log) | _port(db(**last, claims=log), 5433)),
            transient_step("edit and revert", db(**last | {"image": "db:3"}, claims=log), db(**last, claims=log)),
            delete_step("delete", kind, "db"),
        ),
    )


def _port(document: Object, port: int) -> Object:
    return {"spec": {**document["spec"], "port": port}}


def _daemon() -> Scenario:
    kind = "PinterestDaemon"

    def exporter(image: str, **spec: Any) -> Object:
        rollout = {"waves": [40, 100], "pauseSeconds": 10}
        return make_document(kind, "exporter", image=image, port=9100, rollout=rollout, **spec)

    return Scenario(
        kind,
        (
            write_step("create", exporter("exporter:1")),
            write_step("another image", exporter("exporter:2")),
            write_step("configuration", exporter("exporter:2", configuration={"a.ini": "a = 1"})),
            transient_step(
                "edit and revert",
                exporter("exporter:3", configuration={"a.ini": "a = 1"}),
                exporter("exporter:2", configuration={"a.ini": "a = 1"}),
            ),
            delete_step("delete", kind, "exporter"),
        ),
    )


def _job_set() -> Scenario:
    kind = "PinterestJobSet"

    def count(name: str = "count", **spec: Any) -> Object:
        return make_document(kind, name, **{"image": "count:1", "tasks": 4, "parallelism": 2, **spec})

    def with_claims(**spec: Any) -> Object:
        claims = [{"name": "out", "path": "/out", "size": "1Gi", "retained": True}]
        return count("with-claims", **{"tasks": 2, "claims": claims, **spec})

    failing: Object = {"image": "failing:1", "retries": 0}
    return Scenario(
        kind,
        (
            write_step("create", count()),
            write_step("another image, suspended", count(image="count:2", suspended="ann: the input is late")),
            write_step("another parallelism", count(image="count:2", parallelism=4)),
            change_step("resume", "count", Resume()),
            write_step("tasks that fail", count(**failing)),
            write_step("rerun failed tasks", count(**failing, attempts=[{"tasks": "failed", "memory": "1Gi"}])),
            transient_step("edit twice", count(image="count:3"), count(image="count:4"), 1.0),
            write_step("tasks with claims", with_claims()),
            delete_step("delete", kind, "count", "with-claims"),
        ),
    )


def _cron_job() -> Scenario:
    kind = "PinterestCronJob"

    def nightly(**spec: Any) -> Object:
        return make_document(kind, "nightly", **{"image": "report:1", "schedule": "0 * * * *", **spec})

    async def run_now(user: SimulatedUser) -> None:
        await user.annotate(kind, "nightly", {RUN_NOW_ANNOTATION: "1"})

    return Scenario(
        kind,
        (
            write_step("create", nightly()),
            ScenarioStep("run now", run_now),
            wait_step("until it is due", 3600 + 60),
            write_step("another image", nightly(image="report:2")),
            write_step("another schedule", nightly(image="report:2", schedule="30 * * * *")),
            transient_step(
                "edit and revert", nightly(image="report:3"), nightly(image="report:2", schedule="30 * * * *")
            ),
            wait_step("until it is due again", 2 * 3600 + 1800 + 60),
            write_step("suspend", nightly(image="report:2", suspended="ann: the source is down")),
            delete_step("delete", kind, "nightly"),
        ),
    )


def _training_job() -> Scenario:
    kind = "PinterestTrainingJob"

    def ranking(**spec: Any) -> Object:
        return make_document(kind, "ranking", **{"framework": "pytorch", "image": "train:1", "workers": 2, **spec})

    def runs(image: str) -> Object:
        return {"spec": {"containers": [{"name": "pytorch", "image": image}]}}

    # If all workers failed, it would depend on timing which of them had failed when the others are stopped.
    one_bad = {
        "image": "",
        "workers": 0,
        "retries": 0,
        "roles": {
            "master": {"template": runs("failing:1")},
            "worker": {"replicas": 2, "template": runs("slow-train:4")},
        },
    }
    return Scenario(
        kind,
        (
            write_step("create", ranking()),
            change_step("rerun", "ranking", Rerun(), needs_previous_step=True),
            write_step("another image, suspended", ranking(image="slow-train:2", suspended="ann: the input is late")),
            change_step("resume", "ranking", Resume(), needs_previous_step=True),
            transient_step("edit twice", ranking(image="slow-train:3"), ranking(image="train:4", workers=1), 1.0),
            write_step("one worker fails while the others train", ranking(**one_bad)),
            delete_step("delete", kind, "ranking"),
        ),
    )


def _project() -> Scenario:
    kind = "Project"

    def ads(**spec: Any) -> Object:
        return make_document(kind, "ads", **{"owner": "team-ads", "quota": {"reserved": {"cpu": 4}}, **spec})

    members = {"owner": {"people": ["ann"]}, "deployer": {"groups": ["ads"]}}
    web = make_document("PinterestService", "web", image="web:1", port=8080, replicas=1)
    web["metadata"]["project"] = "ads"
    return Scenario(
        kind,
        (
            write_step("create", ads()),
            write_step("members", ads(members=members)),
            write_step("a workload in it", web, needs_previous_step=True),
            write_step("another quota", ads(members=members, quota={"reserved": {"cpu": 8}, "preemptible": {}})),
            write_step("another owner", ads(owner="team-shop", callers=["search"])),
            transient_step("edit and revert", ads(owner="team-c"), ads(owner="team-shop", callers=["search"])),
            delete_step("delete", kind, "ads"),
        ),
    )


def _runtime() -> Scenario:
    def part(version: int) -> Object:
        return make_document("PinterestSidecar", f"logs-{version}", image=f"logs:{version}.0")

    def runtime(number: int, **roll: Any) -> Object:
        defaults = {"waves": [50, 100], "pauseSeconds": 20}
        return make_document("Runtime", str(number), parts=[f"logs-{number}"], roll={**defaults, **roll})

    web, api = (
        make_document("PinterestService", each, image=f"{each}:1", port=8080, replicas=2) for each in ("web", "api")
    )
    db = make_document("PinterestStatefulSet", "db", image="db:1", port=5432, replicas=2)
    return Scenario(
        "Runtime",
        (
            write_step("workloads without a runtime", web, api, db),
            write_step("runtime 1 is rolled out", part(1), runtime(1)),
            write_step("runtime 2 is rolled out", part(2), runtime(2)),
            write_step(
                "runtime 3 is stopped", part(3), runtime(3, paused="ann: investigating"), runtime(3, stopped="ann: no")
            ),
            transient_step("edit during a roll", runtime(4) | {}, web),
            delete_step("delete", "PinterestService", "web", "api"),
        ),
    )


def _expiry() -> Scenario:
    """Every kind expires; one workload is postponed in time, and the others are deleted after their grace period."""
    hour_s = 3600.0
    specs: dict[str, tuple[str, Object]] = {
        "PinterestService": ("web", {"port": 8080, "replicas": 2}),
        "PinterestStatefulSet": ("db", {"port": 5432, "storage": "1Gi", "retention": {"deleted": "delete"}}),
        "PinterestDaemon": ("exporter", {}),
        "PinterestCronJob": ("nightly", {"schedule": "0 3 1 1 *"}),
        "PinterestJobSet": ("count", {"tasks": 2, "image": "slow-count:1"}),
        "PinterestTrainingJob": ("ranking", {"workers": 1, "framework": "pytorch", "image": "slow-train:1"}),
    }

    def document(kind: str, expires: str) -> Object:
        name, spec = specs[kind]
        return make_document(kind, name, **{"image": f"{name}:1", "expires": expires, **spec})

    return Scenario(
        "Expiry",
        (
            write_step("create", *(document(kind, "1h") for kind in specs)),
            wait_step("until they are stopped", 1.1 * hour_s),
            write_step("postpone one", document("PinterestService", "3h"), needs_previous_step=True),
            wait_step("until the others are deleted", 2.5 * hour_s),
            wait_step("until it is stopped, too", 3.5 * hour_s),
            wait_step("until it is deleted, too", 7 * hour_s),
        ),
    )


SCENARIOS = {each.name: each for each in (
    _service(), _stateful_set(), _daemon(), _job_set(), _cron_job(), _training_job(), _project(), _runtime(),
    _expiry(),
    *verb_scenarios.verb_scenarios(), *combined_scenarios.combined_scenarios(), import_scenario.import_scenario(),
)}  # fmt: skip
