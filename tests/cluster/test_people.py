"""RBAC grants project members the same permissions in the cluster as the desk does."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
import yaml

from authorization_table import ACCESS_TABLE, PROJECTS, AccessCase, expected_access
from control_plane import ControlPlane
from pincompute.api.identity import IdentityType
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION, CLI_MANAGER, ENGINE, GROUP, OPERATOR
from pincompute.api.project import Project
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.manifest_files import MANIFESTS
from pincompute.kube.client import Client
from pincompute.kube.resource import CLUSTER_ROLES, NAMESPACES, ROLE_BINDINGS, Object
from pincompute.planning.kinds.project import plan
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from workloads import cluster_client

pytestmark = pytest.mark.cluster

VERBS = {
    "view": "get",
    "deploy to": "create",
    "change workloads of": "patch",
    "delete workloads of": "delete",
}
MAX_CONCURRENT_REQUESTS = 16
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def test_rbac_matches_permissions_of_the_desk(plane: ControlPlane) -> None:
    """In projects with `review: landed` members may only read."""
    asked = [each for each in ACCESS_TABLE if each.kind and each.verb in VERBS and _known(each)]
    assert len(asked) > 1_000
    async with cluster_client(plane) as client:
        for role in yaml.safe_load_all((MANIFESTS / "roles.yaml").read_text()):
            await client.apply(role, CLUSTER_ROLES, manager=ENGINE)
        for name, members in PROJECTS.items():
            if members is not None:
                await _made(client, name, members)
        # RBAC changes take effect with a delay. Permissions are only added here, so waiting for all is sufficient.
        waits = [each for each in asked if _wanted(each)]
        async with asyncio.timeout(180):
            while waits:
                waits = [each for each in waits if not await _may(client, each)]
        semaphore = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

        async def review(each: AccessCase) -> bool:
            async with semaphore:
                return await _may(client, each)

        found = await asyncio.gather(*map(review, asked))
        for name, members in PROJECTS.items():
            if members is not None:
                await client.delete(CUSTOM_RESOURCES["Project"], name)
                for binding in (await client.list(ROLE_BINDINGS, name)).items:
                    await client.delete(ROLE_BINDINGS, binding["metadata"]["name"], name)
    assert [each for each, may in zip(asked, found, strict=True) if may != _wanted(each)] == []


def _known(asked: AccessCase) -> bool:
    """Kubernetes knows programs of projects only, as service accounts."""
    return asked.caller.type is IdentityType.PERSON or "/" in asked.caller.name


def _wanted(asked: AccessCase) -> bool:
    by_the_desk_alone = asked.project == "landed" and asked.verb != "view" and not asked.caller.is_admin
    return expected_access(asked) and not by_the_desk_alone


async def _made(client: Client, name: str, members: Object) -> None:
    spec = {"owner": "team-ads", "review": "landed" if name == "landed" else "open", "members": members}
    document = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": name}}
    written = await client.apply(
        {**document, "spec": {**spec, "quota": {"on-demand": {}}}}, CUSTOM_RESOURCES["Project"], manager=CLI_MANAGER
    )
    owner = msgspec.convert(written, Project)
    seen = Snapshot(owner, (), (), Cluster(name="test", domain="localhost", port=80), datetime.now(UTC))
    (namespace,) = plan(seen).wanted
    native = {**await client.apply(namespace, NAMESPACES, manager=OPERATOR), "kind": "Namespace"}
    for each in plan(seen._replace(natives=(msgspec.convert(native, Native),))).wanted:
        if each["kind"] == "RoleBinding":
            await client.apply(each, ROLE_BINDINGS, manager=OPERATOR)


async def _may(client: Client, asked: AccessCase) -> bool:
    caller, kind = asked.caller, WORKLOADS[asked.kind]
    account = caller.name.replace("/", ":", 1)
    user = f"system:serviceaccount:{account}" if caller.type is IdentityType.PROGRAM else caller.name
    groups = ["system:masters"] if caller.is_admin else sorted(caller.groups)
    about = {"namespace": asked.project, "verb": VERBS[asked.verb], "group": GROUP, "resource": kind.plural()}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": about},
    }
    reviewed = msgspec.json.decode(await client.raw("POST", REVIEWS, body=msgspec.json.encode(body)))
    return bool(reviewed["status"]["allowed"])
