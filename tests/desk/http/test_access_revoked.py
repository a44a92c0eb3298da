"""No stream outlives a login or a role."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from desk_fixtures import desk_world
from pincompute.api.identity import Identity
from pincompute.api.names import ENGINE
from pincompute.base.problem import Refused
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.authn.authenticator import Authenticator, Credentials, unauthenticated
from pincompute.kube.errors import Unreachable
from tenant_projects import TenantProjects, tenant_projects

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pincompute.desk.http.auth.ACCESS_RECHECK_INTERVAL_S", 0.05)


class RevocableAuth:
    """Accepts every token until the login has ended, and can be unavailable."""

    def __init__(self) -> None:
        self.signed_out = self.unavailable = False
        self.checked = asyncio.Event()

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        assert not credentials.certificate
        self.checked.set()
        if self.unavailable:
            raise Unreachable("the provider", "it does not answer")
        if self.signed_out:
            raise Refused(unauthenticated("your login has expired"))
        return Identity("root", is_admin=True)


async def last(answer: Any) -> Any:
    async with asyncio.timeout(120):
        *_, line = [line async for line in answer.content]
    return msgspec.json.decode(line)["errors"][0]


async def watching(here: TenantProjects, who: str) -> Any:
    answer = await here.world.http.get(f"/v1/projects/{here.ads}/changes", headers={"Authorization": f"Bearer {who}"})
    assert answer.status == 200
    await answer.content.readline()
    return answer


async def test_stream_ends_when_the_member_is_removed(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path) as here:
        vera, dan = await watching(here, "vera"), await watching(here, "dan")
        fewer = {"spec": {"members": {"viewer": {"people": ["zoe"]}}}}
        await here.world.client.patch(CUSTOM_RESOURCES["Project"], here.ads, "", fewer, style="merge", manager=ENGINE)
        assert (await last(vera))["reason"] == "ProjectUnknown"
        # Other members are not affected.
        assert not dan.content.at_eof()
        dan.close()


async def test_stream_ends_with_the_login_and_survives_an_unavailable_provider(
    plane: ControlPlane, tmp_path: Path
) -> None:
    provider = RevocableAuth()
    async with desk_world(plane, tmp_path, Authenticator([provider])) as here:
        answer = await here.http.get(f"/v1/projects/{here.project}/changes")
        await answer.content.readline()
        provider.unavailable = True
        for _ in range(3):
            provider.checked.clear()
            await provider.checked.wait()
        assert not answer.content.at_eof()
        provider.unavailable, provider.signed_out = False, True
        assert await last(answer) == unauthenticated("your login has expired").json()
