"""Deletion leaves no objects behind, and a workload recreated under the same name gets its own objects."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

import msgspec
import pytest

from cli_user import wait_all_gone
from pincompute.api.documents import read_document
from pincompute.api.names import CLI_MANAGER, ENGINE, WORKLOAD_LABEL
from pincompute.api.status import READY
from pincompute.api.validation import parse_workload
from pincompute.api.workload import Workload
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    INGRESSES,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from pincompute.objects.content import Object
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from shared_platform import SharedPlatform
from transcripts import ROOT

pytestmark = pytest.mark.cluster

PROJECT = "leavings"
FILES = ("hello", "job-set", "cron-job", "stateful-set", "daemon", "training-job")
EXPIRING = ("events", "leases")
"""Kinds of objects that expire on their own."""
TIMEOUT_S = 180.0
PERMANENT_KINDS = (DEPLOYMENTS, SERVICES, INGRESSES, SERVICE_ACCOUNTS, POD_DISRUPTION_BUDGETS)
SERVICE = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: {name}}}
spec: {{image: "{image}", port: 8080, configuration: {{image: "{image}"}}}}
"""


class Place(NamedTuple):
    """A project for the tests of this file."""

    client: Client
    workloads: WorkloadClient
    resources: tuple[Resource, ...]

    async def write(self, name: str, image: str) -> str:
        """Write a workload; return its uid."""
        return (await self.workloads.write(admitted(SERVICE.format(name=name, image=image)), manager=CLI_MANAGER)).uid

    async def found(self) -> set[str]:
        listings = await asyncio.gather(*(self.client.list(each, PROJECT) for each in self.resources))
        return {
            f"{resource.plural}/{each['metadata']['name']}"
            for resource, listing in zip(self.resources, listings, strict=True)
            for each in listing.items
        }

    async def has_left(self, those: set[str]) -> bool:
        return await self.found() == those

    async def answering(self, name: str, uid: str) -> bool:
        summary = await self.workloads.get_summary(PROJECT, name)
        return summary.uid == uid and summary.done

    async def all_answer(self, names: Sequence[str]) -> bool:
        done = {each.name for each in await self.workloads.list_summaries(PROJECT) if each.done}
        return done >= set(names)

    async def which(self) -> dict[str, str]:
        """Uids of objects that a workload keeps for its whole life."""
        return {
            f"{resource.plural}/{each['metadata']['name']}": each["metadata"]["uid"]
            for resource in PERMANENT_KINDS
            for each in (await self.client.list(resource, PROJECT)).items
        }

    async def of(self, resource: Resource, name: str) -> list[Object]:
        return (await self.client.list(resource, PROJECT, labels=f"{WORKLOAD_LABEL}={name}")).items


@pytest.fixture
async def place(platform: SharedPlatform) -> AsyncIterator[Place]:
    async with Client(load_kubeconfig(platform.kubeconfig), agent="tests") as client:
        quota: Object = {"infrastructure": {}, "on-demand": {}}
        spec: Object = {"owner": "infra", "review": "open", "quota": quota}
        await client.apply({"metadata": {"name": PROJECT}, "spec": spec}, CUSTOM_RESOURCES["Project"], manager=ENGINE)
        await until(lambda: is_ready(client))
        # Kubernetes creates these in every namespace with a delay.
        for resource, name in ((SERVICE_ACCOUNTS, "default"), (CONFIG_MAPS, "kube-root-ca.crt")):
            await until(lambda resource=resource, name=name: is_there(client, resource, name))
        yield Place(client, WorkloadClient(client), await namespaced(client))
        # The platform is shared with other tests.
        await client.delete(CUSTOM_RESOURCES["Project"], PROJECT)
        async with asyncio.timeout(TIMEOUT_S):
            await wait_all_gone(client, NAMESPACES, "", fields=f"metadata.name={PROJECT}")


async def test_deletion_leaves_no_objects(place: Place) -> None:
    before = await place.found()
    workloads = [admitted((ROOT / "examples" / f"{each}.yaml").read_text()) for each in FILES]
    written = [await place.workloads.write(each, manager=CLI_MANAGER) for each in workloads]
    for each in written:
        if each.goal == READY:
            await until(lambda each=each: place.answering(each.name, each.uid))
    during = await place.found()
    for each in written:
        await place.workloads.delete(PROJECT, each.name)
    # Claims survive the deletion of their workload.
    kept = {each for each in during if each.startswith("persistentvolumeclaims/")}
    assert len(during - before) > 3 * len(FILES)
    await until(lambda: place.has_left(before | kept))


