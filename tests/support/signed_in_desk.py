"""A desk at which browsers sign in: by one-time links, and at an OpenID provider of the test."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from backends import free_port
from browser import Browser
from fake_openid_provider import AUDIENCE, FakeProvider, ManualClock, fake_provider
from pincompute.api.project import Project
from pincompute.base.clock import Clock
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.desk.authn.code_flow import CodeFlow, CodeFlowSettings
from pincompute.desk.authn.openid import OpenIdAuth, OpenIdSettings
from pincompute.kube.resource import Object
from tenant_projects import Believing
from unwatched_desk import PreviewingPlatform, UnwatchedDesk, unwatched_desk

MEMBERS = {"owner": {"people": ["olga"]}, "viewer": {"people": ["ann@example.com"], "groups": ["ads"]}}
SPEC: Object = {"owner": "team-ads", "review": "open", "quota": {"on-demand": {}}, "members": MEMBERS}


def project_ads(**changed: object) -> Project:
    """The project with the members above, unless they are changed."""
    return msgspec.convert({"kind": "Project", "metadata": {"name": "ads"}, "spec": {**SPEC, **changed}}, Project)


class SignedInDesk(NamedTuple):
    desk: UnwatchedDesk
    provider: FakeProvider
    clock: ManualClock

    def browser(self) -> Browser:
        return Browser(self.desk.http)

    async def browser_of(self, token: str) -> Browser:
        """Signed in by a link of the caller with this bearer token."""
        browser = self.browser()
        assert (await browser.open_link(token)).status == 200
        return browser


def code_flow_at(port: int, issuer: str, client: str, clock: Clock, secret: str = "") -> CodeFlow:
    """The sign-in of browsers at a desk with this port."""
    settings = OpenIdSettings(issuer, client, administrators="infra")
    flow = CodeFlowSettings(issuer, client, "openid email", f"http://127.0.0.1:{port}")
    return CodeFlow(flow, OpenIdAuth(settings, clock), clock, lambda: secret)


@asynccontextmanager
async def signed_in_desk(folder: Path) -> AsyncGenerator[SignedInDesk]:
    """Project `ads` has the members above; a bearer token is a name, and `root` is an administrator."""
    clock, port = ManualClock(), free_port()
    async with (
        fake_provider() as provider,
        unwatched_desk(
            folder, project_ads(), PreviewingPlatform, Authenticator([Believing()]), clock=clock, port=port,
            code_flow=code_flow_at(port, provider.issuer, AUDIENCE, clock),
        ) as desk,
    ):  # fmt: skip
        yield SignedInDesk(desk, provider, clock)
