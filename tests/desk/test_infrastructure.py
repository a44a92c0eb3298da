"""Runtimes and runtime parts over HTTP: administrators create versions of them, which are immutable."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pincompute.api.project import Project
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.kube.resource import Object
from tenant_projects import Believing
from unwatched_desk import PreviewingPlatform, UnwatchedDesk, unwatched_desk

MEMBERS: Object = {"owner": {"people": ["olga"]}, "viewer": {"people": ["vera"]}}
SPEC: Object = {"owner": "team-ads", "quota": {"on-demand": {}}, "members": MEMBERS}
PART = 'apiVersion: pinterest.com/v1\nkind: PinterestSidecar\nmetadata: {name: logs-2}\nspec: {image: "logs:2"}\n'
RUNTIME = 'apiVersion: pinterest.com/v1\nkind: Runtime\nmetadata: {name: "42"}\nspec: {parts: [logs-2]}\n'


@pytest.fixture
async def fleet_desk(tmp_path: Path) -> AsyncGenerator[UnwatchedDesk]:
    """A desk of a platform with the part logs-2 and runtime 42."""
    project = msgspec.convert({"kind": "Project", "metadata": {"name": "ads"}, "spec": SPEC}, Project)
    async with unwatched_desk(tmp_path, project, PreviewingPlatform, Authenticator([Believing()])) as opened:
        yield opened


async def send_to(fleet_desk: UnwatchedDesk, caller: str, method: str, path: str, body: str = "") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {caller}", "Prefer": "respond-async"}
    async with fleet_desk.http.request(method, f"/v1{path}", data=body.encode(), headers=headers) as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize(
    ("path", "text", "reason", "hint"),
    [
        ("/parts/logs-2", PART, "", ""),
        ("/parts/logs-3", PART.replace("logs-2", "logs-3").replace("logs:2", "logs:3"), "", ""),
        ("/parts/logs-2", PART.replace("logs:2", "logs:other"), "CannotChange", "name it logs-3"),
        ("/parts/logs-9", PART, "DocumentInvalid", "write metadata: {name: logs-9}"),
        ("/parts/logs-2", RUNTIME, "KindUnknown", "pin deploy FILE"),
        ("/parts/logs", PART, "PartUnknown", ""),
        ("/runtimes/42", RUNTIME, "", ""),
        ("/runtimes/43", RUNTIME.replace("42", "43"), "", ""),
        ("/runtimes/42", RUNTIME.replace("logs-2", "logs-2, tracing-1"), "CannotChange", 'name: "43"'),
        (
            "/runtimes/42",
            RUNTIME.replace("[logs-2]", "[logs-2], roll: {waves: [100]}"),
            "CannotChange",
            "pin runtime roll 42, or remove roll from the document",
        ),
        ("/runtimes/7", RUNTIME, "DocumentInvalid", "write metadata: {name: 7}"),
        ("/runtimes/42", "kind: [", "DocumentInvalid", ""),
    ],
)
async def test_versions_are_created_and_never_changed(
    fleet_desk: UnwatchedDesk, path: str, text: str, reason: str, hint: str
) -> None:
    status, body = await send_to(fleet_desk, "root", "PUT", path, text)
    if not reason:
        assert (status, body["verb"], body["url"]) == (202, "deploy", "/v1/submissions/submission-1")
        assert (await send_to(fleet_desk, "root", "GET", "/submissions/submission-1"))[1]["id"] == "submission-1"
        return
    assert body["errors"][0]["reason"] == reason
    assert not hint or body["errors"][0]["next"] == hint


async def test_members_deploy_none_and_learn_of_none(fleet_desk: UnwatchedDesk) -> None:
    for caller in ("olga", "vera", "eve"):
        for path, text in (("/parts/logs-2", PART), ("/runtimes/42", RUNTIME), ("/parts/none-1", PART)):
            status, body = await send_to(fleet_desk, caller, "PUT", path, text)
            assert (status, body["errors"][0]["reason"]) == (403, "Forbidden")
        assert (await send_to(fleet_desk, caller, "GET", "/submissions/submission-1"))[0] == 403


async def test_audit_log_of_the_platform_has_them_and_that_of_a_project_has_not(fleet_desk: UnwatchedDesk) -> None:
    new = PART.replace("logs-2", "logs-3")
    assert (await send_to(fleet_desk, "root", "PUT", "/parts/logs-3", new))[0] == 202
    assert (await send_to(fleet_desk, "root", "PUT", "/parts/logs-3", new.replace("logs:2", "logs:4")))[0] == 409
    _, page = await send_to(fleet_desk, "root", "GET", "/audit")
    assert [(each["act"], each["object"], each["note"]) for each in page["entries"]] == [
        ("deploy: refused by the desk", "PinterestSidecar/logs-3", "CannotChange"),
        ("deploy: accepted by the desk", "PinterestSidecar/logs-3", "created"),
    ]
    assert (await send_to(fleet_desk, "olga", "GET", "/projects/ads/audit"))[1]["entries"] == []


@pytest.mark.parametrize("text", [PART, PART.replace("logs:2", "logs:other"), RUNTIME.replace("[logs-2]", "[gone-1]")])
async def test_plan_reports_the_refusals_of_the_deploy(fleet_desk: UnwatchedDesk, text: str) -> None:
    path = "/parts/logs-2" if "Sidecar" in text else "/runtimes/42"
    _, planned = await send_to(fleet_desk, "root", "POST", "/projects/ads/plans", text)
    _, deployed = await send_to(fleet_desk, "root", "PUT", path, text)
    assert [each for one in planned for each in one["errors"]] == deployed.get("errors", [])
