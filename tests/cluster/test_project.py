"""A project on a real API server: its objects are accepted, and enforce quotas, pod security and permissions."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from control_plane import ControlPlane
from pincompute.api.documents import read_documents
from pincompute.api.names import CLI_MANAGER, ENGINE, OPERATOR
from pincompute.api.project import Project
from pincompute.api.validation import parse_resource
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.manifest_files import MANIFESTS
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden, Invalid
from pincompute.kube.resource import PODS, RESOURCE_QUOTAS, Resource
from pincompute.objects.content import Object
from pincompute.planning.kinds.project import plan
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from transcripts import ROOT
from workloads import HELLO, cluster_client

pytestmark = pytest.mark.cluster

HERE = {
    each.kind: each
    for each in (kinds.NAMESPACES, RESOURCE_QUOTAS, kinds.LIMIT_RANGES, kinds.ROLE_BINDINGS, kinds.NETWORK_POLICIES)
}
PROJECTS = CUSTOM_RESOURCES["Project"]


class World(NamedTuple):
    plane: ControlPlane
    client: Client

    async def make(self, document: Object) -> tuple[str, list[Object]]:
        """Create a project and all of its objects: the namespace, then the objects in it."""
        written = await self.client.apply(document, PROJECTS, manager=CLI_MANAGER)
        snapshot = Snapshot(
            owner=msgspec.convert(written, Project),
            natives=(),
            pods=(),
            cluster=Cluster(name="test", domain="localhost", port=80),
            now=datetime.now(UTC),
        )
        made: list[Object] = []
        while len(made) < len(wanted := plan(snapshot).wanted):
            made += [await self._create(each) for each in wanted[len(made) :]]
            snapshot = snapshot._replace(natives=tuple(msgspec.convert(made, list[Native])))
        return written["metadata"]["name"], made

    async def write_quota_status(self, project: str) -> None:
        """Write the status of quotas, as no quota controller runs: quotas without status are not enforced."""
        for quota in (await self.client.list(RESOURCE_QUOTAS, project)).items:
            hard = quota["spec"]["hard"]
            status = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
            await self.client.patch(
                RESOURCE_QUOTAS, quota["metadata"]["name"], project, status,
                style="merge", manager="test", subresource="status",
            )  # fmt: skip

    async def refusal(self, project: str, tier: str) -> str:
        """Repeat a dry run until it is rejected by the quota, which takes effect with a delay."""
        async with asyncio.timeout(60):
            while True:
                try:
                    await self.dry_run(PODS, project, restricted_pod(tier))
                except Forbidden as error:
                    if "status unknown" not in error.message:
                        return error.message

    async def dry_run(self, resource: Resource, project: str, body: Object, client: Client | None = None) -> None:
        path, encoded = resource.path(project), msgspec.json.encode(body)
        await (client or self.client).raw("POST", path, query={"dryRun": "All"}, body=encoded)

    async def _create(self, native: Object) -> Object:
        made = await self.client.create(HERE[native["kind"]], native, manager=OPERATOR)
        return {**made, "kind": native["kind"]}


@asynccontextmanager
async def world(plane: ControlPlane) -> AsyncGenerator[World]:
    async with cluster_client(plane) as client:
        for file, resource in (("tiers", kinds.PRIORITY_CLASSES), ("roles", kinds.CLUSTER_ROLES)):
            for each in yaml.safe_load_all((MANIFESTS / f"{file}.yaml").read_text()):
                await client.apply(each, resource, manager=ENGINE)
        yield World(plane, client)


def project_document(**spec: Any) -> Object:
    name = f"t-{secrets.token_hex(4)}"
    return {"metadata": {"name": name}, "spec": {"owner": "team-ads", "quota": {"on-demand": {}}, **spec}}


def restricted_pod(tier: str = "", **container: Any) -> Object:
    """A pod that satisfies the `restricted` pod security standard."""
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    main = {"name": "a", "image": "a", "securityContext": rights, "resources": resources, **container}
    spec: Object = {
        "containers": [main],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    return {"metadata": {"name": "a"}, "spec": {**spec, **({"priorityClassName": tier} if tier else {})}}


@pytest.mark.parametrize("file", ["examples/project.yaml", "examples/long/project.yaml"])
async def test_objects_of_example_projects_are_accepted(plane: ControlPlane, file: str) -> None:
    (document,) = read_documents((ROOT / file).read_text(), file)
    parse_resource(document, "")
    async with world(plane) as here:
        content = {**document.content, "metadata": {"name": f"t-{secrets.token_hex(4)}"}}
        name, made = await here.make(content)
        assert {each["kind"] for each in made} == HERE.keys()
        for each in made:
            again = {key: value for key, value in each.items() if key != "status"}
            again["metadata"] = {key: each["metadata"][key] for key in ("name", "labels", "annotations")}
            again["metadata"] |= {"namespace": name} if each["kind"] != "Namespace" else {}
            await here.client.apply(again, HERE[each["kind"]], manager=OPERATOR)


async def test_pod_needs_a_tier_with_quota(plane: ControlPlane) -> None:
    async with world(plane) as here:
        quota: Object = {"reserved": {"cpu": "500m"}, "on-demand": {}}
        name, _ = await here.make(project_document(quota=quota))
        await here.write_quota_status(name)
        assert "exceeded quota: no-tier, requested: pods=1" in await here.refusal(name, "")
        assert "exceeded quota: infrastructure" in await here.refusal(name, "pincompute-infrastructure")
        assert "exceeded quota: preemptible, requested: pods=1" in await here.refusal(name, "pincompute-preemptible")
        assert "exceeded quota: reserved, requested: requests.cpu=1" in await here.refusal(name, "pincompute-reserved")
        await here.dry_run(PODS, name, restricted_pod("pincompute-on-demand"))


async def test_root_containers_are_rejected(plane: ControlPlane) -> None:
    async with world(plane) as here:
        name, _ = await here.make(project_document())
        with pytest.raises(Forbidden, match='violates PodSecurity "restricted:latest"'):
            await here.dry_run(PODS, name, restricted_pod("pincompute-on-demand", securityContext={"runAsUser": 0}))


@pytest.mark.parametrize(("review", "allowed"), [("landed", False), ("open", True)])
async def test_deployers_write_directly_only_in_open_projects(plane: ControlPlane, review: str, allowed: bool) -> None:
    async with world(plane) as here, client_of(plane, "ben") as ben, client_of(plane, "eve") as eve:
        members = {"deployer": {"people": ["ben"]}, "viewer": {"people": ["eve"]}}
        name, _ = await here.make(project_document(members=members, review=review))
        services, hello = CUSTOM_RESOURCES["PinterestService"], yaml.safe_load(HELLO)
        for client in (ben, eve):
            await until_allowed(lambda client=client: client.list(services, name))
        if allowed:
            await until_allowed(lambda: here.dry_run(services, name, hello, ben))
        else:
            with pytest.raises(Forbidden):
                await here.dry_run(services, name, hello, ben)
        for client in (ben, eve):
            with pytest.raises(Forbidden):
                await here.dry_run(PODS, name, restricted_pod("pincompute-on-demand"), client)
            with pytest.raises(Forbidden):
                await client.list(kinds.SECRETS, name)
        with pytest.raises(Forbidden):
            await here.dry_run(services, name, hello, eve)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (project_document(quota={}), "spec.quota must name at least one tier"),
        (project_document(quota={"storage": "1Ti"}), "must name at least one tier"),
        ({**project_document(), "metadata": {"name": "kube-mine"}}, "reserved by the cluster"),
        ({**project_document(), "metadata": {"name": "default"}}, "reserved by the cluster"),
        ({**project_document(), "metadata": {"name": "a" * 51}}, "at most 50"),
        (project_document(owner=""), "spec.owner"),
        (project_document(quota={"on-demand": {"cpu": "many"}}), "spec.quota.on-demand.cpu"),
    ],
)
async def test_api_server_rejects_invalid_projects(plane: ControlPlane, document: Object, message: str) -> None:
    async with world(plane) as here:
        with pytest.raises(Invalid, match=message):
            await here.client.apply(document, PROJECTS, manager=CLI_MANAGER)


async def until_allowed(ask: Callable[[], Awaitable[object]]) -> None:
    """Repeat a request until it is allowed: RBAC changes take effect with a delay."""
    async with asyncio.timeout(60):
        while True:
            try:
                await ask()
            except Forbidden:
                continue
            return


@asynccontextmanager
async def client_of(plane: ControlPlane, user: str) -> AsyncGenerator[Client]:
    async with Client(plane.access(user, ()), agent="tests") as client:
        yield client
