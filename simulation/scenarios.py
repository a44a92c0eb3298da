"""What people do with each kind, in a handful of steps; after each the world comes to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from pincompute.api.change import Change, Restart, Resume, Rollback
from pincompute.api.names import API_VERSION, RUN_NOW
from pincompute.kube.resource import DEPLOYMENTS, SERVICES, Object
from simulation.person import Person

Action = Callable[[Person], Awaitable[None]]


class Step(NamedTuple):
    does: str
    action: Action
    hasty: bool = False
    """Something is taken back before it is done: how much of it was seen depends on the moment."""
    patient: bool = False
    """It needs what was before it to be done."""


class Scenario(NamedTuple):
    kind: str
    steps: tuple[Step, ...]


COMPARED = ("PinterestService", "PinterestStatefulSet", "PinterestDaemon", "Project")
"""Kinds that end the same whatever was seen on the way; of the others each revision that was seen has run."""


def _document(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _writes(does: str, *documents: Object, patient: bool = False) -> Step:
    async def action(person: Person) -> None:
        for each in documents:
            await person.write(each)

    return Step(does, action, patient=patient)


def _changes(does: str, name: str, change: Change, *, patient: bool = False) -> Step:
    async def action(person: Person) -> None:
        await person.change(name, change)

    return Step(does, action, patient=patient)


def _deletes(does: str, kind: Any, *names: str) -> Step:
    async def action(person: Person) -> None:
        for each in names:
            await person.delete(kind, each)

    return Step(does, action)


def _hastily(does: str, first: Object, then: Object, seconds: float = 0.3) -> Step:
    """There and back again, while the first is under way."""

    async def action(person: Person) -> None:
        await person.write(first)
        await asyncio.sleep(seconds)
        await person.write(then)

    return Step(does, action, hasty=True)


def _waits(does: str, until: float) -> Step:
    async def action(person: Person) -> None:
        del person
        loop = asyncio.get_running_loop()
        await asyncio.sleep(until - loop.time())

    return Step(does, action)


def _service() -> Scenario:
    kind = "PinterestService"

    def web(**spec: Any) -> Object:
        given = {"image": "web:1", "port": 8080, "replicas": 3, "configuration": {"web.ini": "a = 1"}}
        return _document(kind, "web", **{**given, **spec})

    last: Object = {"image": "web:2", "replicas": 4, "configuration": {"web.ini": "a = 2"}, "port": 9090}
    return Scenario(
        kind,
        (
            _writes("create", web()),
            _writes("scale", web(replicas=4)),
            _writes("another image", web(replicas=4, image="web:2")),
            _writes("another configuration", web(**last | {"port": 8080})),
            _writes("another port", web(**last)),
            _hastily("A, B, A", web(**last | {"image": "web:3"}), web(**last)),
            _writes("no address from outside", web(**last, loadBalancer={"internal": True})),
            _changes("restarted", "web", Restart()),
            _changes("as it was before", "web", Rollback(), patient=True),
            _deletes("somebody deletes its Service", SERVICES, "web"),
            _deletes("somebody deletes its Deployment", DEPLOYMENTS, "web"),
            _deletes("delete", kind, "web"),
            _writes("create again", web()),
            _deletes("delete again", kind, "web"),
        ),
    )


def _stateful_set() -> Scenario:
    kind = "PinterestStatefulSet"

    def db(**spec: Any) -> Object:
        return _document(kind, "db", **{"image": "db:1", "port": 5432, "replicas": 2, "storage": "1Gi", **spec})

    log = {"log": {"size": "1Gi", "path": "/log"}}
    last: Object = {"image": "db:2", "replicas": 3, "storage": "2Gi"}
    return Scenario(
        kind,
        (
            _writes("create", db()),
            _writes("scale", db(replicas=3)),
            _writes("another image", db(image="db:2", replicas=3)),
            _writes("larger storage", db(**last)),
            _writes("one claim more", db(**last, claims=log)),
            _writes("another port", db(**last, claims=log) | _port(db(**last, claims=log), 5433)),
            _hastily("A, B, A", db(**last | {"image": "db:3"}, claims=log), db(**last, claims=log)),
            _deletes("delete", kind, "db"),
        ),
    )


def _port(document: Object, port: int) -> Object:
    return {"spec": {**document["spec"], "port": port}}


def _daemon() -> Scenario:
    kind = "PinterestDaemon"

    def exporter(image: str, **spec: Any) -> Object:
        rollout = {"waves": [40, 100], "pauseSeconds": 10}
        return _document(kind, "exporter", image=image, port=9100, rollout=rollout, **spec)

    return Scenario(
        kind,
        (
            _writes("create", exporter("exporter:1")),
            _writes("another image", exporter("exporter:2")),
            _writes("configuration", exporter("exporter:2", configuration={"a.ini": "a = 1"})),
            _hastily(
                "A, B, A",
                exporter("exporter:3", configuration={"a.ini": "a = 1"}),
                exporter("exporter:2", configuration={"a.ini": "a = 1"}),
            ),
            _deletes("delete", kind, "exporter"),
        ),
    )


def _job_set() -> Scenario:
    kind = "PinterestJobSet"

    def count(name: str = "count", **spec: Any) -> Object:
        return _document(kind, name, **{"image": "count:1", "tasks": 4, "parallelism": 2, **spec})

    def apart(**spec: Any) -> Object:
        claims = [{"name": "out", "path": "/out", "size": "1Gi", "retained": True}]
        return count("apart", **{"tasks": 2, "claims": claims, **spec})

    failing: Object = {"image": "failing:1", "retries": 0}
    return Scenario(
        kind,
        (
            _writes("create", count()),
            _writes("another image, kept still", count(image="count:2", suspended="ann: the input is late")),
            _writes("another pace", count(image="count:2", parallelism=4)),
            _changes("resumed", "count", Resume()),
            _writes("tasks that fail", count(**failing)),
            _writes("what failed runs again", count(**failing, attempts=[{"tasks": "failed", "memory": "1Gi"}])),
            _hastily("A, B, C", count(image="count:3"), count(image="count:4"), 1.0),
            _writes("tasks with claims of their own", apart()),
            _deletes("delete", kind, "count", "apart"),
        ),
    )


def _cron_job() -> Scenario:
    kind = "PinterestCronJob"

    def nightly(**spec: Any) -> Object:
        return _document(kind, "nightly", **{"image": "report:1", "schedule": "0 * * * *", **spec})

    async def now(person: Person) -> None:
        await person.annotate(kind, "nightly", {RUN_NOW: "1"})

    return Scenario(
        kind,
        (
            _writes("create", nightly()),
            Step("run now", now),
            _waits("it is due", 3600 + 60),
            _writes("another image", nightly(image="report:2")),
            _writes("another schedule", nightly(image="report:2", schedule="30 * * * *")),
            _hastily("A, B, A", nightly(image="report:3"), nightly(image="report:2", schedule="30 * * * *")),
            _waits("it is due again", 2 * 3600 + 1800 + 60),
            _writes("suspended", nightly(image="report:2", suspended="ann: the source is down")),
            _deletes("delete", kind, "nightly"),
        ),
    )


def _project() -> Scenario:
    kind = "Project"

    def ads(**spec: Any) -> Object:
        return _document(kind, "ads", **{"owner": "team-ads", "quota": {"reserved": {"cpu": 4}}, **spec})

    members = {"owner": {"people": ["ann"]}, "deployer": {"groups": ["ads"]}}
    web = _document("PinterestService", "web", image="web:1", port=8080, replicas=1)
    web["metadata"]["project"] = "ads"
    return Scenario(
        kind,
        (
            _writes("create", ads()),
            _writes("members", ads(members=members)),
            _writes("work in it", web, patient=True),
            _writes("another quota", ads(members=members, quota={"reserved": {"cpu": 8}, "preemptible": {}})),
            _writes("another owner, on all its work", ads(owner="team-shop", callers=["search"])),
            _hastily("A, B, A", ads(owner="team-c"), ads(owner="team-shop", callers=["search"])),
            _deletes("delete", kind, "ads"),
        ),
    )


def _runtime() -> Scenario:
    def part(version: int) -> Object:
        return _document("PinterestSidecar", f"logs-{version}", image=f"logs:{version}.0")

    def runtime(number: int, **roll: Any) -> Object:
        given = {"waves": [50, 100], "pauseSeconds": 20}
        return _document("Runtime", str(number), parts=[f"logs-{number}"], roll={**given, **roll})

    web, api = (
        _document("PinterestService", each, image=f"{each}:1", port=8080, replicas=2) for each in ("web", "api")
    )
    db = _document("PinterestStatefulSet", "db", image="db:1", port=5432, replicas=2)
    return Scenario(
        "Runtime",
        (
            _writes("work without any", web, api, db),
            _writes("the first is rolled out", part(1), runtime(1)),
            _writes("the second is rolled out", part(2), runtime(2)),
            _writes("the third is taken back", part(3), runtime(3, paused="ann: looks"), runtime(3, stopped="ann: no")),
            _hastily("edited in the midst of a roll", runtime(4) | {}, web),
            _deletes("delete", "PinterestService", "web", "api"),
        ),
    )


SCENARIOS = {each.kind: each for each in (
    _service(), _stateful_set(), _daemon(), _job_set(), _cron_job(), _project(), _runtime(),
)}  # fmt: skip
