"""A tenant tries to get the traffic of another one: by hosts, paths and Ingresses written past the desk."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import yaml

from backends import backend, backend_project, create_service, free_port
from control_plane import ControlPlane
from ingress_agent import Agent, start
from pincompute.api.names import API_VERSION, HOSTS_ANNOTATION
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.installation.objects import MAXIMAL_CONFIG, platform_objects
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.resource import (
    INGRESSES,
    NAMESPACES,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    Object,
    Resource,
)
from polling import until
from shared_platform import SharedPlatform
from workloads import HELLO, cluster_client, new_project

pytestmark = pytest.mark.cluster

WAIT_TIMEOUT_S = 60


class Tenants(NamedTuple):
    """Two projects of one platform; `eve` owns the second, and was given the right to write Ingresses there."""

    platform: SharedPlatform
    folder: Path
    victim: str
    attacker: str

    @property
    def custom_host(self) -> str:
        return f"shop.{self.victim}.example"

    def apply(self, *documents: Object) -> None:
        self.platform.pin("kubectl", "apply", "-f", str(self.write(*documents)))

    def write(self, *documents: Object) -> Path:
        file = self.folder / f"{secrets.token_hex(4)}.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        return file

    def try_as_eve(self, *documents: Object) -> str:
        """Create documents as eve with kubectl; returns what was created and what was refused."""
        process = self.platform.spawn("kubectl", "--as=eve", "create", "-f", str(self.write(*documents)))
        out, errors = process.communicate()
        return out + errors

    def project_document(self, name: str, *hosts: str) -> Object:
        members = {"owner": {"people": ["eve"]}} if name == self.attacker else {}
        spec: Object = {
            "owner": "team",
            "review": "open",
            "quota": {"on-demand": {}},
            "members": members,
            "hosts": list(hosts),
        }
        return {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": name}, "spec": spec}

    def service_document(self, project: str, name: str, **balancer: object) -> Object:
        return {
            "apiVersion": API_VERSION,
            "kind": "PinterestService",
            "metadata": {"name": name, "namespace": project},
            "spec": {"image": "hello:dev", "port": 8080, "loadBalancer": balancer},
        }

    def wait_for_condition(self, project: str, name: str, type_: str, reason: str) -> str:
        """Wait for a condition of a service with this reason; returns its message."""
        found: Object = {}
        deadline = time.monotonic() + WAIT_TIMEOUT_S
        while time.monotonic() < deadline:
            found = json.loads(self.platform.pin("kubectl", "get", "pts", name, "-n", project, "-o", "json"))
            for each in found.get("status", {}).get("conditions", ()):
                if (each["type"], each["reason"]) == (type_, reason):
                    return str(each["message"])
        raise AssertionError(f"{project}/{name} has no condition {type_} with reason {reason}: {found['status']}")

    def nginx_config(self) -> str:
        return (self.platform.state / self.platform.name / "data" / "ingress" / "nginx.conf").read_text()


@pytest.fixture(scope="module")
def tenants(platform: SharedPlatform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    suffix = secrets.token_hex(3)
    here = Tenants(platform, tmp_path_factory.mktemp("tenants"), f"victim-{suffix}", f"attacker-{suffix}")
    here.apply(here.project_document(here.victim, here.custom_host), here.project_document(here.attacker))
    names = (f"project/{here.victim}", f"project/{here.attacker}")
    platform.pin("kubectl", "wait", "--for=condition=Ready", *names, "--timeout=60s")
    platform.pin("kubectl", "create", "rolebinding", "edit", "-n", here.attacker, "--clusterrole=edit", "--user=eve")
    here.apply(
        here.service_document(here.victim, "web"), here.service_document(here.victim, "shop", host=here.custom_host)
    )
    here.wait_for_condition(here.victim, "shop", "Ready", "Available")
    yield here
    platform.pin("kubectl", "delete", *names, "--wait=false")


def ingress(namespace: str, host: str, path: str = "/") -> Object:
    backend = {"service": {"name": "evil", "port": {"number": 80}}}
    rule: Object = {"http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}}
    name = f"evil-{secrets.token_hex(4)}"
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"rules": [{**({"host": host} if host else {}), **rule}]},
    }


def test_admission_refuses_hosts_of_others(tenants: Tenants) -> None:
    victim, attacker = tenants.victim, tenants.attacker
    hosts = [
        f"web.{victim}.localhost",
        f"*.{victim}.localhost",
        f"{victim}.localhost",
        f"x{attacker}.localhost",
        "*.localhost",
        "localhost",
        tenants.custom_host,
        f"*.{victim}.example",
        "free.example.com",
        "",
    ]
    catch_all = ingress(attacker, "")
    catch_all["spec"] = {"defaultBackend": {"service": {"name": "evil", "port": {"number": 80}}}}
    longer = ingress(attacker, f"web.{victim}.localhost", "/login")
    answer = tenants.try_as_eve(*(ingress(attacker, each) for each in hosts), longer, catch_all)
    refused = [line for line in answer.splitlines() if "pincompute-hosts" in line]
    assert len(refused) == len(hosts) + 2, answer
    assert all(f"kubectl edit project {attacker}" in line for line in refused)
    assert "created" not in answer
    # The API server itself accepts hosts in lower case and without a trailing dot only.
    answer = tenants.try_as_eve(
        *(ingress(attacker, each) for each in (f"WEB.{victim}.localhost", f"web.{victim}.localhost."))
    )
    assert answer.count("Invalid value") == 2, answer
    services = [
        tenants.service_document(attacker, f"evil-{number}", host=each)
        for number, each in enumerate(hosts)
        if each and "*" not in each
    ]
    answer = tenants.try_as_eve(*services)
    refused = [line for line in answer.splitlines() if "pincompute-service-hosts" in line]
    assert len(refused) == len(services), answer
    # Its own hosts are its own.
    own = (
        ingress(attacker, f"a.b.{attacker}.localhost"),
        tenants.service_document(attacker, "own", host=f"www.{attacker}.localhost"),
    )
    assert tenants.try_as_eve(*own).count("created") == 2


def test_desk_refuses_hosts_of_others(tenants: Tenants) -> None:
    """The host, its project, and what to do."""
    for host, reason, what in (
        (f"web.{tenants.victim}.localhost", "HostTaken", f"belongs to project {tenants.victim}"),
        (tenants.custom_host, "HostTaken", f"belongs to project {tenants.victim}"),
        ("free.example.com", "HostNotListed", f"was not given to project {tenants.attacker}"),
        ("localhost", "HostReserved", "is reserved for the platform"),
    ):
        document = tenants.service_document("", "evil", host=host)
        document["metadata"] = {"name": "evil", "project": tenants.attacker}
        process = tenants.platform.spawn("deploy", str(tenants.write(document)))
        _, errors = process.communicate()
        assert process.returncode != 0
        assert f"the host {host} {what}" in errors
        assert f"[{reason}]" in errors
        assert "next: leave out loadBalancer.host" in errors


def test_list_of_hosts_moves_a_host_that_was_kept(tenants: Tenants) -> None:
    """A served host outlives the list, with a warning, until another project is given it."""
    victim, attacker, host = tenants.victim, tenants.attacker, tenants.custom_host
    tenants.apply(tenants.project_document(victim))
    message = tenants.wait_for_condition(victim, "shop", "HostUnlisted", "HostKept")
    assert f"the host {host} was not given to project {victim}" in message
    assert f"kubectl patch project {victim} --type merge -p" in message
    assert f'server_name "{host}";' in tenants.nginx_config()
    assert message in tenants.platform.pin("why", "shop", "--project", victim)
    # It can still be deployed, and no other project gets it.
    tenants.apply(tenants.service_document(victim, "shop", host=host, path="/api"))
    tenants.wait_for_condition(victim, "shop", "HostUnlisted", "HostKept")

    tenants.apply(tenants.project_document(attacker, host))
    tenants.platform.pin(
        "kubectl", "wait", "-n", "default", f"namespace/{attacker}", "--timeout=60s",
        f"--for=jsonpath={{.metadata.annotations.{HOSTS_ANNOTATION.replace('.', chr(92) + '.')}}}={host}",
    )  # fmt: skip
    tenants.apply(tenants.service_document(attacker, "shop", host=host))
    message = tenants.wait_for_condition(victim, "shop", "Ready", "HostTaken")
    assert message.startswith(f"the host {host} belongs to project {attacker}")
    told = tenants.platform.spawn("why", "shop", "--project", victim).communicate()[0]
    assert "HostTaken" in told
    assert "leave out loadBalancer.host" in told
    left = tenants.platform.pin("kubectl", "get", "ingress", "-n", victim, "-o", "name").split()
    assert left == ["ingress.networking.k8s.io/web"]


def test_requests_are_served_without_the_agent(platform: SharedPlatform) -> None:
    """The ingress is killed; nginx answers until `pin up` has started the next one, which takes it over."""
    folder = platform.state / platform.name / "data" / "ingress"
    before = platform.status()
    address = next(part["address"] for part in before["parts"] if part["name"] == "ingress")
    nginx = (folder / "nginx.pid").read_text()
    os.kill(platform.pids()["ingress"], signal.SIGKILL)
    up = platform.spawn("up")
    answers = []
    while up.poll() is None:
        with urllib.request.urlopen(f"{address}/healthz", timeout=60) as answer:
            answers.append(answer.status)
    _, errors = up.communicate()
    assert up.returncode == 0, errors
    assert len(answers) > 10
    assert set(answers) == {200}
    assert (folder / "nginx.pid").read_text() == nginx
    assert platform.status()["health"] == "ready"


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(plane.access(), agent="test") as client:
        yield client


async def test_no_request_for_the_victim_reaches_the_attacker(
    plane: ControlPlane, nginx: Path, tmp_path: Path, client: Client
) -> None:
    """Ingresses that no admission policy has refused, created before those of the victim."""
    port = free_port()
    custom = "shop.victim.example"
    async with (
        aiohttp.ClientSession() as browser,
        backend_project(client, "evil") as evil,
        backend_project(client, "victim") as victim,
        backend("127.10.0.40", "evil") as theirs,
        backend("127.10.0.41", "victim") as ours,
    ):
        await annotate(client, victim, custom)
        await create_service(client, evil, "evil", *theirs)
        await create_service(client, victim, "web", *ours)
        for number, (host, path) in enumerate(
            (host, path)
            for host in (
                f"web.{victim}.localhost",
                f"*.{victim}.localhost",
                "*.localhost",
                custom,
                "*.victim.example",
                "",
            )
            for path in ("/", "/login/deeper", "/api")
        ):
            body = ingress(evil, host, path)
            body["metadata"]["name"] = f"evil-{number}"
            await client.apply(body, INGRESSES, manager="test")
        agent = Agent(port, tmp_path, await start(plane, nginx, tmp_path, port), browser)
        await until(agent.healthy)
        for host in (f"web.{victim}.localhost", custom):
            body = ingress(victim, host)
            body["metadata"]["name"] = host.partition(".")[0]
            body["spec"]["rules"][0]["http"]["paths"][0]["backend"] = {
                "service": {"name": "web", "port": {"number": ours[1]}}
            }
            await client.apply(body, INGRESSES, manager="test")
            await until(lambda host=host: agent.backend_name(host))
        answers: dict[tuple[str, str], Any] = {}
        for host in (
            f"web.{victim}.localhost",
            f"WEB.{victim.upper()}.LocalHost",
            f"web.{victim}.localhost.",
            custom,
            f"{custom}.",
        ):
            for path in ("/", "/login/deeper", "/login/deeper/x", "/api", "/%61pi"):
                status, text = await agent.get(host, path)
                answers[host, path] = json.loads(text)["name"] if status == 200 else status
        assert set(answers.values()) == {"victim"}, answers
        # Paths that the victim does not serve are served by no other project.
        for host in (f"other.{victim}.localhost", f"{victim}.localhost", "localhost", "a.b.localhost"):
            assert (await agent.get(host))[0] == 404, host
        await agent.stop()


async def annotate(client: Client, namespace: str, hosts: str) -> None:
    body = {"metadata": {"name": namespace, "annotations": {HOSTS_ANNOTATION: hosts}}}
    await client.apply(body, NAMESPACES, manager="operator")


async def test_host_of_the_desk_is_refused_to_every_project(plane: ControlPlane) -> None:
    """By a policy of `pin install --desk`, which binds the desk and the operator as well."""
    resources = {each.kind: each for each in (VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS)}
    wanted = [each for each in platform_objects(MAXIMAL_CONFIG) if each["metadata"]["name"] == "pincompute-desk-host"]
    assert len(wanted) == len(resources)
    async with cluster_client(plane) as admin:
        project = await new_project(admin)
        body = ingress(project, "desk.example.com")
        service = {
            **yaml.safe_load(HELLO),
            "spec": {"image": "a:1", "port": 80, "loadBalancer": {"host": "desk.example.com"}},
        }
        # Written before the policy existed.
        kept = {**body, "metadata": {**body["metadata"], "name": "kept"}}
        await admin.create(INGRESSES, kept, manager="test")
        for each in wanted:
            await admin.apply(each, resources[each["kind"]], manager="test")
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                while not await is_refused(admin, INGRESSES, body):  # noqa: ASYNC110  (a policy takes effect with a delay)
                    await asyncio.sleep(0.05)
            service["metadata"] = {"name": "hello", "namespace": project}
            assert await is_refused(admin, CUSTOM_RESOURCES["PinterestService"], service)
            await admin.patch(
                INGRESSES, "kept", project, {"metadata": {"labels": {"a": "b"}}}, style="merge", manager="t"
            )
            await admin.delete(INGRESSES, "kept", project)
        finally:
            for each in reversed(wanted):
                await admin.delete(resources[each["kind"]], each["metadata"]["name"])


async def is_refused(client: Client, resource: Resource, body: Object) -> bool:
    """Whether the policy refuses to create an object, by a dry run."""
    try:
        await client.raw(
            "POST",
            resource.path(body["metadata"]["namespace"]),
            query={"dryRun": "All"},
            body=json.dumps(body).encode(),
        )
    except Forbidden as error:
        return "is that of the desk" in error.message
    return False
