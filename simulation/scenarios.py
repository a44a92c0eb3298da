"""What people do with each kind, in a handful of steps."""

from __future__ import annotations

from typing import Any

from pincompute.api.change import Rerun, Restart, Resume, Rollback
from pincompute.api.names import RUN_NOW
from pincompute.kube.resource import DEPLOYMENTS, SERVICES, Object
from simulation import imports, meetings, verbs
from simulation.person import Person
from simulation.steps import Scenario, Step, changes, deletes, document, hastily, waits, writes

COMPARED = ("PinterestService", "PinterestStatefulSet", "PinterestDaemon", "Project")
"""Kinds that end the same whatever was seen on the way; of the others each revision that was seen has run."""


def _service() -> Scenario:
    kind = "PinterestService"

    def web(**spec: Any) -> Object:
        given = {"image": "web:1", "port": 8080, "replicas": 3, "configuration": {"web.ini": "a = 1"}}
        return document(kind, "web", **{**given, **spec})

    last: Object = {"image": "web:2", "replicas": 4, "configuration": {"web.ini": "a = 2"}, "port": 9090}
    return Scenario(
        kind,
        (
            writes("create", web()),
            writes("scale", web(replicas=4)),
            writes("another image", web(replicas=4, image="web:2")),
            writes("another configuration", web(**last | {"port": 8080})),
            writes("another port", web(**last)),
            hastily("A, B, A", web(**last | {"image": "web:3"}), web(**last)),
            writes("no address from outside", web(**last, loadBalancer={"internal": True})),
            changes("restarted", "web", Restart()),
            changes("as it was before", "web", Rollback(), patient=True),
            deletes("somebody deletes its Service", SERVICES, "web"),
            deletes("somebody deletes its Deployment", DEPLOYMENTS, "web"),
            deletes("delete", kind, "web"),
            writes("create again", web()),
            deletes("delete again", kind, "web"),
        ),
    )


def _stateful_set() -> Scenario:
    kind = "PinterestStatefulSet"

    def db(**spec: Any) -> Object:
        return document(kind, "db", **{"image": "db:1", "port": 5432, "replicas": 2, "storage": "1Gi", **spec})

    log = {"log": {"size": "1Gi", "path": "/log"}}
    last: Object = {"image": "db:2", "replicas": 3, "storage": "2Gi"}
    return Scenario(
        kind,
        (
            writes("create", db()),
            writes("scale", db(replicas=3)),
            writes("another image", db(image="db:2", replicas=3)),
            writes("larger storage", db(**last)),
            writes("one claim more", db(**last, claims=log)),
            writes("another port", db(**last, claims=log) | _port(db(**last, claims=log), 5433)),
            hastily("A, B, A", db(**last | {"image": "db:3"}, claims=log), db(**last, claims=log)),
            deletes("delete", kind, "db"),
        ),
    )


def _port(document: Object, port: int) -> Object:
    return {"spec": {**document["spec"], "port": port}}


def _daemon() -> Scenario:
    kind = "PinterestDaemon"

    def exporter(image: str, **spec: Any) -> Object:
        rollout = {"waves": [40, 100], "pauseSeconds": 10}
        return document(kind, "exporter", image=image, port=9100, rollout=rollout, **spec)

    return Scenario(
        kind,
        (
            writes("create", exporter("exporter:1")),
            writes("another image", exporter("exporter:2")),
            writes("configuration", exporter("exporter:2", configuration={"a.ini": "a = 1"})),
            hastily(
                "A, B, A",
                exporter("exporter:3", configuration={"a.ini": "a = 1"}),
                exporter("exporter:2", configuration={"a.ini": "a = 1"}),
            ),
            deletes("delete", kind, "exporter"),
        ),
    )


def _job_set() -> Scenario:
    kind = "PinterestJobSet"

    def count(name: str = "count", **spec: Any) -> Object:
        return document(kind, name, **{"image": "count:1", "tasks": 4, "parallelism": 2, **spec})

    def apart(**spec: Any) -> Object:
        claims = [{"name": "out", "path": "/out", "size": "1Gi", "retained": True}]
        return count("apart", **{"tasks": 2, "claims": claims, **spec})

    failing: Object = {"image": "failing:1", "retries": 0}
    return Scenario(
        kind,
        (
            writes("create", count()),
            writes("another image, kept still", count(image="count:2", suspended="ann: the input is late")),
            writes("another pace", count(image="count:2", parallelism=4)),
            changes("resumed", "count", Resume()),
            writes("tasks that fail", count(**failing)),
            writes("what failed runs again", count(**failing, attempts=[{"tasks": "failed", "memory": "1Gi"}])),
            hastily("A, B, C", count(image="count:3"), count(image="count:4"), 1.0),
            writes("tasks with claims of their own", apart()),
            deletes("delete", kind, "count", "apart"),
        ),
    )


