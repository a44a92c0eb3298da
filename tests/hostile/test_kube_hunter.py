"""kube-hunter against a platform with a real node, from the machine and from a pod of a tenant; for `make prove`."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from busybox import IMAGE
from pincompute.api.names import ENGINE
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, Object
from policed_cluster import restricted_pod
from real_platform import kubectl, wait_until
from tcp_forwarder import TcpForwarder

pytestmark = [pytest.mark.cluster, pytest.mark.hunt]

PACKAGE = "kube-hunter==0.6.8"
LAUNCHER = """\
import sys
ports = [int(port) for port in sys.argv.pop(1).split(",")]
import kube_hunter.__main__ as program
from kube_hunter.modules.discovery import ports as discovery
discovery.default_ports[:] = ports
program.main()
"""
"""Runs kube-hunter with other ports than those of kubeadm: it must not scan programs of others on this machine."""
NODE_PORTS = (443, 2379, 6443, 8001, 8080, 10249, 10250, 10255, 10256, 30000)
API_PORT, ETCD_PORT = 6443, 2379
TIMEOUT_S = 600.0

ACCEPTED: dict[str, dict[str, str]] = {
    "machine": {},
    "pod": {
        "Read access to pod's service account token": "the test gives it the token; other objects stay closed to it",
        "Access to API using service account token": "every account may read which APIs the server has, and no objects",
        "K8s Version Disclosure": "every account may read the version, as clients choose their requests by it",
    },
}
"""Findings by position, each with the reason why it is accepted."""


class Report(NamedTuple):
    services: set[str]
    """Each as `NAME ADDRESS:PORT`, without the path."""
    findings: dict[str, str]
    """Evidence, by name."""


class Hunter(NamedTuple):
    """kube-hunter in a virtual environment of its own."""

    python: Path
    launcher: Path

    async def hunt(self, targets: dict[str, tuple[int, ...]], *options: str, inside: tuple[str, ...] = ()) -> Report:
        """Hunt passively and actively on these ports of the addresses."""
        services: set[str] = set()
        findings: dict[str, str] = {}
        for address, ports in targets.items():
            found = await self._run(",".join(map(str, ports)), "--remote", address, *options, inside=inside)
            services |= {f"{each['service']} {each['location'].partition('/')[0]}" for each in found["services"]}
            findings |= {each["vulnerability"]: f"{address}: {each['evidence']}" for each in found["vulnerabilities"]}
        return Report(services, findings)

    async def _run(self, *options: str, inside: tuple[str, ...]) -> Object:
        process = await asyncio.create_subprocess_exec(
            *inside, self.python, self.launcher, *options,
            "--active", "--report", "json", "--log", "none", "--num-worker-threads", "20",
            env=_environment(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, errors = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
        assert process.returncode == 0, errors.decode()
        report: Object = json.loads(out.decode().strip().splitlines()[-1])
        return report


def _environment() -> dict[str, str]:
    """Without a bundle of CAs: requests would verify servers against it although kube-hunter asks it not to."""
    return {name: value for name, value in os.environ.items() if name not in {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}}


@pytest.fixture(scope="module")
def hunter(tmp_path_factory: pytest.TempPathFactory) -> Hunter:
    folder = tmp_path_factory.mktemp("hunter")
    python, launcher = folder / "venv" / "bin" / "python", folder / "launcher.py"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", folder / "venv"], check=True)
    # It imports pkg_resources, which newer versions of setuptools do not have.
    packages = (PACKAGE, "setuptools<81")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *packages], check=True)
    launcher.write_text(LAUNCHER)
    return Hunter(python, launcher)


class Position(NamedTuple):
    """A pod of a tenant, by a process in its network namespace."""

    pid: int
    token: str


@pytest.fixture
async def position(real_platform: Platform, client: Client) -> AsyncIterator[Position]:
    """A pod of a project, on whose command line a word stands that no other process has."""
    name, word = f"eve-{secrets.token_hex(3)}", secrets.token_hex(8)
    projects = CUSTOM_RESOURCES["Project"]
    spec: Object = {"owner": "team", "review": "open", "quota": {"on-demand": {}}}
    await client.apply({"metadata": {"name": name}, "spec": spec}, projects, manager=ENGINE)
    await wait_until(client, projects, "", _has_condition, name)
    pod = restricted_pod()
    pod["containers"][0] |= {"image": IMAGE, "command": ["sh", "-c", f": {word}; while true; do sleep 3600; done"]}
    pod["securityContext"] |= {"runAsUser": 1000}
    await client.create(PODS, {"metadata": {"name": "eve", "namespace": name}, "spec": pod}, manager="tests")
    await wait_until(client, PODS, name, _has_condition, "eve")
    file = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    token = await kubectl(real_platform, "exec", "--namespace", name, "eve", "--", "cat", file)
    yield Position(_pid_with(word), token)
    await client.delete(projects, name)


def _has_condition(resource: Object) -> bool:
    conditions = resource.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _pid_with(word: str) -> int:
    lines = {file.parent.name: file for file in Path("/proc").glob("[0-9]*/cmdline")}
    found = [int(pid) for pid, file in lines.items() if file.exists() and word.encode() in file.read_bytes()]
    assert len(found) == 1, found
    return found[0]


async def test_kube_hunter_finds_nothing_from_the_machine(real_platform: Platform, hunter: Hunter) -> None:
    """The API server and etcd have other ports here than kube-hunter expects, so they are forwarded.

    Without credentials not even the version of the API server can be read, so it is not recognized.
    """
    ports, address = real_platform.ports, real_platform.address
    async with AsyncExitStack() as stack:
        forwarded = ((API_PORT, address, "api"), (ETCD_PORT, "127.0.0.1", "etcd"))
        for port, host, name in forwarded:
            await stack.enter_async_context(TcpForwarder(ports[name], host=host, listen=(address, port)))
        targets: dict[str, tuple[int, ...]] = {address: (API_PORT, ETCD_PORT), real_platform.node_address: NODE_PORTS}
        report = await hunter.hunt(targets)
    assert report.services == {
        f"Unrecognized K8s API {address}:{API_PORT}",
        f"Etcd {address}:{ETCD_PORT}",
        f"Kubelet API {real_platform.node_address}:10250",
    }
    assert_accepted(report, "machine")


async def test_kube_hunter_finds_nothing_from_a_pod(
    real_platform: Platform, hunter: Hunter, position: Position
) -> None:
    """It has the network and the token of the pod, no capabilities, and a file system that pods do not have."""
    service, node = real_platform.api_service_address, real_platform.node_address
    inside = (
        "nsenter", f"--net=/proc/{position.pid}/ns/net", "setpriv", "--bounding-set=-all",
        "env", f"KUBERNETES_SERVICE_HOST={service}",
    )  # fmt: skip
    options = ("--pod", "--service-account-token", position.token)
    report = await hunter.hunt({service: (443,), node: NODE_PORTS}, *options, inside=inside)
    assert report.services == {f"API Server {service}:443", f"Kubelet API {node}:10250"}
    assert_accepted(report, "pod")


def assert_accepted(report: Report, position: str) -> None:
    accepted = ACCEPTED[position]
    assert {name: evidence for name, evidence in report.findings.items() if name not in accepted} == {}
    assert accepted.keys() - report.findings.keys() == set(), "no longer found: remove from ACCEPTED"