async def test_recreated_workload_has_its_own_objects(place: Place) -> None:
    before = await place.found()
    for number in range(3):
        await place.write("anew", f"hello:{number}")
        await place.workloads.delete(PROJECT, "anew")
    uid = await place.write("anew", "hello:again")
    await until(lambda: place.answering("anew", uid))
    (deployment,) = await place.of(DEPLOYMENTS, "anew")
    assert [each["uid"] for each in deployment["metadata"]["ownerReferences"]] == [uid]
    assert image(deployment) == "hello:again"
    await place.workloads.delete(PROJECT, "anew")
    await until(lambda: place.has_left(before))


async def test_change_and_revert_keeps_consistent_objects(place: Place) -> None:
    before = await place.found()
    names = [f"back-{number}" for number in range(10)]
    uids: list[str] = []
    for each in ("hello:a", "hello:b", "hello:a"):
        uids = await asyncio.gather(*(place.write(name, each) for name in names))
    for name, uid in zip(names, uids, strict=True):
        await until(lambda name=name, uid=uid: place.answering(name, uid))
        (deployment,) = await place.of(DEPLOYMENTS, name)
        assert image(deployment) == "hello:a"
        # The ConfigMap belongs to the same revision as the image.
        volume = deployment["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
        assert (await place.client.get(CONFIG_MAPS, volume, PROJECT))["data"] == {"image": "hello:a"}
        await place.workloads.delete(PROJECT, name)
    await until(lambda: place.has_left(before))


async def test_operator_killed_during_50_rollouts_converges(place: Place, platform: SharedPlatform) -> None:
    names = [f"many-{number}" for number in range(50)]
    operator = platform.pids()["operator"]
    await asyncio.gather(*(place.write(name, "hello:a") for name in names))
    await until(lambda: place.all_answer(names))
    before = await place.which()
    changes = place.client.watch(DEPLOYMENTS, PROJECT)
    async with aclosing(changes) as events:
        writing = asyncio.gather(*(place.write(name, "hello:b") for name in names[:-5]))
        changed: set[str] = set()
        async for event in events:
            if image(event.object) == "hello:b":
                changed.add(event.object["metadata"]["name"])
            if len(changed) == 5:
                os.kill(operator, signal.SIGKILL)
                break
        await writing
    # These are written after the kill, so that the rollout cannot be complete.
    await asyncio.gather(*(place.write(name, "hello:b") for name in names[-5:]))
    deployments = (await place.client.list(DEPLOYMENTS, PROJECT)).items
    assert {image(each) for each in deployments} == {"hello:a", "hello:b"}, "the operator was killed after the rollout"
    await asyncio.to_thread(platform.pin, "up")
    await until(lambda: place.all_answer(names))
    # The same objects as before: none was duplicated or recreated.
    assert await place.which() == before
    deployments = (await place.client.list(DEPLOYMENTS, PROJECT)).items
    assert [image(each) for each in deployments] == ["hello:b"] * len(names)
    for name in names:
        await place.workloads.delete(PROJECT, name)


def admitted(text: str) -> Workload:
    return parse_workload(read_document(text.replace("project: infrastructure", f"project: {PROJECT}")), PROJECT)


def image(deployment: Object) -> str:
    found: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return found


async def is_ready(client: Client) -> bool:
    project = await client.get(CUSTOM_RESOURCES["Project"], PROJECT)
    return any(each["status"] == "True" for each in project.get("status", {}).get("conditions", ()))


async def is_there(client: Client, resource: Resource, name: str) -> bool:
    return bool((await client.list(resource, PROJECT, fields=f"metadata.name={name}")).items)


async def namespaced(client: Client) -> tuple[Resource, ...]:
    """All namespaced kinds that the API server can list, from its discovery."""
    served = {"/api/v1": ("", "v1")}
    for each in (await discovered(client, "/apis"))["groups"]:
        version = each["preferredVersion"]["version"]
        served[f"/apis/{each['name']}/{version}"] = (each["name"], version)
    found: list[Resource] = []
    for path, of in served.items():
        kinds = (await discovered(client, path))["resources"]
        listed = [each for each in kinds if each["namespaced"] and "list" in each["verbs"]]
        found += [Resource(*of, each["name"], each["kind"]) for each in listed if each["name"] not in EXPIRING]
    return tuple(found)


async def discovered(client: Client, path: str) -> Object:
    answer: Object = msgspec.json.decode(await client.raw("GET", path))
    return answer


async def until(question: Callable[[], Awaitable[object]]) -> None:
    """Poll until the condition is true: it concerns too many kinds for watches."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await question():  # noqa: ASYNC110
            await asyncio.sleep(0.2)
