"""Tickets for sessions with node agents: authorized and recorded first, and ended with the caller's access."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import aiohttp
import msgspec
import pytest

from pincompute.api.debug import DebugRequest, DebugTicket
from pincompute.api.identity import Identity
from pincompute.api.project import Members, Project, ProjectSpec, RoleHolders
from pincompute.api.service import PinterestService, ServiceSpec
from pincompute.api.structs import Metadata
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import Authenticator, Credentials, unauthenticated
from pincompute.desk.debug_agents import DebugAgents, OpenedSession
from pincompute.desk.store.tables import audit
from unwatched_desk import UnwatchedDesk, unwatched_desk

PATH = "/v1/projects/ads/workloads/web/sessions"
WEB = PinterestService(
    metadata=Metadata(name="web", namespace="ads", uid="1"), spec=ServiceSpec(image="web:1", port=80)
)


class RecordingAgents:
    def __init__(self) -> None:
        self.opened: list[tuple[str, DebugRequest, str]] = []
        self.ended = asyncio.Event()

    async def open(self, workload: Workload, request: DebugRequest, caller: str) -> OpenedSession:
        self.opened.append((workload.metadata.name, request, caller))
        ticket = DebugTicket(
            url="https://10.0.0.1:10260", authority="", grant="g", request="{}", node="n", replica="web-1",
            container="web",
        )  # fmt: skip
        return OpenedSession(ticket, "session-1", caller)

    async def end_session(self, opened: OpenedSession) -> None:
        self.ended.set()


class OneWorkload:
    async def get_workload(self, project: str, name: str) -> Workload:
        assert (project, name) == ("ads", "web")
        return WEB


class TokenIsName:
    """Believes every token, and those that have signed out no more."""

    def __init__(self) -> None:
        self.signed_out: set[str] = set()

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        if credentials.token in self.signed_out:
            raise Refused(unauthenticated("your login has expired"))
        return Identity(credentials.token)


@pytest.fixture
def logins() -> TokenIsName:
    return TokenIsName()


@pytest.fixture
async def session_desk(tmp_path: Path, logins: TokenIsName) -> AsyncGenerator[UnwatchedDesk]:
    members = Members(owner=RoleHolders(people=["olga"]), viewer=RoleHolders(people=["vera"]))
    project = Project(metadata=Metadata(name="ads"), spec=ProjectSpec(owner="olga", members=members))
    async with unwatched_desk(tmp_path, project, authenticator=Authenticator([logins])) as opened:
        opened.platform.reader = cast("Any", OneWorkload())
        yield opened


@pytest.fixture
def agents(session_desk: UnwatchedDesk) -> RecordingAgents:
    recording = RecordingAgents()
    session_desk.desk._debug_agents = cast("DebugAgents", recording)  # noqa: SLF001
    return recording


def bearer(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {name}"}


async def audited(session_desk: UnwatchedDesk) -> list[str]:
    rows = await session_desk.desk._database.transact(  # noqa: SLF001
        lambda connection: connection.execute(audit.select()).mappings().all()
    )
    return [each["words"] for each in rows if each["act"] == "enter"]


async def test_ticket_is_recorded_and_ends_with_its_connection(
    session_desk: UnwatchedDesk, agents: RecordingAgents
) -> None:
    query = {"verb": "read", "path": "/data", "replica": "abcde"}
    async with session_desk.http.ws_connect(PATH, params=query, headers=bearer("olga")) as socket:
        ticket = msgspec.json.decode(await socket.receive_bytes(timeout=60), type=DebugTicket)
        assert ticket.replica == "web-1"
        assert agents.opened == [("web", DebugRequest(verb="read", path="/data", replica="abcde"), "olga")]
        assert await audited(session_desk) == ["copied /data from abcde"]
        assert not agents.ended.is_set()
    async with asyncio.timeout(60):
        await agents.ended.wait()


async def test_session_ends_when_the_caller_loses_access(
    session_desk: UnwatchedDesk, agents: RecordingAgents, logins: TokenIsName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pincompute.desk.http.auth.ACCESS_RECHECK_INTERVAL_S", 0.05)
    query = {"command": "sh"}
    async with session_desk.http.ws_connect(PATH, params=query, headers=bearer("olga")) as socket:
        await socket.receive_bytes(timeout=60)
        logins.signed_out.add("olga")
        message = await socket.receive(timeout=60)
        assert (message.type, socket.close_code) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.POLICY_VIOLATION)
    async with asyncio.timeout(60):
        await agents.ended.wait()


@pytest.mark.parametrize(
    "query",
    [{}, {"verb": "read"}, {"verb": "write", "path": "/a", "ended": "true"}, {"verb": "mount"}, {"command": "a\0"},
     {"verb": "list", "path": "/" * 5_000}],
)  # fmt: skip
async def test_invalid_requests_are_refused_and_not_recorded(
    session_desk: UnwatchedDesk, agents: RecordingAgents, query: dict[str, str]
) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError, match="422"):
        await session_desk.http.ws_connect(PATH, params=query, headers=bearer("olga"))
    assert (agents.opened, await audited(session_desk)) == ([], [])


@pytest.mark.usefixtures("agents")
async def test_viewers_and_strangers_get_no_ticket(session_desk: UnwatchedDesk) -> None:
    for caller, status in (("vera", "403"), ("mallory", "404")):
        with pytest.raises(aiohttp.WSServerHandshakeError, match=status):
            await session_desk.http.ws_connect(PATH, params={"command": "sh"}, headers=bearer(caller))
    assert await audited(session_desk) == []


async def test_platform_without_agents_says_so(session_desk: UnwatchedDesk) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError, match="409"):
        await session_desk.http.ws_connect(PATH, params={"command": "sh"}, headers=bearer("olga"))
    assert await audited(session_desk) == []
