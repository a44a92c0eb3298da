"""`pin plan` against a cluster: what would change, in which fields, and nothing is done."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import pytest

from control_plane import ControlPlane
from pincompute.api.admission import admit_all
from pincompute.api.documents import read
from pincompute.api.preview import Preview, Verb
from pincompute.base.problem import Refused
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from workloads import HELLO, cluster, new_project

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
    async with cluster(plane) as client:
        yield client


async def planned(client: Client, text: str, project: str) -> list[Preview]:
    return await Workloads(client).preview(admit_all(read(text), project), NOW)


async def test_what_is_not_there_would_be_made(client: Client) -> None:
    project = await new_project(client)
    (preview,) = await planned(client, HELLO, project)
    assert {each.verb for each in preview.changes} == {Verb.MAKE}
    assert preview.natives[0]["metadata"]["namespace"] == project


async def test_a_runtime_and_a_project_of_the_set_count_for_the_rest_of_it(client: Client) -> None:
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


async def test_a_set_is_taken_whole_or_not_at_all(client: Client) -> None:
    project = await new_project(client)
    faulty = HELLO.replace("port: 8080", "port: 8080, hold: {runtime: 7, until: 2099-01-01}")
    text = "---\n".join([HELLO.replace("hello}", "fine}"), faulty, RUNTIME])
    with pytest.raises(Refused) as refused:
        await planned(client, text, project)
    assert [problem.reason.code for problem in refused.value.problems] == ["HoldGone"]
