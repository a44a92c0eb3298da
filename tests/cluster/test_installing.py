"""The platform on a cluster that exists: installed, changed, taken off, taken up again, removed to the last object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from bare_platform import NEXT
from person import Person
from pincompute.api.names import INSTALLED, OPERATOR, SYSTEM
from pincompute.engine.installation.contents import ORDER
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import CRDS, DEPLOYMENTS, NAMESPACES, PODS, Resource
from real_platform import until
from rights import audited
from transcripts import ROOT

pytestmark = pytest.mark.cluster

ACCOUNT = f"system:serviceaccount:{SYSTEM}:{OPERATOR}"


async def test_a_cluster_gets_the_platform_and_loses_it_again_and_what_runs_never_notices(
    bare_platform: Platform, tmp_path: Path
) -> None:
    person = Person(bare_platform, tmp_path)
    where = ("--kubeconfig", str(bare_platform.home.kubeconfig))
    domain = ("--domain", f"localhost:{bare_platform.ports['http']}")
    async with Client(load(bare_platform.home.kubeconfig), agent="tests") as client:
        assert "NotInstalled" in await person.pin("uninstall", *where, code=1)
        assert "leads after" in await person.pin("install", *where, *domain)
        await person.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:test")
        await person.pin("deploy", "hello", "--image", "hello:test", "--port", "8080", *where)
        before = await _pods(client)
        async with _asked_all_the_time(person) as answers:
            for name in await _operators(client):
                await client.delete(PODS, name, SYSTEM)
            # The same words once more, and the image of another version.
            said = await person.pin("install", *where, "--image", NEXT)
            assert "0 objects made" in said
            assert f"localhost:{bare_platform.ports['http']}" in said, "what was not said stays"
            assert refused(bare_platform) == []
            # What cannot be pulled is told, and the operator that was there goes on.
            said = await person.pin("install", *where, "--image", "pincompute:nowhere", code=1)
            assert "ImagePullBackOff" in said
            await until(client, DEPLOYMENTS, SYSTEM, lambda seen: seen["status"]["availableReplicas"] == 2, OPERATOR)
            assert "1 workload running as before" in await person.pin("uninstall", *where)
            assert SYSTEM not in await _names(client, NAMESPACES)
            assert await _pods(client) == before
            assert "takes up what" in await person.pin("install", *where, *domain)
            await person.pin("wait", "hello", *where)
            assert await _pods(client) == before
        assert set(answers) == {200}
        await person.pin("scale", "hello", "2", *where)
        assert before < await _pods(client), "who was taken up is looked after as before"
        await person.pin("uninstall", *where, "--workloads")
        assert not {SYSTEM, "me"} & set(await _names(client, NAMESPACES))
        assert [name for name in await _names(client, CRDS) if "pinterest" in name] == []
        left = [(await client.list(each, labels=INSTALLED)).items for each in ORDER]
        assert [each for several in left for each in several] == []


def refused(platform: Platform) -> list[str]:
    return [
        f"{event['verb']} {event['objectRef']}"
        for event in audited(platform, (ACCOUNT,))
        if event.get("responseStatus", {}).get("code") == 403
    ]


@asynccontextmanager
async def _asked_all_the_time(person: Person) -> AsyncGenerator[list[int]]:
    answers: list[int] = []

    async def ask() -> None:
        while True:
            try:
                answers.append((await person.ask("hello"))[0])
            except aiohttp.ClientError:
                answers.append(0)

    asking = asyncio.create_task(ask())
    try:
        yield answers
    finally:
        asking.cancel()
        await asyncio.wait({asking})


async def _pods(client: Client) -> set[str]:
    """Each by what it never shares with a successor, and how often it was started anew."""
    pods = (await client.list(PODS, "me")).items
    return {
        f"{each['metadata']['uid']} {one['restartCount']}"
        for each in pods
        for one in each["status"]["containerStatuses"]
    }


async def _operators(client: Client) -> list[str]:
    return [each["metadata"]["name"] for each in (await client.list(PODS, SYSTEM)).items]


async def _names(client: Client, resource: Resource) -> list[str]:
    return [each["metadata"]["name"] for each in (await client.list(resource)).items]
