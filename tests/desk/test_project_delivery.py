"""Projects by the desk on a real API server: what is written, and what is not overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from pincompute.api.names import API_VERSION, ENGINE, SUBMISSION_ANNOTATION
from pincompute.api.project import Project
from pincompute.cli.cluster_client import ClusterClient
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object
from pincompute.platforms.kubernetes.platform import KubernetesPlatform
from pincompute.platforms.kubernetes.projects import ProjectClient
from pincompute.platforms.protocol import Delivery
from tenant_projects import TenantProjects, tenant_projects, unknown_project

pytestmark = pytest.mark.cluster

PROJECTS = CUSTOM_RESOURCES[Project.__name__]
SPEC: Object = {
    "owner": "team-new",
    "review": "open",
    "members": {"owner": {"people": ["olga"]}, "deployer": {"people": ["dan"]}},
    "quota": {"on-demand": {"pods": 3}},
}


def project_text(name: str, spec: Object) -> str:
    content = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": name}, "spec": spec}
    return msgspec.json.encode(content).decode()


@pytest.fixture
async def here(plane: ControlPlane, tmp_path: Path) -> AsyncGenerator[TenantProjects]:
    async with tenant_projects(plane, tmp_path) as opened:
        yield opened


@pytest.fixture
async def new(here: TenantProjects) -> AsyncGenerator[str]:
    """The name of a project that does not exist yet."""
    name = unknown_project()
    yield name
    try:
        await here.world.client.delete(PROJECTS, name)
    except NotFound:
        return


async def spec_of(here: TenantProjects, name: str) -> Any:
    return (await here.world.client.get(PROJECTS, name))["spec"]


async def test_project_is_created_changed_and_unchanged(here: TenantProjects, new: str) -> None:
    created = await here.request("root", "PUT", f"/projects/{new}", project_text(new, SPEC))
    assert (created.status, created.body["action"]) == (201, "created")
    # Its members have their roles at once, and lists have it.
    assert new in {each["project"] for each in (await here.request("dan", "GET", "/projects")).body}
    same = await here.request("olga", "PUT", f"/projects/{new}", project_text(new, SPEC))
    assert (same.status, same.body["action"]) == (201, "unchanged")
    fewer = {**SPEC, "members": {"owner": {"people": ["olga"]}}, "contact": "#new"}
    changed = await here.request("olga", "PUT", f"/projects/{new}", project_text(new, fewer))
    assert (changed.status, changed.body["action"]) == (201, "changed")
    assert await spec_of(here, new) == fewer
    assert (await here.request("dan", "GET", f"/projects/{new}")).status == 404
    entries = (await here.request("olga", "GET", f"/projects/{new}/audit")).body["entries"]
    notes = [each["note"] for each in entries if each["act"] == "deploy: accepted by the desk"]
    assert notes == [
        'spec.contact: none -> #new; spec.members.deployer: {"people":["dan"]} -> none',
        "unchanged",
        "created",
    ]


async def test_change_of_an_administrator_meanwhile_is_not_overwritten(
    here: TenantProjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's document was decided on before the quota was lowered, and would raise it again."""
    deliver, deciding, go = KubernetesPlatform.deliver, asyncio.Event(), asyncio.Event()

    async def held_delivery(*arguments: Any) -> Delivery:
        deciding.set()
        await go.wait()
        return await deliver(*arguments)

    before = await spec_of(here, here.ads)
    monkeypatch.setattr(KubernetesPlatform, "deliver", held_delivery)
    sent = asyncio.create_task(
        here.request("olga", "PUT", f"/projects/{here.ads}", project_text(here.ads, {**before, "contact": "#new"}))
    )
    await deciding.wait()
    lowered = {"spec": {"quota": {"on-demand": {"pods": 1}}}}
    await here.world.client.patch(PROJECTS, here.ads, "", lowered, style="merge", manager=ENGINE)
    go.set()
    refused = await sent
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert await spec_of(here, here.ads) == {**before, "quota": {"on-demand": {"pods": 1}}}


async def test_lost_response_of_a_write_does_not_write_twice(here: TenantProjects, new: str) -> None:
    writer = ProjectClient(here.world.client)
    project = msgspec.json.decode(project_text(new, SPEC).encode(), type=Project)
    first = await writer.write_project(project, manager=ENGINE, base="", submission="s-1")
    again = await writer.write_project(project, manager=ENGINE, base="", submission="s-1")
    assert (first.state.action, again) == ("created", first)
    stored = await here.world.client.get(PROJECTS, new)
    assert stored["metadata"]["annotations"][SUBMISSION_ANNOTATION] == "s-1"
    assert stored["metadata"]["generation"] == 1


async def test_project_is_deleted_when_it_is_empty(here: TenantProjects) -> None:
    path = f"/projects/{here.ads}"
    assert (await here.deploy("dan", here.ads)).status == 201
    refused = await here.request("root", "DELETE", path)
    assert (refused.status, refused.reason) == (409, "ProjectNotEmpty")
    assert refused.body["errors"][0]["detail"] == f"project {here.ads} has 1 workload: hello"
    assert (await here.request("olga", "DELETE", path)).reason == "Forbidden"
    assert (await here.request("dan", "DELETE", f"{path}/workloads/hello")).status == 204
    assert (await here.request("root", "DELETE", path)).status == 204
    with pytest.raises(NotFound):
        await here.world.client.get(PROJECTS, here.ads)
    # The fixture deletes it again.
    await here.world.client.create(PROJECTS, msgspec.json.decode(project_text(here.ads, SPEC).encode()), manager=ENGINE)


async def test_api_server_refuses_what_it_validates_and_nothing_is_written(here: TenantProjects) -> None:
    reserved = await here.request("root", "PUT", "/projects/kube-new", project_text("kube-new", SPEC))
    assert reserved.status == 422
    with pytest.raises(NotFound):
        await here.world.client.get(PROJECTS, "kube-new")


async def test_kubeconfig_writes_the_same(here: TenantProjects, new: str) -> None:
    cluster = ClusterClient(here.world.client)
    text = project_text(new, SPEC)
    assert (await cluster.deploy_project(new, text, "new.yaml")).action == "created"
    assert (await cluster.deploy_project(new, text, "new.yaml")).action == "unchanged"
    assert (await cluster.project_document(new)).spec.owner == "team-new"
    assert (await here.request("dan", "GET", f"/projects/{new}/document")).body["spec"] == SPEC


async def test_version_of_a_part_is_created_once(here: TenantProjects) -> None:
    name = f"{unknown_project()}-1"
    part = {"apiVersion": API_VERSION, "kind": "PinterestSidecar", "metadata": {"name": name}, "spec": {"image": "a:1"}}
    text = msgspec.json.encode(part).decode()
    try:
        created = await here.request("root", "PUT", f"/parts/{name}", text)
        assert (created.status, created.body["action"]) == (201, "created")
        assert (await here.request("root", "PUT", f"/parts/{name}", text)).body["action"] == "unchanged"
        other = await here.request("root", "PUT", f"/parts/{name}", text.replace("a:1", "a:2"))
        assert other.reason == "CannotChange"
        assert (await here.world.client.get(CUSTOM_RESOURCES["PinterestSidecar"], name))["spec"]["image"] == "a:1"
    finally:
        await here.world.client.delete(CUSTOM_RESOURCES["PinterestSidecar"], name)
