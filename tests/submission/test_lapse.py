"""No stream outlives a login or a role."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from control_plane import ControlPlane
from desks import world
from pincompute.api.identity import Identity
from pincompute.api.names import ENGINE
from pincompute.base.problem import Refused
from pincompute.controller.resources import NOUNS
from pincompute.kube.errors import Unreachable
from pincompute.submission.people.door import Door, Shown, not_signed_in
from tenants import Tenants, tenants

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pincompute.submission.guards.AGAIN", 0.05)


class Leaving:
    """Knows everybody, until they are signed out; and for a while nobody answers who could tell."""

    def __init__(self) -> None:
        self.out = self.away = False
        self.asked = asyncio.Event()

    async def identify(self, shown: Shown) -> Identity | None:
        assert not shown.certificate
        self.asked.set()
        if self.away:
            raise Unreachable("the provider", "it does not answer")
        if self.out:
            raise Refused(not_signed_in("your login has run out"))
        return Identity("root", administers=True)


async def last(answer: Any) -> Any:
    async with asyncio.timeout(30):
        *_, line = [line async for line in answer.content]
    return msgspec.json.decode(line)["errors"][0]


async def watching(here: Tenants, who: str) -> Any:
    answer = await here.world.http.get(f"/v1/projects/{here.ads}/changes", headers={"Authorization": f"Bearer {who}"})
    assert answer.status == 200
    await answer.content.readline()
    return answer


async def test_who_is_taken_out_of_a_project_sees_no_more_of_it(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenants(plane, tmp_path) as here:
        vera, dan = await watching(here, "vera"), await watching(here, "dan")
        fewer = {"spec": {"members": {"viewer": {"people": ["somebody else"]}}}}
        await here.world.client.patch(NOUNS["Project"], here.ads, "", fewer, style="merge", manager=ENGINE)
        assert (await last(vera))["reason"] == "ProjectUnknown"
        # The others go on.
        assert not dan.content.at_eof()
        dan.close()


async def test_a_stream_ends_with_the_login_and_not_because_nobody_can_tell(
    plane: ControlPlane, tmp_path: Path
) -> None:
    leaving = Leaving()
    async with world(plane, tmp_path, Door([leaving])) as here:
        answer = await here.http.get(f"/v1/projects/{here.project}/changes")
        await answer.content.readline()
        leaving.away = True
        for _ in range(3):
            leaving.asked.clear()
            await leaving.asked.wait()
        assert not answer.content.at_eof()
        leaving.away, leaving.out = False, True
        assert await last(answer) == not_signed_in("your login has run out").json()
