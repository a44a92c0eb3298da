"""Rolls a runtime in place on a real node: only the sidecar restarts, no other container of the pod."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

from busybox import IMAGE, TEMPLATE, write_image
from cli_user import CliUser, wait_all_gone
from pincompute.api.names import ENGINE, WORKLOAD_LABEL
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, REPLICA_SETS, Object
from real_platform import WAIT_TIMEOUT_S

NEXT_IMAGE = "busybox:again"
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
_SIDECAR = {
    "name": "logs",
    "command": ["sh", "-c", "trap exit TERM; sleep 1000 & wait"],
    "securityContext": {"runAsUser": 1000},
}


async def check_in_place_roll(user: CliUser, client: Client) -> None:
    """A service gets runtime 7 with new pods, and runtime 8 in place."""
    write_image(user.folder / "busybox.tar")
    await user.pin("image", "load", "busybox.tar", "--as", NEXT_IMAGE)
    (user.folder / "rolled.yaml").write_text(SERVICE)
    await user.pin("deploy", "rolled.yaml")
    for number, image in ((7, IMAGE), (8, NEXT_IMAGE)):
        part = {"metadata": {"name": f"logs-{number}"}, "spec": {"sidecars": [{**_SIDECAR, "image": image}]}}
        runtime = {"metadata": {"name": str(number)}, "spec": {"parts": [f"logs-{number}"]}}
        await client.apply(part, CUSTOM_RESOURCES["PinterestSidecar"], manager=ENGINE)
        await client.apply(runtime, CUSTOM_RESOURCES["Runtime"], manager=ENGINE)
    await _roll_runtime(user, 7)
    (user.folder / "tasks.yaml").write_text(TASKS)
    await user.pin("deploy", "tasks.yaml", "--no-wait")
    tasks = await _wait_running(client, "tasks", 0)
    before, sets = await _container_states(client), await _replica_set_uids(client)
    assert "2 in place" in await _roll_runtime(user, 8)
    assert await _wait_running(client, "tasks", 1) == tasks
    after = await _container_states(client)
    assert {name: containers["rolled"] for name, containers in after.items()} == {
        name: containers["rolled"] for name, containers in before.items()
    }
    assert [containers["logs"][1] for containers in after.values()] == [1, 1]
    assert await _replica_set_uids(client) == sets
    assert ["me", "me", "rolled", "Service", "2"] in await _table_rows(user, "who", "logs-8")
    assert ["8", "logs-8", "current"] in [row[:3] for row in await _table_rows(user, "status")]
    for name in ("rolled", "tasks"):
        await user.pin("delete", name)
        await wait_all_gone(client, PODS, "me", labels=f"{WORKLOAD_LABEL}={name}")
    for number in (8, 7):
        await client.delete(CUSTOM_RESOURCES["Runtime"], str(number))
        await client.delete(CUSTOM_RESOURCES["PinterestSidecar"], f"logs-{number}")


async def _wait_running(client: Client, workload: str, starts: int) -> dict[str, Any]:
    """Container ids of two replicas, once the sidecars of both run and have restarted this often."""
    seen: dict[str, Object] = {}
    async with (
        asyncio.timeout(WAIT_TIMEOUT_S),
        aclosing(client.watch(PODS, "me", labels=f"{WORKLOAD_LABEL}={workload}")) as events,
    ):
        async for event in events:
            seen[event.object["metadata"]["uid"]] = event.object["status"]
            statuses = [each for each in seen.values() if each.get("containerStatuses")]
            running = [each for each in statuses if all("running" in one["state"] for one in _all_statuses(each))]
            sidecars = [one for each in running for one in each["initContainerStatuses"] if one["name"] == "logs"]
            if [each["restartCount"] for each in sidecars] == [starts] * 2:
                return {uid: each["containerStatuses"][0]["containerID"] for uid, each in seen.items()}
    raise AssertionError("the watch ended")


def _all_statuses(status: Object) -> list[Object]:
    return [*status["initContainerStatuses"], *status["containerStatuses"]]


async def _roll_runtime(user: CliUser, number: int) -> str:
    """Rolls a runtime to all workloads at once, without watching."""
    return await user.pin("runtime", "roll", str(number), "--waves", "100", "--watch", "0")


async def _table_rows(user: CliUser, *words: str) -> list[list[str]]:
    return [line.split() for line in (await user.pin("runtime", *words)).splitlines()]


async def _container_states(client: Client) -> dict[str, dict[str, tuple[Any, int]]]:
    """By pod and container name: the container id and the restart count."""
    pods = (await client.list(PODS, "me", labels=f"{WORKLOAD_LABEL}=rolled")).items
    return {
        pod["metadata"]["uid"]: dict(map(_container_state, _all_statuses(pod["status"])))
        for pod in pods
        if _is_active(pod)
    }


def _is_active(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _container_state(container: Object) -> tuple[str, tuple[Any, int]]:
    return container["name"], (container["containerID"], container["restartCount"])


async def _replica_set_uids(client: Client) -> list[str]:
    """Uids of the active ReplicaSets."""
    listing = await client.list(REPLICA_SETS, "me", labels=f"{WORKLOAD_LABEL}=rolled")
    return [each["metadata"]["uid"] for each in listing.items if each["spec"]["replicas"]]
