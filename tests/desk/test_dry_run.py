"""Dry runs report all refusals of the cluster, in its own words, before anything is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from control_plane import ControlPlane
from pincompute.api.documents import read_documents
from pincompute.api.names import DESK, ENGINE
from pincompute.api.preview import Preview
from pincompute.api.validation import parse_resources
from pincompute.controller.resources import CUSTOM_RESOURCES, WORKLOAD_NATIVES
from pincompute.engine.manifest_files import fill_manifest
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Forbidden
from pincompute.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    SERVICES,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    Object,
)
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from rbac_audit import granted_permissions
from workloads import HELLO, cluster_client, new_project

pytestmark = pytest.mark.cluster

MASTERS = "system:masters"
LABELLED = HELLO.replace("port: 8080", "port: 8080, template: {metadata: {labels: {a: bad}}}")


@asynccontextmanager
async def foreign_policy(client: Client, project: str, name: str) -> AsyncGenerator[None]:
    """An admission policy of the cluster's owner: no pod label `a: bad`, and no Service named hello, in one project."""
    rules = [
        {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
        for group, resource in (("", "services"), ("apps", "deployments"))
    ]
    good = "object.kind == 'Service' ? object.metadata.name != 'hello' : "
    good += "object.spec.template.metadata.?labels.?a.orValue('') != 'bad'"
    spec: Object = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": good}]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": project}}}
    binding: Object = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    await client.create(
        VALIDATING_ADMISSION_POLICIES, {"metadata": {"name": name}, "spec": spec}, manager="cluster-admin"
    )
    await client.create(
        VALIDATING_ADMISSION_POLICY_BINDINGS, {"metadata": {"name": name}, "spec": binding}, manager="cluster-admin"
    )
    pod = {"metadata": {"labels": {"a": "bad"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    body = {"selector": {"matchLabels": {"a": "bad"}}, "template": pod}
    tried = {"metadata": {"name": "tried", "namespace": project}, "spec": body}
    try:
        async with asyncio.timeout(60):
            # The API server enforces a policy some moments after it was written.
            while True:
                if not await _passes(client, tried):
                    break
                await asyncio.sleep(0.05)
        yield
    finally:
        await client.delete(VALIDATING_ADMISSION_POLICY_BINDINGS, name)
        await client.delete(VALIDATING_ADMISSION_POLICIES, name)


async def _passes(client: Client, deployment: Object) -> bool:
    try:
        await client.create(DEPLOYMENTS, deployment, manager="cluster-admin", dry_run=True)
    except ApiError:
        return False
    return True


async def planned(workloads: WorkloadClient, project: str, text: str = LABELLED) -> Preview:
    (preview,) = await workloads.preview(parse_resources(read_documents(text), project))
    return preview


async def test_dry_run_reports_refusals_of_the_cluster(plane: ControlPlane) -> None:
    async with cluster_client(plane) as client:
        project = await new_project(client)
        async with foreign_policy(client, project, f"no-{project}"):
            workloads = WorkloadClient(client)
            preview = await planned(workloads, project)
            # All at once, each with the name of its policy.
            assert sorted(each["where"]["object"] for each in preview.errors) == [
                f"Deployment/hello of {project}", f"Service/hello of {project}",
            ]  # fmt: skip
            assert all(f"ValidatingAdmissionPolicy 'no-{project}'" in each["detail"] for each in preview.errors)
            assert {each["reason"] for each in preview.errors} == {"ClusterRefused"}
            assert len(preview.changes) > 3
            # Cached refusals are not requested again.
            before = _creates(client)
            assert (await planned(workloads, project)).errors == preview.errors
            assert _creates(client) == before > 0
            # A conforming workload has no problems.
            assert (await planned(workloads, project, HELLO.replace("name: hello", "name: fine"))).errors == []
            for resource in (DEPLOYMENTS, SERVICES, CUSTOM_RESOURCES["PinterestService"]):
                assert (await client.list(resource, project)).items == []


async def test_desk_may_only_dry_run_natives(plane: ControlPlane) -> None:
    """RBAC allows the writes; an admission policy restricts them to dry runs."""
    async with cluster_client(plane) as client, Client(plane.access(DESK, (MASTERS,)), agent="tests") as desk:
        project = await new_project(client)
        natives = (await planned(WorkloadClient(client), project, HELLO)).natives
        for native in natives:
            native["metadata"].pop("ownerReferences")
        resources = {each.kind: each for each in (VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS)}
        policies = fill_manifest("rehearsal", desk=[DESK])
        for each in policies:
            await client.apply(each, resources[each["kind"]], manager=ENGINE)
        tried = CONFIG_MAPS, {"metadata": {"name": "tried", "namespace": project}}
        async with asyncio.timeout(60):
            while True:
                try:
                    await desk.create(*tried, manager=DESK)
                except Forbidden:
                    break
                # The API server enforces a policy some moments after it was written.
                await client.delete(CONFIG_MAPS, "tried", project)
        for native in natives:
            resource = WORKLOAD_NATIVES[native["kind"]]
            with pytest.raises(Forbidden, match="as a dry run only"):
                await desk.create(resource, native, manager=DESK)
            await desk.create(resource, native, manager=DESK, dry_run=True)
            await client.create(resource, native, manager=ENGINE)
        for each in reversed(policies):
            await client.delete(resources[each["kind"]], each["metadata"]["name"])


def test_dry_run_policy_covers_the_permissions_of_the_desk() -> None:
    """And both are the natives of workloads."""
    policy = fill_manifest("rehearsal", desk=[DESK])[0]
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    held = {(group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]}
    natives = {(each.group, each.plural) for each in WORKLOAD_NATIVES.values()}
    may = {(each.group, each.resource) for each in granted_permissions({DESK}) if each.verb == "create"}
    assert held == natives == may & natives


def _creates(client: Client) -> int:
    return sum(count for asked, count in client.request_stats.requests.items() if asked.verb == "create")
