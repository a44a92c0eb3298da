"""Mutual TLS on a real node: only the listed caller gets through, also during a rollout."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import yaml

from busybox import IMAGE
from cli_user import CliUser, wait_all_gone
from pincompute.api.mtls import MTLS_PORT
from pincompute.api.names import ENGINE, WORKLOAD_LABEL
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.first_runtime import PARTS_FOLDER
from pincompute.engine.images import registry
from pincompute.engine.mtls import proxy
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, Object
from polling import until
from real_platform import kubectl, wait_until

pytestmark = pytest.mark.cluster

NUMBER = "930"
PROJECT = "mtls-callers"
NODE_TIMEOUT_S = 240.0
ECHO = r"""
mkdir /web/cgi-bin
printf '#!/bin/sh\necho\necho "the caller is $HTTP_PIN_CALLER"\n' > /web/cgi-bin/caller
chmod +x /web/cgi-bin/caller
trap exit TERM
httpd -f -p $PORT -h /web & wait
"""
VISITOR = """
trap exit TERM
ask() { wget -q -O - $CALL_ME_ECHO/cgi-bin/caller; }
until ask; do sleep 1; done
while :; do ask > /dev/null || echo failed; sleep 0.1; done & wait
"""
STRANGER = "trap exit TERM; sleep 100000 & wait"


def service_document(name: str, program: str, **spec: object) -> Object:
    template = {
        "spec": {
            "securityContext": {"runAsUser": 1000},
            "volumes": [{"name": "web", "emptyDir": {"sizeLimit": "1Mi"}}],
            "containers": [{"name": name, "volumeMounts": [{"name": "web", "mountPath": "/web"}]}],
        }
    }
    short = {"image": IMAGE, "command": ["sh", "-c", program], "template": template, "shutdown": {"graceSeconds": 5}}
    return {
        "apiVersion": "pinterest.com/v1", "kind": "PinterestService", "metadata": {"name": name},
        "spec": {**short, **spec},
    }  # fmt: skip


@pytest.fixture
async def runtime(real_platform: Platform, client: Client) -> AsyncIterator[None]:
    """The bundled parts, for workloads that call or are called only; and a second project."""
    async with registry.open_registry(real_platform) as images:
        await proxy.push_proxy_images(images, Path(setting_value("cache")), Progress(), ["pincompute-mtls:1"])
    parts = [yaml.safe_load((PARTS_FOLDER / f"{each}-1.yaml").read_text()) for each in ("identity", "mtls")]
    for part in parts:
        part["metadata"]["name"] = part["metadata"]["name"].replace("-1", f"-{NUMBER}")
        part["spec"]["serves"]["fields"] = ["callers", "calls"]
    roll = {"waves": [100], "pauseSeconds": 0}
    names = [each["metadata"]["name"] for each in parts]
    quota: Object = {"on-demand": {}}
    made: tuple[tuple[str, Object], ...] = (
        *(("PinterestSidecar", part) for part in parts),
        ("Runtime", {"metadata": {"name": NUMBER}, "spec": {"parts": names, "roll": roll}}),
        ("Project", {"metadata": {"name": PROJECT}, "spec": {"owner": "ann", "review": "open", "quota": quota}}),
    )
    for kind, body in made:
        await client.create(CUSTOM_RESOURCES[kind], body, manager=ENGINE)
    await wait_until(client, CUSTOM_RESOURCES["Runtime"], "", lambda seen: seen.get("status", {}).get("done"), NUMBER)
    await wait_until(client, CUSTOM_RESOURCES["Project"], "", _is_ready, PROJECT)
    yield
    for kind, body in reversed(made):
        await client.delete(CUSTOM_RESOURCES[kind], body["metadata"]["name"])
    await wait_all_gone(client, PODS, PROJECT)


def _is_ready(object_: Object) -> bool:
    conditions = object_.get("status", {}).get("conditions", ())
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


@pytest.mark.usefixtures("runtime")
async def test_only_the_listed_caller_gets_through(real_platform: Platform, client: Client, tmp_path: Path) -> None:
    person = CliUser(real_platform, tmp_path)
    internal = {"internal": True}
    echo = service_document("echo", ECHO, port=8080, replicas=2, loadBalancer=internal, callers=[f"{PROJECT}/visitor"])
    visitor = service_document("visitor", VISITOR, worker=True, calls=["me/echo"])
    stranger = service_document("stranger", STRANGER, worker=True, calls=["echo"])
    for project, document in (("me", echo), (PROJECT, visitor), ("me", stranger)):
        file = f"{document['metadata']['name']}.yaml"
        (tmp_path / file).write_text(json.dumps(document))
        await person.pin("deploy", file, "-p", project)
    try:
        await _until_logged(real_platform, visitor_log := f"the caller is {PROJECT}/visitor")
        await _stranger_is_refused_by_policy(person, await _first_pod(client, "echo"))
        await _stranger_is_refused_in_the_handshake(real_platform, client)
        why = await person.pin("why", "stranger", code=1)
        assert "stranger is not among the callers of me/echo" in why
        assert "callers: [me/stranger]" in why
        assert "CallRefused" in why

        before = {each["metadata"]["uid"] for each in await _present_pods(client, "me", "echo")}
        await person.pin("restart", "echo")
        assert before.isdisjoint({each["metadata"]["uid"] for each in await _present_pods(client, "me", "echo")})
        logged = await _log(real_platform)
        assert visitor_log in logged
        assert "failed" not in logged
    finally:
        for project, name in (("me", "stranger"), (PROJECT, "visitor"), ("me", "echo")):
            await person.pin("delete", name, "-p", project, "--yes")
    for name in ("stranger", "echo"):
        await wait_all_gone(client, PODS, "me", labels=f"{WORKLOAD_LABEL}={name}")


async def _stranger_is_refused_by_policy(person: CliUser, callee: Object) -> None:
    """A pod of the callee's own project reaches neither of its ports, by its proxy or without it."""
    address = callee["status"]["podIP"]
    for url in (f"http://{address}:{MTLS_PORT}/", f"http://{address}:8080/", "$CALL_ECHO/"):
        code, said = await person.run_pin("shell", "stranger", "--", "sh", "-c", f"wget -T 20 -q -O - {url}")
        assert code != 0, said
        assert "the caller is" not in said


