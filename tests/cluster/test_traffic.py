"""Service discovery on a real node: a replica is a member of its serverset exactly while it is ready."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from busybox import IMAGE
from cli_user import CliUser, wait_all_gone
from pincompute.api.names import REGISTERED, REGISTRAR, WORKLOAD_LABEL
from pincompute.engine.platform import Platform
from pincompute.engine.zookeeper import server
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import PODS, Object
from real_platform import kubectl, wait_until as wait_until_object
from zookeeper_server import until_holds

pytestmark = pytest.mark.cluster

NAME = "member"
PROGRAM = "trap 'echo terminated; exit' TERM; httpd -f -p 8080 -h /web & while :; do sleep 1; done"
"""It is ready while there is a file `ready`."""


@pytest.fixture
def deployer(real_platform: Platform, tmp_path: Path) -> CliUser:
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": "PinterestService",
        "metadata": {"name": NAME},
        "spec": {
            "image": IMAGE,
            "port": 8080,
            "serverset": {"readers": ["ads/feed"]},
            "loadBalancer": {"internal": True, "healthCheck": {"path": "/ready", "seconds": 1, "failures": 1}},
            "command": ["sh", "-c", PROGRAM],
            # Longer than the machine of the test may stand still; five seconds are the least.
            "shutdown": {"leaveSeconds": 120, "graceSeconds": 1},
            "template": {
                "spec": {
                    "securityContext": {"runAsUser": 65532},
                    "volumes": [{"name": "web", "emptyDir": {"sizeLimit": "1Mi"}}],
                    "containers": [{"name": NAME, "volumeMounts": [{"name": "web", "mountPath": "/web"}]}],
                }
            },
        },
    }
    (tmp_path / "member.yaml").write_text(json.dumps(document))
    return CliUser(real_platform, tmp_path)


@pytest.fixture
async def observer(real_platform: Platform) -> AsyncIterator[Any]:
    """A client of ZooKeeper, as an application outside the cluster has one."""
    client: Any = KazooClient(server.ensemble_address(real_platform))
    await asyncio.to_thread(client.start, 60)
    yield client
    await asyncio.to_thread(client.stop)
    client.close()


async def test_replica_is_a_member_exactly_while_it_is_ready(
    real_platform: Platform, client: Client, deployer: CliUser, observer: Any
) -> None:
    async def members() -> list[dict[str, Any]]:
        path = f"/serversets/me/{NAME}"
        names = await asyncio.to_thread(observer.get_children, path) if await exists(observer, path) else []
        entries = [await asyncio.to_thread(observer.get, f"{path}/{each}") for each in names]
        return [json.loads(data) for data, _ in entries]

    async def has_members(count: int) -> bool:
        return len(await members()) == count

    await deployer.pin("deploy", "member.yaml", "--no-wait")
    pod = await wait_until_object(client, PODS, "me", is_running)
    replica = f"{NAME}/{pod['metadata']['name'].rpartition('-')[2]}"
    # It runs, and has never been ready.
    assert condition(pod, REGISTERED) == ""
    assert await members() == []

    await deployer.pin("shell", replica, "--", "touch", "/web/ready")
    await wait_until_object(client, PODS, "me", lambda seen: of_service(seen) and condition(seen, REGISTERED) == "True")
    (member,) = await members()
    address = {"host": pod["status"]["podIP"], "port": 8080}
    assert (member["serviceEndpoint"], member["additionalEndpoints"]) == (address, {"http": address})
    await deployer.pin("wait", NAME)
    shown = await deployer.pin("endpoints", NAME)
    assert shown.startswith(f"serverset me/{NAME}: 1 member, 1 ready\n")
    assert address["host"] in shown
    await registrar_cannot_make_a_pod_ready(real_platform, pod)

    await deployer.pin("shell", replica, "--", "rm", "/web/ready")
    await until_holds(lambda: has_members(0))
    await deployer.pin("shell", replica, "--", "touch", "/web/ready")
    await until_holds(lambda: has_members(1))

    deletion = asyncio.create_task(deployer.pin("delete", NAME, "--yes"))
    await until_holds(lambda: has_members(0))
    # Clients no longer see the replica, and it has not received SIGTERM.
    logs = await kubectl(real_platform, "logs", "-n", "me", pod["metadata"]["name"], "-c", NAME)
    assert "terminated" not in logs
    await kubectl(real_platform, "delete", "pod", "-n", "me", pod["metadata"]["name"], "--grace-period=1")
    await deletion
    await wait_all_gone(client, PODS, "me", labels=f"{WORKLOAD_LABEL}={NAME}")


async def registrar_cannot_make_a_pod_ready(platform: Platform, pod: Object) -> None:
    """Its right to patch the status of pods is limited to its own condition."""
    access: Access = load_kubeconfig(platform.kubeconfig_of(REGISTRAR))
    forged = {"type": "Ready", "status": "False", "reason": "Forged"}
    async with Client(access, agent="test") as client:
        for status in ({"conditions": [forged]}, {"phase": "Failed"}, {"podIP": "6.6.6.6"}):
            with pytest.raises(ApiError, match="the registrar may only set the condition"):
                await client.patch(
                    PODS,
                    pod["metadata"]["name"],
                    "me",
                    {"status": status},
                    style="strategic",
                    manager=REGISTRAR,
                    subresource="status",
                )


async def exists(observer: Any, path: str) -> bool:
    return await asyncio.to_thread(observer.exists, path) is not None


def of_service(pod: Object) -> bool:
    return bool(pod["metadata"].get("labels", {}).get(WORKLOAD_LABEL) == NAME)


def is_running(pod: Object) -> bool:
    states = pod.get("status", {}).get("containerStatuses", ())
    return of_service(pod) and any("running" in each["state"] for each in states)


def condition(pod: Object, name: str) -> str:
    """Status of a condition; empty if the pod does not have it."""
    return next((str(each["status"]) for each in pod["status"].get("conditions", ()) if each["type"] == name), "")
