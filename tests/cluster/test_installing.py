"""The platform on an existing cluster: installed, upgraded, uninstalled, reinstalled, and removed completely."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import pytest

from bare_platform import NEXT_IMAGE, DeskEndpoint
from cli_user import CliUser, wait_all_gone
from desk_fixtures import DeskWorld
from pincompute.api.names import (
    DESK,
    INSTALLED_LABEL,
    LOG_SHIPPER,
    LOG_STORE,
    NODES_NAMESPACE,
    OPERATOR,
    SIGNER,
    SYSTEM_NAMESPACE,
    WORKLOAD_LABEL,
)
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.outbound_credentials import GIT_AUTHORITY_FILE
from pincompute.engine.installation.install import apply_objects
from pincompute.engine.installation.objects import APPLY_ORDER, InstallConfig, platform_objects
from pincompute.engine.nodes import kubelet
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import (
    CLUSTER_TRUST_BUNDLES,
    CRDS,
    DEPLOYMENTS,
    NAMESPACES,
    POD_CERTIFICATE_REQUESTS,
    PODS,
    Object,
    Resource,
)
from rbac_audit import audited_events
from real_platform import WAIT_TIMEOUT_S, wait_until
from remote_client import CREDENTIALS, RemoteProgram, expose_desk, file_server, mirror_for_http
from reviewed_project import ANN, BEN, ReviewedProject
from signed_builds import trusted_keys
from transcripts import ROOT

pytestmark = pytest.mark.cluster

ACCOUNTS = tuple(
    f"system:serviceaccount:{namespace}:{name}"
    for namespace, name in (
        (SYSTEM_NAMESPACE, OPERATOR), (SYSTEM_NAMESPACE, DESK), (SYSTEM_NAMESPACE, SIGNER),
        (SYSTEM_NAMESPACE, LOG_STORE), (NODES_NAMESPACE, LOG_SHIPPER),
    )
)  # fmt: skip
PROJECT = "landed-there"
SHOP = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: shop}
spec: {image: "shop:1", port: 8080}
"""


