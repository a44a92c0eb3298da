"""Where only what has landed runs, nobody but the desk writes work: administrators neither."""

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
from pincompute.api.names import API_VERSION, DESK, ENGINE, OPERATOR, REVIEW, SYSTEM
from pincompute.controller.resources import NOUNS
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.engine.installation.contents import Words, contents
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.resource import ADMISSION_BINDINGS, ADMISSION_POLICIES, NAMESPACES, Object
from rights import audit_lines
from shared_platform import SharedPlatform
from workloads import HELLO, cluster

pytestmark = pytest.mark.cluster

MASTERS = "system:masters"
SERVICES = NOUNS["PinterestService"]
HERE: Object = yaml.safe_load(HELLO)
GLASS = "pincompute:break-glass"
ACCOUNTS = "system:serviceaccount:"
ENDING = (f"{ACCOUNTS}kube-system:namespace-controller", f"{ACCOUNTS}kube-system:generic-garbage-collector")


@pytest.fixture
async def admin(plane: ControlPlane) -> AsyncGenerator[Client]:
    """Of a cluster that has the policies, as they are installed, and knows of them."""
    async with cluster(plane) as client:
        resources = {each.kind: each for each in (ADMISSION_POLICIES, ADMISSION_BINDINGS)}
        named = {each["metadata"]["name"] for each in yaml.safe_load_all((MANIFESTS / "landing.yaml").read_text())}
        policies = [
            each for each in contents(Words()) if each["kind"] in resources and each["metadata"]["name"] in named
        ]
        for each in policies:
            await client.apply(each, resources[each["kind"]], manager=ENGINE)
        async with project(client, "landed") as closed:
            await refused(lambda: write(client, closed))
            await refused(lambda: label(client, closed, None))
        yield client
        for each in policies:
            await client.delete(resources[each["kind"]], each["metadata"]["name"])


@asynccontextmanager
async def project(client: Client, review: str) -> AsyncGenerator[str]:
    name = f"t-{secrets.token_hex(4)}"
    namespace: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {REVIEW: review}},
    }
    await client.create(NAMESPACES, namespace, manager=OPERATOR)
    yield name
    await client.delete(NAMESPACES, name)


@asynccontextmanager
async def somebody(plane: ControlPlane, user: str, *groups: str) -> AsyncGenerator[Client]:
    async with Client(plane.access(user, (MASTERS, *groups)), agent="tests") as client:
        yield client


async def write(client: Client, project: str, *, for_good: bool = False) -> None:
    query = {} if for_good else {"dryRun": "All"}
    await client.raw("POST", SERVICES.path(project), query=query, body=msgspec.json.encode(HERE))


async def label(client: Client, project: str, review: str | None) -> None:
    said = {"metadata": {"labels": {REVIEW: review}}}
    merge = "application/merge-patch+json"
    path, body = f"{NAMESPACES.path()}/{project}", msgspec.json.encode(said)
    await client.raw("PATCH", path, query={"dryRun": "All"}, body=body, content=merge)


async def edit(client: Client, project: str, said: Object, subresource: str = "") -> None:
    await client.patch(SERVICES, "hello", project, said, style="merge", manager="tests", subresource=subresource)


async def refused(attempt: Callable[[], Awaitable[Any]]) -> str:
    """The API server hears of a policy, and of a namespace, a moment after it was written."""
    async with asyncio.timeout(60):
        while True:
            try:
                await attempt()
            except Forbidden as error:
                return error.message
            await asyncio.sleep(0.05)


async def test_an_administrator_is_told_what_to_type_instead(plane: ControlPlane, admin: Client) -> None:
    async with project(admin, "landed") as closed, somebody(plane, DESK) as desk:
        told = await refused(lambda: write(admin, closed))
        assert f"the project {closed} takes only what was reviewed and landed" in told
        assert "it was tried by admin. Deploy what was published: pin deploy" in told
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


async def test_an_open_project_is_as_it_was(admin: Client) -> None:
    async with project(admin, "open") as there:
        await write(admin, there, for_good=True)
        await admin.delete(SERVICES, "hello", there)


@pytest.mark.parametrize("user", [OPERATOR, f"{ACCOUNTS}{SYSTEM}:{OPERATOR}", DESK, *ENDING])
async def test_who_has_to_write_there_may(plane: ControlPlane, admin: Client, user: str) -> None:
    async with project(admin, "landed") as closed, somebody(plane, DESK) as desk, somebody(plane, user) as one:
        await write(desk, closed, for_good=True)
        await edit(one, closed, {"status": {"revision": 1}}, "status")
        await edit(one, closed, {"metadata": {"finalizers": []}})
        await one.delete(SERVICES, "hello", closed)


async def test_who_breaks_the_glass_passes(plane: ControlPlane, admin: Client) -> None:
    async with project(admin, "landed") as closed, somebody(plane, "ann", GLASS) as ann:
        await write(ann, closed)
        await label(ann, closed, None)


async def test_nobody_but_the_operator_opens_a_project_by_its_label(plane: ControlPlane, admin: Client) -> None:
    async with project(admin, "landed") as closed, somebody(plane, OPERATOR) as operator:
        for review in (None, "open"):
            with pytest.raises(Forbidden, match=f"kubectl edit project {closed}"):
                await label(admin, closed, review)
        await label(operator, closed, "open")
        said = {"metadata": {"labels": {"else": "x"}}}
        await admin.patch(NAMESPACES, closed, "", said, style="merge", manager="admin")


def test_the_manifest_names_the_workloads_that_members_bring_in() -> None:
    """Daemons are administrators' own."""
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


def test_the_clusters_own_audit_keeps_who_broke_the_glass(platform: SharedPlatform, tmp_path: Path) -> None:
    """On a whole platform: the label is the operator's, and what is there goes with its project."""
    file, work = tmp_path / "project.yaml", tmp_path / "hello.yaml"
    file.write_text(yaml.safe_dump(PROJECT))
    work.write_text(HELLO)
    platform.pin("kubectl", "apply", "-f", str(file))
    platform.pin("kubectl", "wait", "--for=condition=Ready", "project/sealed", "--timeout=120s")
    glass = ("--as=ann", f"--as-group={MASTERS}", f"--as-group={GLASS}")
    platform.pin("kubectl", *glass, "-n", "sealed", "create", "-f", str(work))
    lines = audit_lines(platform.state / platform.name / "logs" / "audit")
    events = [json.loads(line) for line in lines if GLASS in line]
    kept = [(each["user"]["username"], each["impersonatedUser"]["username"], each["verb"]) for each in events]
    assert ("admin", "ann", "create") in kept
    platform.pin("kubectl", "delete", "project", "sealed", "--cascade=foreground", "--timeout=120s")
