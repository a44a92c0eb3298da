"""The platform on a cluster that exists: installed, changed, taken off, taken up again, removed to the last object."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import pytest

from afar import CREDENTIALS, Program, lead, mirrored, served
from bare_platform import NEXT, Entrance
from desks import World
from landed import ANN, BEN, Story
from person import Person, all_gone
from pincompute.api.names import DESK, INSTALLED, LOG_SHIPPER, LOG_STORE, NODES, OPERATOR, SIGNER, SYSTEM, WORKLOAD
from pincompute.controller.resources import NOUNS
from pincompute.engine.installation.contents import ORDER, Words, contents
from pincompute.engine.installation.install import write
from pincompute.engine.nodes import kubelet
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import (
    CRDS,
    DEPLOYMENTS,
    NAMESPACES,
    POD_CERTIFICATES,
    PODS,
    TRUST_BUNDLES,
    Object,
    Resource,
)
from real_platform import PATIENCE, until
from rights import audited
from signing import trusted
from transcripts import ROOT

pytestmark = pytest.mark.cluster

ACCOUNTS = tuple(
    f"system:serviceaccount:{namespace}:{name}"
    for namespace, name in (
        (SYSTEM, OPERATOR), (SYSTEM, DESK), (SYSTEM, SIGNER), (SYSTEM, LOG_STORE), (NODES, LOG_SHIPPER)
    )
)  # fmt: skip
PROJECT = "landed-there"
SHOP = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: shop}
spec: {image: "shop:1", port: 8080}
"""