def _cron_job() -> Scenario:
    kind = "PinterestCronJob"

    def nightly(**spec: Any) -> Object:
        return document(kind, "nightly", **{"image": "report:1", "schedule": "0 * * * *", **spec})

    async def now(person: Person) -> None:
        await person.annotate(kind, "nightly", {RUN_NOW: "1"})

    return Scenario(
        kind,
        (
            writes("create", nightly()),
            Step("run now", now),
            waits("it is due", 3600 + 60),
            writes("another image", nightly(image="report:2")),
            writes("another schedule", nightly(image="report:2", schedule="30 * * * *")),
            hastily("A, B, A", nightly(image="report:3"), nightly(image="report:2", schedule="30 * * * *")),
            waits("it is due again", 2 * 3600 + 1800 + 60),
            writes("suspended", nightly(image="report:2", suspended="ann: the source is down")),
            deletes("delete", kind, "nightly"),
        ),
    )


def _training_job() -> Scenario:
    kind = "PinterestTrainingJob"

    def ranking(**spec: Any) -> Object:
        return document(kind, "ranking", **{"framework": "pytorch", "image": "train:1", "workers": 2, **spec})

    def runs(image: str) -> Object:
        return {"spec": {"containers": [{"name": "pytorch", "image": image}]}}

    # Were it all of them, it would be a matter of moments which had failed by the time the others are ended.
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
            writes("create", ranking()),
            changes("it trains once more", "ranking", Rerun(), patient=True),
            writes("another image, kept still", ranking(image="slow-train:2", suspended="ann: the input is late")),
            changes("resumed", "ranking", Resume(), patient=True),
            hastily("A, B, C", ranking(image="slow-train:3"), ranking(image="train:4", workers=1), 1.0),
            writes("one that fails, while the others train", ranking(**one_bad)),
            deletes("delete", kind, "ranking"),
        ),
    )


def _project() -> Scenario:
    kind = "Project"

    def ads(**spec: Any) -> Object:
        return document(kind, "ads", **{"owner": "team-ads", "quota": {"reserved": {"cpu": 4}}, **spec})

    members = {"owner": {"people": ["ann"]}, "deployer": {"groups": ["ads"]}}
    web = document("PinterestService", "web", image="web:1", port=8080, replicas=1)
    web["metadata"]["project"] = "ads"
    return Scenario(
        kind,
        (
            writes("create", ads()),
            writes("members", ads(members=members)),
            writes("work in it", web, patient=True),
            writes("another quota", ads(members=members, quota={"reserved": {"cpu": 8}, "preemptible": {}})),
            writes("another owner, on all its work", ads(owner="team-shop", callers=["search"])),
            hastily("A, B, A", ads(owner="team-c"), ads(owner="team-shop", callers=["search"])),
            deletes("delete", kind, "ads"),
        ),
    )


def _runtime() -> Scenario:
    def part(version: int) -> Object:
        return document("PinterestSidecar", f"logs-{version}", image=f"logs:{version}.0")

    def runtime(number: int, **roll: Any) -> Object:
        given = {"waves": [50, 100], "pauseSeconds": 20}
        return document("Runtime", str(number), parts=[f"logs-{number}"], roll={**given, **roll})

    web, api = (document("PinterestService", each, image=f"{each}:1", port=8080, replicas=2) for each in ("web", "api"))
    db = document("PinterestStatefulSet", "db", image="db:1", port=5432, replicas=2)
    return Scenario(
        "Runtime",
        (
            writes("work without any", web, api, db),
            writes("the first is rolled out", part(1), runtime(1)),
            writes("the second is rolled out", part(2), runtime(2)),
            writes("the third is taken back", part(3), runtime(3, paused="ann: looks"), runtime(3, stopped="ann: no")),
            hastily("edited in the midst of a roll", runtime(4) | {}, web),
            deletes("delete", "PinterestService", "web", "api"),
        ),
    )


SCENARIOS = {each.kind: each for each in (
    _service(), _stateful_set(), _daemon(), _job_set(), _cron_job(), _training_job(), _project(), _runtime(),
    *verbs.all_of_them(), *meetings.all_of_them(), imports.scenario(),
)}  # fmt: skip
