"""In projects with `review: landed` only the desk may write workloads, not even administrators may."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from control_plane import ControlPlane
from pincompute.api.names import API_VERSION, DESK, ENGINE, OPERATOR, REVIEW_LABEL, SYSTEM_NAMESPACE
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.installation.objects import InstallConfig, platform_objects
from pincompute.engine.manifest_files import MANIFESTS
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.resource import (
    NAMESPACES,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    Object,
)
from rbac_audit import audit_lines
from shared_platform import SharedPlatform
from workloads import HELLO, cluster_client

pytestmark = pytest.mark.cluster

MASTERS = "system:masters"
SERVICES = CUSTOM_RESOURCES["PinterestService"]
SERVICE_OBJECT: Object = yaml.safe_load(HELLO)
BREAK_GLASS_GROUP = "pincompute:break-glass"
ACCOUNTS = "system:serviceaccount:"
DELETION_CONTROLLERS = (
    f"{ACCOUNTS}kube-system:namespace-controller",
    f"{ACCOUNTS}kube-system:generic-garbage-collector",
)


@pytest.fixture
async def admin(plane: ControlPlane) -> AsyncGenerator[Client]:
    """An administrator of a cluster with the installed policies in effect."""
    async with cluster_client(plane) as client:
        resources = {each.kind: each for each in (VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS)}
        named = {each["metadata"]["name"] for each in yaml.safe_load_all((MANIFESTS / "landing.yaml").read_text())}
        policies = [
            each
            for each in platform_objects(InstallConfig())
            if each["kind"] in resources and each["metadata"]["name"] in named
        ]
        for each in policies:
            await client.apply(each, resources[each["kind"]], manager=ENGINE)
        async with create_project(client, "landed") as closed:
            await await_rejection(lambda: write(client, closed))
            await await_rejection(lambda: label(client, closed, None))
        yield client
        for each in policies:
            await client.delete(resources[each["kind"]], each["metadata"]["name"])


@asynccontextmanager
async def create_project(client: Client, review: str) -> AsyncGenerator[str]:
    name = f"t-{secrets.token_hex(4)}"
    namespace: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {REVIEW_LABEL: review}},
    }
    await client.create(NAMESPACES, namespace, manager=OPERATOR)
    yield name
    await client.delete(NAMESPACES, name)


@asynccontextmanager
async def client_of(plane: ControlPlane, user: str, *groups: str) -> AsyncGenerator[Client]:
    async with Client(plane.access(user, (MASTERS, *groups)), agent="tests") as client:
        yield client


async def write(client: Client, project: str, *, for_good: bool = False) -> None:
    query = {} if for_good else {"dryRun": "All"}
    await client.raw("POST", SERVICES.path(project), query=query, body=msgspec.json.encode(SERVICE_OBJECT))


async def label(client: Client, project: str, review: str | None) -> None:
    change = {"metadata": {"labels": {REVIEW_LABEL: review}}}
    merge = "application/merge-patch+json"
    path, body = f"{NAMESPACES.path()}/{project}", msgspec.json.encode(change)
    await client.raw("PATCH", path, query={"dryRun": "All"}, body=body, content=merge)


async def edit(client: Client, project: str, change: Object, subresource: str = "") -> None:
    await client.patch(SERVICES, "hello", project, change, style="merge", manager="tests", subresource=subresource)


async def await_rejection(attempt: Callable[[], Awaitable[Any]]) -> str:
    """Repeat the request until it is rejected: policies and namespaces take effect with a delay."""
    async with asyncio.timeout(60):
        while True:
            try:
                await attempt()
            except Forbidden as error:
                return error.message
            await asyncio.sleep(0.05)


async def test_administrator_is_rejected_with_the_command_to_use(plane: ControlPlane, admin: Client) -> None:
    async with create_project(admin, "landed") as closed, client_of(plane, DESK) as desk:
        message = await await_rejection(lambda: write(admin, closed))
        assert f"the project {closed} accepts reviewed and landed builds only" in message
        assert "requested by admin. Deploy a published version: pin deploy" in message
        await write(desk, closed, for_good=True)
        for change in (
            lambda: edit(admin, closed, {"spec": {"replicas": 3}}),
            lambda: edit(admin, closed, {"metadata": {"labels": {"a": "b"}}}),
            lambda: edit(admin, closed, {"spec": {"replicas": 3}}, "scale"),
            lambda: admin.delete(SERVICES, "hello", closed),
        ):
            with pytest.raises(Forbidden, match="pin deploy hello --version VERSION"):
                await change()
        there = await admin.get(SERVICES, "hello", closed)
        assert (there["spec"]["replicas"], "labels" in there["metadata"]) == (1, False)


async def test_open_project_is_not_restricted(admin: Client) -> None:
    async with create_project(admin, "open") as there:
        await write(admin, there, for_good=True)
        await admin.delete(SERVICES, "hello", there)


@pytest.mark.parametrize("user", [OPERATOR, f"{ACCOUNTS}{SYSTEM_NAMESPACE}:{OPERATOR}", DESK, *DELETION_CONTROLLERS])
async def test_required_users_may_write(plane: ControlPlane, admin: Client, user: str) -> None:
    async with create_project(admin, "landed") as closed, client_of(plane, DESK) as desk, client_of(plane, user) as one:
        await write(desk, closed, for_good=True)
        await edit(one, closed, {"status": {"revision": 1}}, "status")
        await edit(one, closed, {"metadata": {"finalizers": []}})
        await one.delete(SERVICES, "hello", closed)


async def test_break_glass_group_bypasses_policy(plane: ControlPlane, admin: Client) -> None:
    async with create_project(admin, "landed") as closed, client_of(plane, "ann", BREAK_GLASS_GROUP) as ann:
        await write(ann, closed)
        await label(ann, closed, None)


async def test_only_the_operator_may_change_the_review_label(plane: ControlPlane, admin: Client) -> None:
    async with create_project(admin, "landed") as closed, client_of(plane, OPERATOR) as operator:
        for review in (None, "open"):
            with pytest.raises(Forbidden, match=f"kubectl edit project {closed}"):
                await label(admin, closed, review)
        await label(operator, closed, "open")
        change = {"metadata": {"labels": {"else": "x"}}}
        await admin.patch(NAMESPACES, closed, "", change, style="merge", manager="admin")


def test_policy_covers_all_kinds_of_the_submitter_role() -> None:
    """Daemons are not restricted, as only administrators create them."""
    (policy,) = (
        each
        for each in yaml.safe_load_all((MANIFESTS / "landing.yaml").read_text())
        if each["kind"].endswith("Policy") and each["metadata"]["name"] == "pincompute-landed"
    )
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    roles = list(yaml.safe_load_all((MANIFESTS / "roles.yaml").read_text()))
    submitter = next(each for each in roles if each["metadata"]["name"] == "pincompute-project-submitter")
    theirs = [one for one in submitter["rules"] if one["apiGroups"] == ["pinterest.com"]]
    assert sorted(rule["resources"]) == sorted(each for one in theirs for each in one["resources"])
    assert API_VERSION.startswith(*rule["apiGroups"])


PROJECT: Object = {
    "apiVersion": API_VERSION,
    "kind": "Project",
    "metadata": {"name": "sealed"},
    "spec": {"owner": "team-ads", "quota": {"on-demand": {}}, "review": "landed"},
}


def test_audit_log_records_break_glass(platform: SharedPlatform, tmp_path: Path) -> None:
    """On a platform with the operator, which sets the label and deletes the project's workloads."""
    file, work = tmp_path / "project.yaml", tmp_path / "hello.yaml"
    file.write_text(yaml.safe_dump(PROJECT))
    work.write_text(HELLO)
    platform.pin("kubectl", "apply", "-f", str(file))
    platform.pin("kubectl", "wait", "--for=condition=Ready", "project/sealed", "--timeout=120s")
    impersonation = ("--as=ann", f"--as-group={MASTERS}", f"--as-group={BREAK_GLASS_GROUP}")
    platform.pin("kubectl", *impersonation, "-n", "sealed", "create", "-f", str(work))
    lines = audit_lines(platform.state / platform.name / "logs" / "audit")
    events = [json.loads(line) for line in lines if BREAK_GLASS_GROUP in line]
    kept = [(each["user"]["username"], each["impersonatedUser"]["username"], each["verb"]) for each in events]
    assert ("admin", "ann", "create") in kept
    platform.pin("kubectl", "delete", "project", "sealed", "--cascade=foreground", "--timeout=120s")