async def _stranger_is_refused_in_the_handshake(platform: Platform, client: Client) -> None:
    """From the machine itself, which policies admit: the certificate of the stranger is not enough."""
    address = (await _first_pod(client, "echo"))["status"]["podIP"]
    stranger = (await _first_pod(client, "stranger"))["metadata"]["name"]
    identity = await kubectl(
        platform, "exec", "-n", "me", stranger, "-c", "stranger", "--", "cat", "/run/identity/identity.pem"
    )
    file = platform.home.root / "stranger.pem"
    file.write_text(identity)
    context = ssl.create_default_context()
    # The test is about the other side: the proxy of the callee has to refuse.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(file)
    file.unlink()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
            async with session.get(f"https://{address}:{MTLS_PORT}/cgi-bin/caller") as response:
                pytest.fail(f"answered {response.status}")
        async with session.get(f"http://{address}:{MTLS_PORT}/cgi-bin/caller") as response:
            assert (response.status, "the caller is" in await response.text()) == (400, False)


async def _present_pods(client: Client, project: str, name: str) -> list[Object]:
    listed = await client.list(PODS, project, labels=f"{WORKLOAD_LABEL}={name}")
    return [each for each in listed.items if "deletionTimestamp" not in each["metadata"]]


async def _first_pod(client: Client, name: str) -> Object:
    return (await _present_pods(client, "me", name))[0]


async def _log(platform: Platform) -> str:
    return await kubectl(
        platform, "logs", "-n", PROJECT, "-l", f"{WORKLOAD_LABEL}=visitor", "-c", "visitor", "--tail=-1"
    )


async def _until_logged(platform: Platform, text: str) -> None:
    async def logged() -> bool:
        return text in await _log(platform)

    await until(logged, within=NODE_TIMEOUT_S)
