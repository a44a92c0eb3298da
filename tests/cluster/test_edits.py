"""Every edit of a service, and every way to lose a copy of it, while somebody asks it without pause."""

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
from person import Person, all_gone, asking
from pincompute.api.names import ENGINE, WORKLOAD
from pincompute.controller.resources import NOUNS
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import DISRUPTION_BUDGETS, PODS, SERVICES, Object
from real_platform import PATIENCE, until

pytestmark = pytest.mark.cluster

COPIES = f"{WORKLOAD}=shop"
OTHER = "busybox:other"
BESIDE = {
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
    """Two that differ in the name of a sidecar, so that nothing can be done in place; gone after the workload."""
    both = ("17", "18")
    for number in both:
        part = {"metadata": {"name": f"notes-{number}"}, "spec": {"sidecars": [{**BESIDE, "name": f"notes-{number}"}]}}
        await client.apply(part, NOUNS["PinterestSidecar"], manager=ENGINE)
        runtime = {"metadata": {"name": number}, "spec": {"parts": [f"notes-{number}"]}}
        await client.apply(runtime, NOUNS["Runtime"], manager=ENGINE)
    yield both
    for number in reversed(both):
        await client.delete(NOUNS["Runtime"], number)
        await client.delete(NOUNS["PinterestSidecar"], f"notes-{number}")


@pytest.fixture
async def person(real_platform: Platform, tmp_path: Path) -> AsyncIterator[Person]:
    person = Person(real_platform, tmp_path)
    await deploy(person, SHOP)
    yield person
    await person.pin("delete", "shop")


def eviction(name: str) -> bytes:
    return json.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}).encode()


async def deploy(person: Person, text: str, *words: str) -> str:
    (person.folder / "shop.yaml").write_text(text)
    return await person.pin("deploy", "shop.yaml", *words)


async def copies(client: Client) -> list[str]:
    return [each["metadata"]["name"] for each in (await client.list(PODS, "me", labels=COPIES)).items if answers(each)]


def answers(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def started_again(pod: Object) -> bool:
    return answers(pod) and pod["status"]["containerStatuses"][0]["restartCount"] == 1


def spares_one(budget: Object) -> bool:
    """As its controller has counted, which is some time after a copy answers."""
    return budget.get("status", {}).get("disruptionsAllowed", 0) > 0


async def replaced(client: Client, name: str) -> None:
    """Return when two others answer."""
    async with asyncio.timeout(PATIENCE), aclosing(client.watch(PODS, "me", labels=COPIES)) as events:
        others = {name}
        async for event in events:
            if answers(event.object):
                others.add(event.object["metadata"]["name"])
            if len(others) == 3:
                return


async def known(client: Client, person: Person, *names: str) -> None:
    """Return when the ingress has been told where each of them is: no sooner can it ask another for one that died."""
    places = [(await client.get(PODS, each, "me"))["status"]["podIP"] for each in names]
    told = person.platform.home.data / "ingress" / "nginx.conf"
    async with asyncio.timeout(PATIENCE):
        while not all(f"server {each}:" in told.read_text() for each in places):  # noqa: ASYNC110  (it is a file)
            await asyncio.sleep(0.02)


async def test_no_edit_fails_a_request(client: Client, person: Person) -> None:
    write_image(person.folder / "busybox.tar")
    await person.pin("image", "load", "busybox.tar", "--as", OTHER)
    address = (await client.get(SERVICES, "shop", "me"))["spec"]["clusterIP"]
    async with asking(person, "shop", address) as failed:
        for was, becomes in ((IMAGE, OTHER), ("html: hello", "html: goodbye"), ("port: 8080", "port: 9090")):
            assert "shop@" in await deploy(person, (person.folder / "shop.yaml").read_text().replace(was, becomes))
            assert failed == [], becomes
        await person.hears("shop", "goodbye")
        for count in ("4", "2"):
            await person.pin("scale", "shop", count)
        await person.pin("rollback", "shop", "--to", "1")
        await person.hears("shop", "hello")
        await person.hears("shop", "hello", address)
    assert failed == []


async def test_no_lost_copy_fails_a_request(client: Client, person: Person) -> None:
    async with asking(person, "shop") as failed:
        for each in await copies(client):
            await until(client, DISRUPTION_BUDGETS, "me", spares_one, "shop")
            await client.raw("POST", PODS.path("me", each, "eviction"), body=eviction(each))
            await replaced(client, each)
            assert failed == [], "evicted"
        first, second = await copies(client)
        await known(client, person, first, second)
        # Whoever types it must be gone before it: everything in the container ends with its program.
        await person.pin("kubectl", "exec", "-n", "me", first, "--", "sh", "-c", "(sleep 1; killall -9 httpd) &")
        await until(client, PODS, "me", started_again, first)
        # An answer that had begun cannot be asked for again.
        failed[:] = [each for each in failed if "not completed" not in each]
        assert failed == [], "its program killed"
        await known(client, person, first, second)
        await person.pin("kubectl", "delete", "pod", "-n", "me", second, "--force", "--grace-period=0")
        await replaced(client, second)
    assert failed == []


async def test_who_holds_a_runtime_is_left_alone_and_letting_go_fails_no_request(
    client: Client, runtimes: tuple[str, str], person: Person
) -> None:
    former, next_ = runtimes
    roll = ("runtime", "roll", "--waves", "100", "--watch", "0")
    async with asking(person, "shop") as failed:
        await person.pin(*roll, former)
        await deploy(person, f"{SHOP}  hold: {{runtime: {former}, until: 2099-12-31, because: our parser}}\n")
        held = await copies(client)
        assert "1 held" in await person.pin(*roll, next_)
        assert await copies(client) == held
        await deploy(person, SHOP)
        # The others answer; the last that was held ends a moment later.
        for each in held:
            await all_gone(client, PODS, "me", fields=f"metadata.name={each}")
    assert failed == []


async def test_an_operator_killed_in_the_midst_of_a_rollout_fails_no_request(person: Person) -> None:
    parts = {part["name"]: part["pid"] for part in json.loads(await person.pin("status", "-o", "json"))["parts"]}
    async with asking(person, "shop") as failed:
        await deploy(person, SHOP.replace("html: hello", "html: goodbye"), "--no-wait")
        os.kill(parts["operator"], signal.SIGKILL)
        await person.pin("up")
        await person.pin("wait", "shop")
        await person.hears("shop", "goodbye")
    assert failed == []
