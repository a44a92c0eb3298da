"""What meets: a batch and a roll, a roll and who thinks better of it or holds what was, and two of one name."""

from __future__ import annotations

from typing import Any

from pincompute.api.names import HAND
from pincompute.controller.resources import NOUNS
from pincompute.kube.resource import Object
from simulation.person import HOME, Person
from simulation.steps import Scenario, Step, deletes, document, until, writes


def all_of_them() -> tuple[Scenario, ...]:
    return _batch_in_a_roll(), _roll_taken_back(), _held(), _namesakes()


def _part(version: int) -> Object:
    return document("PinterestSidecar", f"logs-{version}", image=f"logs:{version}.0")


def _runtime(number: int, **roll: Any) -> Object:
    given = {"waves": [50, 100], "pauseSeconds": 80}
    return document("Runtime", str(number), parts=[f"logs-{number}"], roll={**given, **roll})


def _service(name: str, **spec: Any) -> Object:
    return document("PinterestService", name, **{"image": f"{name}:1", "port": 8080, "replicas": 2, **spec})


def _batch_in_a_roll() -> Scenario:
    """Its pods get what they can where they are, and those that come later as well."""

    def count(**spec: Any) -> Object:
        return document("PinterestJobSet", "count", **{"image": "slow-count:1", "tasks": 4, "parallelism": 2, **spec})

    def meanwhile(does: str, number: int, work: Object) -> Step:
        async def action(person: Person) -> None:
            await person.write(work)
            await until(person, "PinterestJobSet", "count", lambda status: status.get("running", 0) == 2)
            await person.write(_part(number))
            # Longer than an operator may take to lead again, and shorter than a task: all of it is counted.
            await person.write(_runtime(number, waves=[100], pauseSeconds=75))

        return Step(does, action, patient=True)

    return Scenario(
        "BatchInARoll",
        (
            writes("the first is rolled out", _part(1), _runtime(1, waves=[100])),
            meanwhile("the second comes while it runs", 2, count()),
            meanwhile("the third comes while its next revision runs", 3, count(image="slow-count:2")),
            writes("it runs once more with what came", count(image="slow-count:2", attempts=[{"tasks": "0-1"}])),
            deletes("delete", "PinterestJobSet", "count"),
        ),
    )


def _roll_taken_back() -> Scenario:
    """Some have it when somebody thinks better of it."""

    def halfway(does: str, number: int, **then: Any) -> Step:
        async def action(person: Person) -> None:
            await person.write(_part(number))
            await person.write(_runtime(number))
            await until(person, "Runtime", str(number), lambda status: status.get("progress", {}).get("there", 0) > 0)
            await person.write(_runtime(number, **then))

        return Step(does, action, patient=True)

    return Scenario(
        "RollTakenBack",
        (
            writes("work without any", _service("web"), _service("api")),
            writes("the first is rolled out", _part(1), _runtime(1, waves=[100], pauseSeconds=0)),
            halfway("the second is halted halfway", 2, paused="ann: looks"),
            writes("it goes on", _runtime(2)),
            halfway("the third is taken back halfway", 3, stopped="ann: it loses lines"),
        ),
    )


def _held() -> Scenario:
    """Some hold the older one, until what must be everywhere comes; then nobody needs what was, and it goes."""
    hold = {"runtime": 1, "until": "2026-03-31", "because": "it is measured"}
    return Scenario(
        "RuntimeHeld",
        (
            writes("the first is rolled out", _part(1), _runtime(1, waves=[100], pauseSeconds=0)),
            writes("one of two holds it", _service("web", hold=hold), _service("api")),
            writes("the second is rolled out", _part(2), _runtime(2)),
            writes("the third breaks holds", _part(3), _runtime(3, breakHolds=True, security="CVE-2026-1234")),
            deletes("the first goes", "Runtime", "1"),
            deletes("and its part", "PinterestSidecar", "logs-1"),
            deletes("delete", "PinterestService", "web", "api"),
        ),
    )


def _namesakes() -> Scenario:
    """Past the door: whoever came later is told, and is made as soon as the name is free."""

    def past_the_door(kind: str, **spec: Any) -> Step:
        async def action(person: Person) -> None:
            said: Object = {"metadata": {"name": "web", "namespace": HOME}, "spec": spec}
            await person.client.apply(said, NOUNS[kind], manager=HAND)

        return Step(f"a {kind} of the same name", action, patient=True)

    return Scenario(
        "Namesakes",
        (
            writes("create", _service("web")),
            past_the_door("PinterestCronJob", image="report:1", schedule="0 3 1 1 *"),
            past_the_door("PinterestJobSet", image="count:1", tasks=2),
            writes("the first is another", {**_service("web"), "spec": {"image": "web:2", "port": 80, "replicas": 1}}),
            deletes("the first is deleted", "PinterestService", "web"),
            deletes("the second is deleted", "PinterestCronJob", "web"),
            deletes("the last is deleted", "PinterestJobSet", "web"),
        ),
    )
