"""What is deleted leaves nothing behind, and what is made at once under its name has all that is its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

import msgspec
import pytest

from person import all_gone
from pincompute.api.admission import admit_workload
from pincompute.api.documents import read_one
from pincompute.api.names import ENGINE, HAND, WORKLOAD
from pincompute.api.status import READY
from pincompute.api.workload import Workload
from pincompute.controller.resources import NOUNS
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from pincompute.objects.content import Object
from shared_platform import SharedPlatform
from transcripts import ROOT

pytestmark = pytest.mark.cluster

PROJECT = "leavings"
FILES = ("hello", "job-set", "cron-job", "stateful-set", "daemon", "training-job")
PASSING = ("events", "leases")
"""What tells of something for a while, and then ends by itself."""
PATIENCE = 180.0
LASTING = (DEPLOYMENTS, SERVICES, INGRESSES, SERVICE_ACCOUNTS, DISRUPTION_BUDGETS)
SERVICE = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: {name}}}
spec: {{image: "{image}", port: 8080, configuration: {{image: "{image}"}}}}
"""


class Place(NamedTuple):
    """A project of this file's own, and everything in it."""

    client: Client
    workloads: Workloads
    resources: tuple[Resource, ...]

    async def write(self, name: str, image: str) -> str:
        """Which of that name it is."""
        return (await self.workloads.write(admitted(SERVICE.format(name=name, image=image)), manager=HAND)).uid

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
        summary = await self.workloads.get(PROJECT, name)
        return summary.uid == uid and summary.done

    async def all_answer(self, names: Sequence[str]) -> bool:
        done = {each.name for each in await self.workloads.all(PROJECT) if each.done}
        return done >= set(names)

    async def which(self) -> dict[str, str]:
        """What every workload has once for all, by its uid."""
        return {
            f"{resource.plural}/{each['metadata']['name']}": each["metadata"]["uid"]
            for resource in LASTING
            for each in (await self.client.list(resource, PROJECT)).items
        }

    async def of(self, resource: Resource, name: str) -> list[Object]:
        return (await self.client.list(resource, PROJECT, labels=f"{WORKLOAD}={name}")).items


@pytest.fixture
async def place(platform: SharedPlatform) -> AsyncIterator[Place]:
    async with Client(load(platform.kubeconfig), agent="tests") as client:
        quota: Object = {"infrastructure": {}, "on-demand": {}}
        spec: Object = {"owner": "infra", "review": "open", "quota": quota}
        await client.apply({"metadata": {"name": PROJECT}, "spec": spec}, NOUNS["Project"], manager=ENGINE)
        await until(lambda: is_ready(client))
        # What Kubernetes puts into every namespace comes when it comes.
        for resource, name in ((SERVICE_ACCOUNTS, "default"), (CONFIG_MAPS, "kube-root-ca.crt")):
            await until(lambda resource=resource, name=name: is_there(client, resource, name))
        yield Place(client, Workloads(client), await namespaced(client))
        # The platform is others' as well.
        await client.delete(NOUNS["Project"], PROJECT)
        async with asyncio.timeout(PATIENCE):
            await all_gone(client, NAMESPACES, "", fields=f"metadata.name={PROJECT}")


async def test_deleting_leaves_nothing_behind(place: Place) -> None:
    before = await place.found()
    workloads = [admitted((ROOT / "examples" / f"{each}.yaml").read_text()) for each in FILES]
    written = [await place.workloads.write(each, manager=HAND) for each in workloads]
    for each in written:
        if each.goal == READY:
            await until(lambda each=each: place.answering(each.name, each.uid))
    during = await place.found()
    for each in written:
        await place.workloads.delete(PROJECT, each.name)
    # Claims outlive what used them.
    kept = {each for each in during if each.startswith("persistentvolumeclaims/")}
    assert len(during - before) > 3 * len(FILES)
    await until(lambda: place.has_left(before | kept))


async def test_made_anew_at_once_it_has_all_that_is_its_own(place: Place) -> None:
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


async def test_there_and_back_again_loses_nothing(place: Place) -> None:
    before = await place.found()
    names = [f"back-{number}" for number in range(10)]
    uids: list[str] = []
    for each in ("hello:a", "hello:b", "hello:a"):
        uids = await asyncio.gather(*(place.write(name, each) for name in names))
    for name, uid in zip(names, uids, strict=True):
        await until(lambda name=name, uid=uid: place.answering(name, uid))
        (deployment,) = await place.of(DEPLOYMENTS, name)
        assert image(deployment) == "hello:a"
        # Its files are of the same revision as its program.
        volume = deployment["spec"]["template"]["spec"]["volumes"][0]["configMap"]["name"]
        assert (await place.client.get(CONFIG_MAPS, volume, PROJECT))["data"] == {"image": "hello:a"}
        await place.workloads.delete(PROJECT, name)
    await until(lambda: place.has_left(before))


async def test_killed_in_the_midst_of_a_rollout_of_50_all_converge(place: Place, platform: SharedPlatform) -> None:
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
    # However quick it was, these are left.
    await asyncio.gather(*(place.write(name, "hello:b") for name in names[-5:]))
    deployments = (await place.client.list(DEPLOYMENTS, PROJECT)).items
    assert {image(each) for each in deployments} == {"hello:a", "hello:b"}, "it was not in the midst of it"
    await asyncio.to_thread(platform.pin, "up")
    await until(lambda: place.all_answer(names))
    # The very same natives as before, none twice and none anew; and of each one set of copies.
    assert await place.which() == before
    deployments = (await place.client.list(DEPLOYMENTS, PROJECT)).items
    assert [image(each) for each in deployments] == ["hello:b"] * len(names)
    for name in names:
        await place.workloads.delete(PROJECT, name)


def admitted(text: str) -> Workload:
    return admit_workload(read_one(text.replace("project: infrastructure", f"project: {PROJECT}")), PROJECT)


def image(deployment: Object) -> str:
    found: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return found


async def is_ready(client: Client) -> bool:
    project = await client.get(NOUNS["Project"], PROJECT)
    return any(each["status"] == "True" for each in project.get("status", {}).get("conditions", ()))


async def is_there(client: Client, resource: Resource, name: str) -> bool:
    return bool((await client.list(resource, PROJECT, fields=f"metadata.name={name}")).items)


async def namespaced(client: Client) -> tuple[Resource, ...]:
    """Every kind of which there can be something in a project, as the server itself lists them."""
    served = {"/api/v1": ("", "v1")}
    for each in (await discovered(client, "/apis"))["groups"]:
        version = each["preferredVersion"]["version"]
        served[f"/apis/{each['name']}/{version}"] = (each["name"], version)
    found: list[Resource] = []
    for path, of in served.items():
        kinds = (await discovered(client, path))["resources"]
        listed = [each for each in kinds if each["namespaced"] and "list" in each["verbs"]]
        found += [Resource(*of, each["name"], each["kind"]) for each in listed if each["name"] not in PASSING]
    return tuple(found)


async def discovered(client: Client, path: str) -> Object:
    answer: Object = msgspec.json.decode(await client.raw("GET", path))
    return answer


async def until(question: Callable[[], Awaitable[object]]) -> None:
    """Ask until the answer is yes: of so many kinds at once there is nothing to be told by."""
    async with asyncio.timeout(PATIENCE):
        while not await question():  # noqa: ASYNC110
            await asyncio.sleep(0.2)
