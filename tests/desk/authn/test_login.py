"""`pin login` with a real OpenID provider: login, renewal, key rotation and sign-out."""

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
from desk_fixtures import desk_world
from openid_server import openid_server, sign_in_with_browser
from pincompute.api.whoami import SignIn, Whoami
from pincompute.base.clock import SystemClock
from pincompute.base.platform_context import Context, read_context
from pincompute.base.problem import Refused
from pincompute.base.saved_login import SavedLogin, read_login, write_login
from pincompute.cli.desk_client import open_desk_client
from pincompute.cli.device_login import open_provider
from pincompute.cli.login import sign_in, sign_out
from pincompute.cli.session_token import with_current_token
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.desk.authn.openid import OpenIdAuth, OpenIdSettings

pytestmark = pytest.mark.cluster

NAME = "far"
LIFE = 600


class Typing(SystemClock):
    """Its sleep opens the login page as the user would do; its time is set by the test."""

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
        await sign_in_with_browser(shown[1], self._name)


class Far(NamedTuple):
    """A desk without a local token."""

    state: Path
    context: Context
    clock: Typing

    async def sign_in(self) -> str:
        return await sign_in(self.state, self.context, self.clock)

    async def fetch_whoami(self) -> Whoami:
        context = await with_current_token(self.state, read_context(self.state, NAME), self.clock)
        async with open_desk_client(context) as port:
            return await port.whoami()

    @property
    def login(self) -> SavedLogin:
        found = read_login(self.state, NAME)
        assert found
        return found


@asynccontextmanager
async def far(plane: ControlPlane, folder: Path, issuer: str, clock: Typing) -> AsyncGenerator[Far]:
    people = OpenIdAuth(OpenIdSettings(issuer, "pin", administrators="infra"), clock)
    async with desk_world(plane, folder, Authenticator([people], "pin login"), SignIn(issuer, "pin")) as here:
        desk = str(here.http.make_url("")).rstrip("/")
        yield Far(folder / "state", Context(name=NAME, desk=desk, token="", kubeconfig=""), clock)


async def test_login_is_renewed_automatically(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Typing(capsys, "ads.ann@example.com")
    async with openid_server(life=LIFE) as issuer, far(plane, tmp_path, issuer, clock) as here:
        assert await here.sign_in() == "ads.ann@example.com"
        told = await here.fetch_whoami()
        assert (told.groups, told.is_admin, told.projects) == (["ads"], False, [])
        assert {file.name: oct(file.stat().st_mode & 0o777) for file in (here.state / NAME).iterdir()} == {
            "context.json": "0o600",
            "login.json": "0o600",
        }
        # Shortly before it expires it is renewed, once for all concurrent commands: a refresh token is valid once, and
        # a provider that sees it again revokes the login.
        for _ in range(2):
            before = here.login
            write_login(here.state, NAME, msgspec.structs.replace(before, expires_at=clock.now().timestamp() + 10))
            asked = await asyncio.gather(*(with_current_token(here.state, here.context, clock) for _ in range(4)))
            assert {each.token for each in asked} == {here.login.token}
            assert here.login.refresh != before.refresh
            assert (await here.fetch_whoami()).name == told.name
        # The former token has expired.
        clock.passed = LIFE + 120
        async with open_desk_client(await with_current_token(here.state, here.context, SystemClock())) as port:
            with pytest.raises(Refused, match="your login has expired") as refused:
                await port.whoami()
            assert refused.value.problems[0].next == "pin login"


async def test_key_rotation_and_sign_out(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Typing(capsys, "infra.root@example.com")
    async with AsyncExitStack() as before:
        issuer = await before.enter_async_context(openid_server(key="1", life=LIFE))
        async with far(plane, tmp_path, issuer, clock) as here:
            await here.sign_in()
            assert (await here.fetch_whoami()).is_admin
            await _forgotten(here, issuer)
            await before.aclose()
            async with openid_server(key="2", life=LIFE, port=int(issuer.rpartition(":")[2])):
                # Keys were fetched a moment ago.
                clock.passed = 10.0
                assert await here.sign_in() == "infra.root@example.com"
                assert (await here.fetch_whoami()).is_admin


async def _forgotten(here: Far, issuer: str) -> None:
    """Sign-out revokes the tokens at the provider, too."""
    word = here.login
    await sign_out(here.state, NAME)
    assert read_login(here.state, NAME) is None
    async with open_provider(issuer, "pin", here.clock) as provider:
        with pytest.raises(Refused, match="rejected the login"):
            await provider.refresh_login(word)
