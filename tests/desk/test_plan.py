"""`pin plan` against a cluster: it shows the changed fields, and writes nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from control_plane import ControlPlane
from pincompute.api.documents import read_documents
from pincompute.api.preview import ObjectAction, Preview
from pincompute.api.validation import parse_resources
from pincompute.base.problem import Refused
from pincompute.kube.client import Client
from pincompute.platforms.kubernetes.workloads import WorkloadClient
from workloads import HELLO, cluster_client, new_project

RUNTIME = """\
apiVersion: pinterest.com/v1
kind: PinterestSidecar
metadata: {name: logs-2}
spec: {image: "logs:2"}
---
apiVersion: pinterest.com/v1
kind: Runtime
metadata: {name: "42"}
spec: {parts: [logs-2]}
"""
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncGenerator[Client]:
    async with cluster_client(plane) as client:
        yield client


async def planned(client: Client, text: str, project: str) -> list[Preview]:
    return await WorkloadClient(client).preview(parse_resources(read_documents(text), project))


async def test_plan_shows_creation(client: Client) -> None:
    project = await new_project(client)
    (preview,) = await planned(client, HELLO, project)
    assert {each.action for each in preview.changes} == {ObjectAction.CREATE}
    assert preview.natives[0]["metadata"]["namespace"] == project


async def test_runtime_and_project_of_a_set_apply_to_its_workloads(client: Client) -> None:
    project = await new_project(client)
    named = (
        f"apiVersion: pinterest.com/v1\nkind: Project\nmetadata: {{name: {project}}}\n"
        "spec: {owner: team-ads, quota: {on-demand: {}}}\n"
    )
    text = "---\n".join([RUNTIME, named, HELLO])
    previews = await planned(client, text, project)
    (deployment,) = [each for one in previews for each in one.natives if each["kind"] == "Deployment"]
    assert deployment["metadata"]["annotations"]["pinterest.com/owner"] == "team-ads"
    assert deployment["spec"]["template"]["metadata"]["annotations"]["pinterest.com/parts"] == "logs-2"
    assert [each["name"] for each in deployment["spec"]["template"]["spec"]["initContainers"]] == ["logs"]


async def test_set_with_an_invalid_document_is_refused_as_a_whole(client: Client) -> None:
    project = await new_project(client)
    faulty = HELLO.replace("port: 8080", "port: 8080, hold: {runtime: 7, until: 2099-01-01}")
    text = "---\n".join([HELLO.replace("hello}", "fine}"), faulty, RUNTIME])
    with pytest.raises(Refused) as refused:
        await planned(client, text, project)
    assert [problem.reason.code for problem in refused.value.problems] == ["HeldRuntimeMissing"]