async def test_install_upgrade_uninstall_without_interrupting_workloads(
    bare_platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, program = CliUser(bare_platform, tmp_path), RemoteProgram(bare_platform, tmp_path)
    entrance = DeskEndpoint.create(bare_platform, tmp_path)
    given = ("--desk-certificate", str(entrance.certificate), "--desk-key", str(entrance.key))
    where = ("--kubeconfig", str(bare_platform.home.kubeconfig))
    domain = f"localhost:{bare_platform.ports['http']}"
    async with (
        Client(load_kubeconfig(bare_platform.home.kubeconfig), agent="tests") as client,
        file_server(bare_platform.address, artifacts=bare_platform.home.data / "artifacts") as files,
        file_server(bare_platform.address, _server_tls(bare_platform), git=tmp_path) as git,
    ):
        desk = ("--desk", entrance.address, "--desk-word", f"artifacts={files}/artifacts")
        assert "NotInstalled" in await person.pin("uninstall", *where, code=1)
        await _operator_alone(client, domain)
        assert f"Secret {DESK} of the desk does not exist" in await person.pin("install", *where, *desk, code=1)
        await _what_the_desk_shows(person, urlsplit(git).netloc)
        output = await person.pin(
            "install", *where, "--pod-logs", str(kubelet.pod_log_folder(bare_platform)), "--runtime", *desk, *given
        )
        assert f"{SIGNER}, {DESK}, {LOG_STORE}, {LOG_SHIPPER} ready after" in output
        assert " deleted: " not in output
        await person.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:test", "--as", "shop:1")
        await expose_desk(client, entrance)
        story = ReviewedProject(DeskWorld(cast("Any", None), cast("Any", None), client, PROJECT), tmp_path)
        await _what_landed_comes_in(program, story, entrance, git, monkeypatch)
        await person.pin("deploy", "hello", "--image", "hello:test", "--port", "8080", *where)
        before = await _pods(client)
        async with _continuous_requests(person) as answers:
            for name in await _names(client, PODS, SYSTEM_NAMESPACE, OPERATOR):
                await client.delete(PODS, name, SYSTEM_NAMESPACE)
            # The same options, with the image of another version.
            output = await person.pin("install", *where, "--image", NEXT_IMAGE)
            assert "0 objects to create" in output
            assert domain in output, "omitted options keep their values"
            assert denied_requests(bare_platform) == []
            # An image that cannot be pulled is reported, and the previous operator keeps running.
            working = await _names(client, PODS, SYSTEM_NAMESPACE, DESK)
            output = await person.pin("install", *where, "--image", "pincompute:nowhere", code=1)
            assert "ImagePullBackOff" in output
            assert await _names(client, PODS, SYSTEM_NAMESPACE, DESK) == working, "the desk keeps running, too"
            await wait_until(client, DEPLOYMENTS, SYSTEM_NAMESPACE, _has_two, OPERATOR)
            assert "2 workloads still running" in await person.pin("uninstall", *where)
            assert await _pods(client) == before
            assert await _names(client, DEPLOYMENTS, SYSTEM_NAMESPACE) == [SIGNER], "the signer stays for running pods"
            both = await _another_copy_gets_a_certificate(client, before)
            assert "managing the workloads of" in await person.pin("install", *where, *desk)
            await expose_desk(client, entrance)
            assert _links(await program.pin("provenance", "shop", "-p", PROJECT)) == HELD, (
                "the desk's database survived"
            )
            await person.pin("wait", "hello", *where)
            assert await _pods(client) <= both, "no pod is recreated; Kubernetes chooses which one is removed"
        assert set(answers) == {200}
        await person.pin("scale", "hello", "3", *where)
        assert len(await _pods(client)) > 2, "the reinstalled operator manages the workload"
        await person.pin("delete", "hello", *where)
        await _lines_outlive_their_pods(person, client, *where)
        await person.pin("uninstall", *where, "--workloads")
        assert not {SYSTEM_NAMESPACE, NODES_NAMESPACE, PROJECT, "me"} & set(await _names(client, NAMESPACES))
        assert [name for name in await _names(client, CRDS) if "pinterest" in name] == []
        left = [
            (await client.list(each, labels=INSTALLED_LABEL)).items for each in (*APPLY_ORDER, CLUSTER_TRUST_BUNDLES)
        ]
        assert [each for several in left for each in several] == []


async def _operator_alone(client: Client, domain: str) -> None:
    """Install the operator only, as an older version did."""
    host, _, port = domain.partition(":")
    await apply_objects(
        client, platform_objects(InstallConfig(name="bare", domain=host, port=int(port), runtime_support=False))
    )


def _server_tls(platform: Platform) -> ssl.SSLContext:
    """A certificate by an authority that only a file of the desk names."""
    platform.authority.issue("git", hosts=(platform.address,))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(platform.authority.certificate("git"), platform.authority.key("git"))
    return tls


async def _what_the_desk_shows(person: CliUser, host: str) -> None:
    output = [f"--from-literal={name}={value.replace('HOST', host)}" for name, value in CREDENTIALS.items()]
    output.append(f"--from-file={GIT_AUTHORITY_FILE}={person.platform.authority.bundle}")
    await person.pin("kubectl", "create", "secret", "generic", f"{DESK}-credentials", "-n", SYSTEM_NAMESPACE, *output)


async def _what_landed_comes_in(
    program: RemoteProgram, story: ReviewedProject, entrance: DeskEndpoint, git: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deploy to a project with `review: landed`, as a client without access to the cluster."""
    person = CliUser(program.platform, program.folder)
    landing = {"repository": f"{git}/git/shop.git", "builders": trusted_keys("ci"), "people": trusted_keys(ANN, BEN)}
    slip = {"name": "often", "rule": "workload.spec.often", "message": "often", "kinds": ["PinterestCronJob"]}
    await story.apply_project(landing=landing, members={"deployer": {"programs": ["ci"]}}, policies=[slip])
    await person.pin("kubectl", "wait", "--for=condition=Ready", f"project/{PROJECT}")
    # The operator evaluates policies, too: the desk has had no request yet.
    await wait_until(story.world.client, CUSTOM_RESOURCES["Project"], "", _told_of_its_rule, PROJECT)
    await person.pin("kubectl", "create", "serviceaccount", "ci", "-n", PROJECT)
    shown = await person.pin("kubectl", "create", "token", "ci", "-n", PROJECT, "--audience", DESK)
    (program.folder / "token").write_text(shown)
    assert f"program {PROJECT}/ci" in await program.pin("login", entrance.address, "--trust", str(entrance.authority))
    story.commit(SHOP)
    await story.review(BEN, monkeypatch)
    mirror_for_http(story.repository)
    await person.pin(
        "publish", str(story.repository / "shop.yaml"), "--key", str(story.keys / "ci"), "--builder", "ci",
        "--project", PROJECT, "--version", "1.0",
    )  # fmt: skip
    assert "OnlyLanded" in await program.pin("deploy", str(story.repository / "shop.yaml"), "-p", PROJECT, code=1)
    assert "shop@1" in await program.pin("deploy", "shop", "--version", "1.0", "-p", PROJECT)
    assert _links(await program.pin("provenance", "shop", "-p", PROJECT)) == HELD


def _told_of_its_rule(project: Object) -> bool:
    return any(each["reason"] == "PolicyInvalid" for each in project.get("status", {}).get("conditions", ()))


HELD = dict.fromkeys(("commit", "reviewed", "file", "built", "published", "submission", "revision", "replicas"), "ok")


def _links(output: str) -> dict[str, str]:
    return {link: word for word, link in re.findall(r"^  (ok|NO)  (\w+)", output, re.MULTILINE)}


async def _another_copy_gets_a_certificate(client: Client, before: set[str]) -> set[str]:
    """Scale the Deployment while no operator runs, and check the new pod's certificate; returns all pods."""
    await client.patch(DEPLOYMENTS, "hello", "me", {"spec": {"replicas": 2}}, style="merge", manager="tests")
    await wait_until(client, DEPLOYMENTS, "me", _has_two, "hello")
    both = await _pods(client)
    requests = (await client.list(POD_CERTIFICATE_REQUESTS, "me")).items
    issued = {each["spec"]["podUID"] for each in requests if "certificateChain" in each.get("status", {})}
    assert {each.partition(" ")[0] for each in both - before} <= issued
    return both


async def _lines_outlive_their_pods(person: CliUser, client: Client, *where: str) -> None:
    """Wait for the last lines: they are shipped asynchronously."""
    await wait_all_gone(client, PODS, "me", labels=f"{WORKLOAD_LABEL}=hello")
    output = ""
    try:
        async with asyncio.timeout(2 * WAIT_TIMEOUT_S):
            while "was deleted" not in output or "listening on port 8080" not in output:
                # All lines: requests would push the first line of a pod out of its last hundred.
                output = await person.pin("logs", "hello", "--tail", "100000", *where)
    except TimeoutError:
        raise AssertionError(f"the last lines of hello did not arrive; pin logs prints\n{output}") from None


def _has_two(deployment: Object) -> bool:
    return bool(deployment.get("status", {}).get("availableReplicas") == 2)


def denied_requests(platform: Platform) -> list[str]:
    return [
        f"{event['verb']} {event['objectRef']}"
        for event in audited_events(platform, ACCOUNTS)
        if event.get("responseStatus", {}).get("code") == 403
    ]


@asynccontextmanager
async def _continuous_requests(person: CliUser) -> AsyncGenerator[list[int]]:
    answers: list[int] = []
    await person.wait_answered("hello")

    async def request_continuously() -> None:
        while True:
            try:
                answers.append((await person.http_get("hello"))[0])
            except aiohttp.ClientError:
                answers.append(0)

    asking = asyncio.create_task(request_continuously())
    try:
        yield answers
    finally:
        asking.cancel()
        await asyncio.wait({asking})


async def _pods(client: Client) -> set[str]:
    """Pods by uid and restart count."""
    pods = (await client.list(PODS, "me")).items
    return {
        f"{each['metadata']['uid']} {one['restartCount']}"
        for each in pods
        for one in each["status"]["containerStatuses"]
    }


async def _names(client: Client, resource: Resource, namespace: str = "", of: str = "") -> list[str]:
    labels = f"app.kubernetes.io/name={of}" if of else ""
    return [each["metadata"]["name"] for each in (await client.list(resource, namespace, labels=labels)).items]