async def test_a_cluster_gets_the_platform_and_loses_it_again_and_what_runs_never_notices(
    bare_platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, program = Person(bare_platform, tmp_path), Program(bare_platform, tmp_path)
    entrance = Entrance.of(bare_platform, tmp_path)
    given = ("--desk-certificate", str(entrance.certificate), "--desk-key", str(entrance.key))
    where = ("--kubeconfig", str(bare_platform.home.kubeconfig))
    domain = f"localhost:{bare_platform.ports['http']}"
    async with (
        Client(load(bare_platform.home.kubeconfig), agent="tests") as client,
        served(bare_platform.address, git=tmp_path, artifacts=bare_platform.home.data / "artifacts") as files,
    ):
        desk = ("--desk", entrance.address, "--desk-word", f"artifacts={files}/artifacts")
        assert "NotInstalled" in await person.pin("uninstall", *where, code=1)
        await _operator_alone(client, domain)
        assert f"needs the Secret {DESK}" in await person.pin("install", *where, *desk, code=1)
        await _what_the_desk_shows(person, urlsplit(files).netloc)
        said = await person.pin(
            "install", *where, "--pod-logs", str(kubelet.logs(bare_platform)), "--runtime", *desk, *given
        )
        assert f"{SIGNER}, {DESK}, {LOG_STORE}, {LOG_SHIPPER} run after" in said
        assert "removed" not in said.replace("0 removed", "")
        await person.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:test", "--as", "shop:1")
        await lead(client, entrance)
        story = Story(World(cast("Any", None), cast("Any", None), client, PROJECT), tmp_path)
        await _what_landed_comes_in(program, story, entrance, files, monkeypatch)
        await person.pin("deploy", "hello", "--image", "hello:test", "--port", "8080", *where)
        before = await _pods(client)
        async with _asked_all_the_time(person) as answers:
            for name in await _names(client, PODS, SYSTEM, OPERATOR):
                await client.delete(PODS, name, SYSTEM)
            # The same words once more, and the image of another version.
            said = await person.pin("install", *where, "--image", NEXT)
            assert "0 objects made" in said
            assert domain in said, "what was not said stays"
            assert refused(bare_platform) == []
            # What cannot be pulled is told, and the operator that was there goes on.
            working = await _names(client, PODS, SYSTEM, DESK)
            said = await person.pin("install", *where, "--image", "pincompute:nowhere", code=1)
            assert "ImagePullBackOff" in said
            assert await _names(client, PODS, SYSTEM, DESK) == working, "and so does the desk"
            await until(client, DEPLOYMENTS, SYSTEM, _has_two, OPERATOR)
            assert "2 workloads running as before" in await person.pin("uninstall", *where)
            assert await _pods(client) == before
            assert await _names(client, DEPLOYMENTS, SYSTEM) == [SIGNER], "what its pods need stays"
            both = await _another_copy_gets_a_certificate(client, before)
            assert "takes up what" in await person.pin("install", *where, *desk)
            await lead(client, entrance)
            assert _links(await program.pin("provenance", "shop", "-p", PROJECT)) == HELD, "its record is what it was"
            await person.pin("wait", "hello", *where)
            assert await _pods(client) <= both, "which of them goes is for Kubernetes, and none is made anew"
        assert set(answers) == {200}
        await person.pin("scale", "hello", "3", *where)
        assert len(await _pods(client)) > 2, "who was taken up is looked after as before"
        await person.pin("delete", "hello", *where)
        await _lines_outlive_their_pods(person, client, *where)
        await person.pin("uninstall", *where, "--workloads")
        assert not {SYSTEM, NODES, PROJECT, "me"} & set(await _names(client, NAMESPACES))
        assert [name for name in await _names(client, CRDS) if "pinterest" in name] == []
        left = [(await client.list(each, labels=INSTALLED)).items for each in (*ORDER, TRUST_BUNDLES)]
        assert [each for several in left for each in several] == []


async def _operator_alone(client: Client, domain: str) -> None:
    """As an older version installed it; who comes then brings the rest."""
    host, _, port = domain.partition(":")
    await write(client, contents(Words(name="bare", domain=host, port=int(port), support=False)))


async def _what_the_desk_shows(person: Person, host: str) -> None:
    said = [f"--from-literal={name}={value.replace('HOST', host)}" for name, value in CREDENTIALS.items()]
    await person.pin("kubectl", "create", "secret", "generic", f"{DESK}-credentials", "-n", SYSTEM, *said)


async def _what_landed_comes_in(
    program: Program, story: Story, entrance: Entrance, files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project that takes nothing else; whoever asks has nothing of the cluster."""
    person = Person(program.platform, program.folder)
    landing = {"repository": f"{files}/git/shop.git", "builders": trusted("ci"), "people": trusted(ANN, BEN)}
    slip = {"name": "often", "rule": "workload.spec.often", "message": "often", "kinds": ["PinterestCronJob"]}
    await story.trust(landing=landing, members={"deployer": {"programs": ["ci"]}}, policies=[slip])
    await person.pin("kubectl", "wait", "--for=condition=Ready", f"project/{PROJECT}")
    # The operator reads rules as the desk does, and nobody has asked the desk.
    await until(story.here.client, NOUNS["Project"], "", _told_of_its_rule, PROJECT)
    await person.pin("kubectl", "create", "serviceaccount", "ci", "-n", PROJECT)
    shown = await person.pin("kubectl", "create", "token", "ci", "-n", PROJECT, "--audience", DESK)
    (program.folder / "token").write_text(shown)
    assert f"program {PROJECT}/ci" in await program.pin("login", entrance.address, "--trust", str(entrance.authority))
    story.commit(SHOP)
    await story.review(BEN, monkeypatch)
    mirrored(story.shop)
    await person.pin(
        "publish", str(story.shop / "shop.yaml"), "--key", str(story.keys / "ci"), "--builder", "ci",
        "--project", PROJECT, "--version", "1.0",
    )  # fmt: skip
    assert "OnlyLanded" in await program.pin("deploy", str(story.shop / "shop.yaml"), "-p", PROJECT, code=1)
    assert "shop@1" in await program.pin("deploy", "shop", "--version", "1.0", "-p", PROJECT)
    assert _links(await program.pin("provenance", "shop", "-p", PROJECT)) == HELD


def _told_of_its_rule(project: Object) -> bool:
    return any(each["reason"] == "PolicyUnclear" for each in project.get("status", {}).get("conditions", ()))


HELD = dict.fromkeys(("commit", "reviewed", "file", "built", "published", "submission", "revision", "copies"), "ok")


def _links(said: str) -> dict[str, str]:
    return {link: word for word, link in re.findall(r"^  (ok|NO)  (\w+)", said, re.MULTILINE)}


async def _another_copy_gets_a_certificate(client: Client, before: set[str]) -> set[str]:
    """While nobody but Kubernetes looks after the workload; all the copies that there are by now."""
    await client.patch(DEPLOYMENTS, "hello", "me", {"spec": {"replicas": 2}}, style="merge", manager="tests")
    await until(client, DEPLOYMENTS, "me", _has_two, "hello")
    both = await _pods(client)
    requests = (await client.list(POD_CERTIFICATES, "me")).items
    issued = {each["spec"]["podUID"] for each in requests if "certificateChain" in each.get("status", {})}
    assert {each.partition(" ")[0] for each in both - before} <= issued
    return both


async def _lines_outlive_their_pods(person: Person, client: Client, *where: str) -> None:
    """They are on their way while a pod runs, and whoever asks may be faster."""
    async with asyncio.timeout(2 * PATIENCE):
        await all_gone(client, PODS, "me", labels=f"{WORKLOAD}=hello")
        said = ""
        while "was deleted" not in said or "listening on port 8080" not in said:
            said = await person.pin("logs", "hello", *where)


def _has_two(deployment: Object) -> bool:
    return bool(deployment.get("status", {}).get("availableReplicas") == 2)


def refused(platform: Platform) -> list[str]:
    return [
        f"{event['verb']} {event['objectRef']}"
        for event in audited(platform, ACCOUNTS)
        if event.get("responseStatus", {}).get("code") == 403
    ]


@asynccontextmanager
async def _asked_all_the_time(person: Person) -> AsyncGenerator[list[int]]:
    answers: list[int] = []
    await person.is_answered("hello")

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


async def _names(client: Client, resource: Resource, namespace: str = "", of: str = "") -> list[str]:
    labels = f"app.kubernetes.io/name={of}" if of else ""
    return [each["metadata"]["name"] for each in (await client.list(resource, namespace, labels=labels)).items]
