"""Somebody signs in at a real provider with `pin login`, and is who they are at the desk, until they no longer are."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from control_plane import ControlPlane
from desks import world
from openid import openid, say_yes
from pincompute.api.whoami import SignIn, Whoami
from pincompute.base.clock import SystemClock
from pincompute.base.context import Context, read_context
from pincompute.base.login import Login, read_login, write_login
from pincompute.base.problem import Refused
from pincompute.cli.desk import desk_port
from pincompute.cli.login import leave, sign_in
from pincompute.cli.openid import asked_of
from pincompute.cli.signed_in import signed_in
from pincompute.submission.people.door import Door
from pincompute.submission.people.openid import OpenId, OpenIdSettings

pytestmark = pytest.mark.cluster

NAME = "far"
LIFE = 600


class Typing(SystemClock):
    """While the hand waits, somebody opens what it shows and types who they are; and time goes on as it is told to."""

    def __init__(self, screen: pytest.CaptureFixture[str], name: str) -> None:
        self.passed = 0.0
        self._screen = screen
        self._name = name

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return super().monotonic() + self.passed

    async def sleep(self, seconds: float) -> None:
        shown = re.search(r"open (\S+)", self._screen.readouterr().err)
        assert shown, "asked again after it was told yes"
        await say_yes(shown[1], self._name)


class Far(NamedTuple):
    """A desk that is on no machine of ours."""

    state: Path
    context: Context
    clock: Typing

    async def sign_in(self) -> str:
        return await sign_in(self.state, self.context, self.clock)

    async def ask(self) -> Whoami:
        context = await signed_in(self.state, read_context(self.state, NAME), self.clock)
        async with desk_port(context) as port:
            return await port.whoami()

    @property
    def login(self) -> Login:
        found = read_login(self.state, NAME)
        assert found
        return found


@asynccontextmanager
async def far(plane: ControlPlane, folder: Path, issuer: str, clock: Typing) -> AsyncGenerator[Far]:
    people = OpenId(OpenIdSettings(issuer, "pin", administrators="infra"), clock)
    async with world(plane, folder, Door([people], "pin login"), SignIn(issuer, "pin")) as here:
        desk = str(here.http.make_url("")).rstrip("/")
        yield Far(folder / "state", Context(name=NAME, desk=desk, token="", kubeconfig=""), clock)


async def test_who_signs_in_is_known_and_stays_so_without_doing_anything(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Typing(capsys, "ads.ann@example.com")
    async with openid(life=LIFE) as issuer, far(plane, tmp_path, issuer, clock) as here:
        assert await here.sign_in() == "ads.ann@example.com"
        told = await here.ask()
        assert (told.groups, told.administers, told.projects) == (["ads"], False, [])
        assert {file.name: oct(file.stat().st_mode & 0o777) for file in (here.state / NAME).iterdir()} == {
            "context.json": "0o600",
            "login.json": "0o600",
        }
        # Near its end it is renewed, once, by however many commands at the same time: the word for it is good once, and
        # a provider that sees it again gives no more.
        for _ in range(2):
            before = here.login
            write_login(here.state, NAME, msgspec.structs.replace(before, until=clock.now().timestamp() + 10))
            asked = await asyncio.gather(*(signed_in(here.state, here.context, clock) for _ in range(4)))
            assert {each.token for each in asked} == {here.login.token}
            assert here.login.refresh != before.refresh
            assert (await here.ask()).name == told.name
        # Whoever shows the old one is somebody whose login has run out.
        clock.passed = LIFE + 120
        async with desk_port(await signed_in(here.state, here.context, SystemClock())) as port:
            with pytest.raises(Refused, match="your login has run out") as refused:
                await port.whoami()
            assert refused.value.problems[0].next == "pin login"


async def test_the_provider_takes_another_key_and_who_left_is_forgotten(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Typing(capsys, "infra.root@example.com")
    async with AsyncExitStack() as before:
        issuer = await before.enter_async_context(openid(key="1", life=LIFE))
        async with far(plane, tmp_path, issuer, clock) as here:
            await here.sign_in()
            assert (await here.ask()).administers
            await _forgotten(here, issuer)
            await before.aclose()
            async with openid(key="2", life=LIFE, port=int(issuer.rpartition(":")[2])):
                # A moment ago its keys were asked for.
                clock.passed = 10.0
                assert await here.sign_in() == "infra.root@example.com"
                assert (await here.ask()).administers


async def _forgotten(here: Far, issuer: str) -> None:
    """Who signs out is nobody at the provider, either."""
    word = here.login
    await leave(here.state, NAME)
    assert read_login(here.state, NAME) is None
    async with asked_of(issuer, "pin", here.clock) as provider:
        with pytest.raises(Refused, match="has not signed you in"):
            await provider.renew(word)
