"""No request fails during any change of a service or the loss of a replica."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from busybox import IMAGE, TEMPLATE, write_image
from cli_user import CliUser, continuous_requests, wait_all_gone
from pincompute.api.names import ENGINE, WORKLOAD_LABEL
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import POD_DISRUPTION_BUDGETS, PODS, SERVICES, Object
from real_platform import WAIT_TIMEOUT_S, wait_until

pytestmark = pytest.mark.cluster

SELECTOR = f"{WORKLOAD_LABEL}=shop"
OTHER_IMAGE = "busybox:other"
SIDECAR = {
    "image": IMAGE,
    "command": ["sh", "-c", "trap exit TERM; sleep 1000 & wait"],
    "securityContext": {"runAsUser": 1000},
}
SHOP = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: shop}}
spec:
  image: {IMAGE}
  command: [sh, -c, 'trap exit TERM; httpd -f -p $PORT -h /etc/configuration & wait']
  configuration: {{index.html: hello}}
  port: 8080
  replicas: 2
  template: {TEMPLATE}
"""


@pytest.fixture
async def runtimes(client: Client) -> AsyncIterator[tuple[str, str]]:
    """Two runtimes that differ in the name of a sidecar, so that no pod can be updated in place."""
    both = ("17", "18")
    for number in both:
        part = {"metadata": {"name": f"notes-{number}"}, "spec": {"sidecars": [{**SIDECAR, "name": f"notes-{number}"}]}}
        await client.apply(part, CUSTOM_RESOURCES["PinterestSidecar"], manager=ENGINE)
        runtime = {"metadata": {"name": number}, "spec": {"parts": [f"notes-{number}"]}}
        await client.apply(runtime, CUSTOM_RESOURCES["Runtime"], manager=ENGINE)
    yield both
    for number in reversed(both):
        await client.delete(CUSTOM_RESOURCES["Runtime"], number)
        await client.delete(CUSTOM_RESOURCES["PinterestSidecar"], f"notes-{number}")


@pytest.fixture
async def user(real_platform: Platform, tmp_path: Path) -> AsyncIterator[CliUser]:
    user = CliUser(real_platform, tmp_path)
    await deploy_shop(user, SHOP)
    yield user
    await user.pin("delete", "shop")


def eviction(name: str) -> bytes:
    return json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}).encode()


async def deploy_shop(user: CliUser, text: str, *words: str) -> str:
    (user.folder / "shop.yaml").write_text(text)
    return await user.pin("deploy", "shop.yaml", *words)


async def ready_pod_names(client: Client) -> list[str]:
    return [
        each["metadata"]["name"] for each in (await client.list(PODS, "me", labels=SELECTOR)).items if is_ready(each)
    ]


def is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def has_restarted_once(pod: Object) -> bool:
    return is_ready(pod) and pod["status"]["containerStatuses"][0]["restartCount"] == 1


def allows_disruption(budget: Object) -> bool:
    """Whether the disruption controller allows an eviction, which it computes some time after a replica is ready."""
    return budget.get("status", {}).get("disruptionsAllowed", 0) > 0


async def wait_for_two_other_pods(client: Client, name: str) -> None:
    """Wait until two other pods are ready."""
    async with asyncio.timeout(WAIT_TIMEOUT_S), aclosing(client.watch(PODS, "me", labels=SELECTOR)) as events:
        others = {name}
        async for event in events:
            if is_ready(event.object):
                others.add(event.object["metadata"]["name"])
            if len(others) == 3:
                return


async def wait_for_ingress(client: Client, user: CliUser, *names: str) -> None:
    """Wait until the ingress has the addresses of all pods: only then can it retry a failed one with another."""
    places = [(await client.get(PODS, each, "me"))["status"]["podIP"] for each in names]
    configuration = user.platform.home.data / "ingress" / "nginx.conf"
    async with asyncio.timeout(WAIT_TIMEOUT_S):
        while not all(f"server {each}:" in configuration.read_text() for each in places):  # noqa: ASYNC110  (polls a file)
            await asyncio.sleep(0.02)


async def test_no_request_fails_during_edits(client: Client, user: CliUser) -> None:
    write_image(user.folder / "busybox.tar")
    await user.pin("image", "load", "busybox.tar", "--as", OTHER_IMAGE)
    address = (await client.get(SERVICES, "shop", "me"))["spec"]["clusterIP"]
    async with continuous_requests(user, "shop", address) as failed:
        for was, becomes in ((IMAGE, OTHER_IMAGE), ("html: hello", "html: goodbye"), ("port: 8080", "port: 9090")):
            assert "shop@" in await deploy_shop(user, (user.folder / "shop.yaml").read_text().replace(was, becomes))
            assert failed == [], becomes
        await user.wait_body("shop", "goodbye")
        for count in ("4", "2"):
            await user.pin("scale", "shop", count)
        await user.pin("rollback", "shop", "--to", "1")
        await user.wait_body("shop", "hello")
        await user.wait_body("shop", "hello", address)
    assert failed == []


async def test_no_request_fails_when_a_replica_is_lost(client: Client, user: CliUser) -> None:
    async with continuous_requests(user, "shop") as failed:
        for each in await ready_pod_names(client):
            await wait_until(client, POD_DISRUPTION_BUDGETS, "me", allows_disruption, "shop")
            await client.raw("POST", PODS.path("me", each, "eviction"), body=eviction(each))
            await wait_for_two_other_pods(client, each)
            assert failed == [], "evicted"
        first, second = await ready_pod_names(client)
        await wait_for_ingress(client, user, first, second)
        # In the background, so that the exec session ends before the container does.
        await user.pin("kubectl", "exec", "-n", "me", first, "--", "sh", "-c", "(sleep 1; killall -9 httpd) &")
        await wait_until(client, PODS, "me", has_restarted_once, first)
        # A response that has begun cannot be retried.
        failed[:] = [each for each in failed if "not completed" not in each]
        assert failed == [], "its program killed"
        await wait_for_ingress(client, user, first, second)
        await user.pin("kubectl", "delete", "pod", "-n", "me", second, "--force", "--grace-period=0")
        await wait_for_two_other_pods(client, second)
    assert failed == []


async def test_pinned_runtime_is_kept_and_unpinning_fails_no_request(
    client: Client, runtimes: tuple[str, str], user: CliUser
) -> None:
    former, next_ = runtimes
    roll = ("runtime", "roll", "--waves", "100", "--watch", "0")
    async with continuous_requests(user, "shop") as failed:
        await user.pin(*roll, former)
        await deploy_shop(user, f"{SHOP}  hold: {{runtime: {former}, until: 2099-12-31, because: our parser}}\n")
        held = await ready_pod_names(client)
        assert "1 pinned" in await user.pin(*roll, next_)
        assert await ready_pod_names(client) == held
        await deploy_shop(user, SHOP)
        # The command returns when the new pods are ready; the last old pod ends later.
        for each in held:
            await wait_all_gone(client, PODS, "me", fields=f"metadata.name={each}")
    assert failed == []


async def test_no_request_fails_when_operator_is_killed_during_rollout(user: CliUser) -> None:
    parts = {part["name"]: part["pid"] for part in json.loads(await user.pin("status", "-o", "json"))["parts"]}
    async with continuous_requests(user, "shop") as failed:
        await deploy_shop(user, SHOP.replace("html: hello", "html: goodbye"), "--no-wait")
        os.kill(parts["operator"], signal.SIGKILL)
        await user.pin("up")
        await user.pin("wait", "shop")
        await user.wait_body("shop", "goodbye")
    assert failed == []
