"""The audit log over HTTP: members see that of their project, administrators all of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pincompute.api.audit import MAX_AUDIT_ENTRIES
from pincompute.api.fleet import RollStatus
from pincompute.api.project import Project
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.kube.resource import Object
from pincompute.platforms.kubernetes.fleet import FleetClient
from tenant_projects import Believing
from unwatched_desk import PreviewingPlatform, UnwatchedDesk, unwatched_desk
from workloads import HELLO

MEMBERS = {"owner": {"people": ["olga"]}, "deployer": {"people": ["dan"]}, "viewer": {"people": ["vera"]}}
SPEC: Object = {"owner": "team-ads", "review": "open", "quota": {"on-demand": {}}, "members": MEMBERS}


@pytest.fixture
async def audited_desk(tmp_path: Path) -> AsyncGenerator[UnwatchedDesk]:
    project = msgspec.convert({"kind": "Project", "metadata": {"name": "ads"}, "spec": SPEC}, Project)
    async with unwatched_desk(tmp_path, project, PreviewingPlatform, Authenticator([Believing()])) as opened:
        yield opened


async def send(desk: UnwatchedDesk, caller: str, method: str, path: str, body: str = "") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {caller}", "Prefer": "respond-async"}
    async with desk.http.request(method, f"/v1{path}", data=body.encode(), headers=headers) as answer:
        return answer.status, await answer.json()


async def test_members_see_the_log_of_their_project_only(
    audited_desk: UnwatchedDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def changed(_: FleetClient, number: int, *_change: object) -> RollStatus:
        return RollStatus(number)

    monkeypatch.setattr(FleetClient, "change_roll", changed)
    assert (await send(audited_desk, "dan", "POST", "/projects/ads/submissions", HELLO))[0] == 202
    bad = HELLO.replace("8080", "0")
    assert (await send(audited_desk, "dan", "POST", "/projects/ads/submissions", bad))[0] == 422
    roll = '{"paused": "root: looking"}'
    assert (await send(audited_desk, "root", "PATCH", "/runtimes/42/roll", roll))[0] == 200
    status, page = await send(audited_desk, "vera", "GET", "/projects/ads/audit")
    assert status == 200
    assert [(each["caller"], each["act"], each["object"], each["note"]) for each in page["entries"]] == [
        ("dan", "deploy: refused by the desk", "", "DocumentInvalid"),
        ("dan", "deploy: accepted by the desk", "PinterestService/hello", ""),
    ]
    assert page["next"] is None
    status, everything = await send(audited_desk, "root", "GET", "/audit")
    assert status == 200
    newest = everything["entries"][0]
    assert (newest["caller"], newest["act"], newest["object"], newest["project"]) == ("root", "roll", "Runtime/42", "")
    assert msgspec.json.decode(newest["note"]) == {"paused": "root: looking"}
    assert everything["entries"][1:] == page["entries"]


async def test_strangers_and_members_do_not_see_the_log_of_others(audited_desk: UnwatchedDesk) -> None:
    for caller, path, status in (
        ("eve", "/projects/ads/audit", 404),
        ("vera", "/projects/search/audit", 404),
        ("olga", "/audit", 403),
        ("eve", "/audit", 403),
        ("", "/audit", 401),
    ):
        found, answer = await send(audited_desk, caller, "GET", path)
        assert (found, "entries" in answer) == (status, False), (caller, path)


async def test_pages_are_bounded(audited_desk: UnwatchedDesk) -> None:
    for query in (f"limit={MAX_AUDIT_ENTRIES + 1}", "limit=0", "limit=-1", "before=0", "before=9e99", "limit=x"):
        status, answer = await send(audited_desk, "root", "GET", f"/audit?{query}")
        assert (status, answer["errors"][0]["reason"]) == (422, "DocumentInvalid"), query
    for number in range(3):
        await send(
            audited_desk, "dan", "POST", "/projects/ads/submissions", HELLO.replace("name: hello", f"name: w{number}")
        )
    _, first = await send(audited_desk, "vera", "GET", "/projects/ads/audit?limit=2")
    _, second = await send(audited_desk, "vera", "GET", f"/projects/ads/audit?limit=2&before={first['next']}")
    assert [each["object"] for each in (*first["entries"], *second["entries"])] == [
        f"PinterestService/w{number}" for number in (2, 1, 0)
    ]
