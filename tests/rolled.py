"""A runtime rolled on a real node: the sidecar is started again, and nothing else of the pod."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from busybox import IMAGE, TEMPLATE, write_image
from person import Person, all_gone
from pincompute.api.names import ENGINE, WORKLOAD
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, REPLICA_SETS, Object
from real_platform import PATIENCE

NEXT = "busybox:again"
SERVICE = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: rolled}}
spec:
  image: {IMAGE}
  command: [sh, -c, 'trap exit TERM; httpd -f -p $PORT -h / & wait']
  port: 8080
  replicas: 2
  loadBalancer: {{healthCheck: {{path: ""}}}}
  shutdown: {{leaveSeconds: 0}}
  template: {TEMPLATE}
"""
TASKS = f"""\
apiVersion: pinterest.com/v1
kind: PinterestJobSet
metadata: {{name: tasks}}
spec:
  image: {IMAGE}
  command: [sh, -c, 'trap exit TERM; sleep 1000 & wait']
  tasks: 2
  template: {TEMPLATE}
"""
_BESIDE = {
    "name": "logs",
    "command": ["sh", "-c", "trap exit TERM; sleep 1000 & wait"],
    "securityContext": {"runAsUser": 1000},
}


async def rolled_in_place(person: Person, client: Client) -> None:
    """A service gets runtime 7 by new pods, and 8 where they are."""
    write_image(person.folder / "busybox.tar")
    await person.pin("image", "load", "busybox.tar", "--as", NEXT)
    (person.folder / "rolled.yaml").write_text(SERVICE)
    await person.pin("deploy", "rolled.yaml")
    for number, image in ((7, IMAGE), (8, NEXT)):
        part = {"metadata": {"name": f"logs-{number}"}, "spec": {"sidecars": [{**_BESIDE, "image": image}]}}
        runtime = {"metadata": {"name": str(number)}, "spec": {"parts": [f"logs-{number}"]}}
        await client.apply(part, NOUNS["PinterestSidecar"], manager=ENGINE)
        await client.apply(runtime, NOUNS["Runtime"], manager=ENGINE)
    await _roll(person, 7)
    (person.folder / "tasks.yaml").write_text(TASKS)
    await person.pin("deploy", "tasks.yaml", "--no-wait")
    tasks = await _running(client, "tasks", 0)
    before, sets = await _containers(client), await _sets(client)
    assert "2 in place" in await _roll(person, 8)
    assert await _running(client, "tasks", 1) == tasks
    after = await _containers(client)
    assert {name: containers["rolled"] for name, containers in after.items()} == {
        name: containers["rolled"] for name, containers in before.items()
    }
    assert [containers["logs"][1] for containers in after.values()] == [1, 1]
    assert await _sets(client) == sets
    assert ["me", "me", "rolled", "Service", "2"] in await _rows(person, "who", "logs-8")
    assert ["8", "logs-8", "current"] in [row[:3] for row in await _rows(person, "status")]
    for name in ("rolled", "tasks"):
        await person.pin("delete", name)
        await all_gone(client, PODS, "me", labels=f"{WORKLOAD}={name}")
    for number in (8, 7):
        await client.delete(NOUNS["Runtime"], str(number))
        await client.delete(NOUNS["PinterestSidecar"], f"logs-{number}")


async def _running(client: Client, workload: str, starts: int) -> dict[str, Any]:
    """The programs of two copies, as soon as the sidecar of each was started again so often, and runs."""
    seen: dict[str, Object] = {}
    async with asyncio.timeout(PATIENCE), aclosing(client.watch(PODS, "me", labels=f"{WORKLOAD}={workload}")) as events:
        async for event in events:
            seen[event.object["metadata"]["uid"]] = event.object["status"]
            said = [each for each in seen.values() if each.get("containerStatuses")]
            runs = [each for each in said if all("running" in one["state"] for one in _all_of(each))]
            beside = [one for each in runs for one in each["initContainerStatuses"] if one["name"] == "logs"]
            if [each["restartCount"] for each in beside] == [starts] * 2:
                return {uid: each["containerStatuses"][0]["containerID"] for uid, each in seen.items()}
    raise AssertionError("the watch ended")


def _all_of(status: Object) -> list[Object]:
    return [*status["initContainerStatuses"], *status["containerStatuses"]]


async def _roll(person: Person, number: int) -> str:
    """Of everybody at once, and not watched any longer."""
    return await person.pin("runtime", "roll", str(number), "--waves", "100", "--watch", "0")


async def _rows(person: Person, *words: str) -> list[list[str]]:
    return [line.split() for line in (await person.pin("runtime", *words)).splitlines()]


async def _containers(client: Client) -> dict[str, dict[str, tuple[Any, int]]]:
    """By pod and name: which one it is, and how often it was started again."""
    pods = (await client.list(PODS, "me", labels=f"{WORKLOAD}=rolled")).items
    return {pod["metadata"]["uid"]: dict(map(_told, _all_of(pod["status"]))) for pod in pods if _stays(pod)}


def _stays(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _told(container: Object) -> tuple[str, tuple[Any, int]]:
    return container["name"], (container["containerID"], container["restartCount"])


async def _sets(client: Client) -> list[str]:
    """What the Deployment makes pods by."""
    listing = await client.list(REPLICA_SETS, "me", labels=f"{WORKLOAD}=rolled")
    return [each["metadata"]["uid"] for each in listing.items if each["spec"]["replicas"]]
