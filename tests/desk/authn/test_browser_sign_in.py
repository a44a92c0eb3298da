"""Sign-in of browsers at a real OpenID provider, as a confidential and as a public client."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends import free_port
from browser import Browser
from openid_server import openid_server, sign_in_with_browser
from pincompute.api.session import CALLBACK_PATH
from pincompute.base.clock import SystemClock
from pincompute.desk.authn.authenticator import Authenticator
from signed_in_desk import code_flow_at, project_ads
from unwatched_desk import PreviewingPlatform, unwatched_desk

pytestmark = pytest.mark.cluster

SECRET = "a secret: 100% + one"


@pytest.mark.parametrize(("client", "secret"), [("web", SECRET), ("web-public", "")])
async def test_person_signs_in_at_the_provider(tmp_path: Path, client: str, secret: str) -> None:
    clock, port = SystemClock(), free_port()
    async with (
        openid_server() as issuer,
        unwatched_desk(
            tmp_path, project_ads(), PreviewingPlatform, Authenticator([]), clock=clock, port=port,
            code_flow=code_flow_at(port, issuer, client, clock, secret),
        ) as desk,
    ):  # fmt: skip
        browser = Browser(desk.http)
        begun = await browser.send("GET", "/session/openid?returnTo=/ui/projects/ads")
        assert begun.status == 303, begun.text
        callback = f"{browser.origin}{CALLBACK_PATH}"
        returned = await sign_in_with_browser(begun.headers["Location"], "ads.ann@example.com", callback)
        assert returned.startswith(callback)
        path = returned.removeprefix(browser.origin)
        answer = await browser.send("GET", path, site="cross-site", headers={"Sec-Fetch-Mode": "navigate"})
        assert (answer.status, answer.headers.get("Location")) == (303, "/ui/projects/ads"), answer.text
        shown = await browser.send("GET", "/session")
        assert (shown.body["user"], shown.body["administrator"]) == ("ads.ann@example.com", False)
        whoami = await browser.send("GET", "/v1/whoami")
        assert (whoami.body["groups"], [each["project"] for each in whoami.body["projects"]]) == (["ads"], ["ads"])
        # The same answer again, in a browser with the same attempt.
        attempt = {name: value.partition("=")[2].partition(";")[0] for name, value in begun.cookies.items()}
        replayed = await Browser(desk.http, attempt).send("GET", path)
        assert (replayed.status, replayed.reason) == (401, "Unauthenticated")


async def test_wrong_secret_of_the_desk_is_said(tmp_path: Path) -> None:
    clock, port = SystemClock(), free_port()
    async with (
        openid_server() as issuer,
        unwatched_desk(
            tmp_path, project_ads(), PreviewingPlatform, Authenticator([]), clock=clock, port=port,
            code_flow=code_flow_at(port, issuer, "web", clock, "wrong"),
        ) as desk,
    ):  # fmt: skip
        browser = Browser(desk.http)
        begun = await browser.send("GET", "/session/openid")
        callback = f"{browser.origin}{CALLBACK_PATH}"
        returned = await sign_in_with_browser(begun.headers["Location"], "ads.ann@example.com", callback)
        answer = await browser.send("GET", returned.removeprefix(browser.origin))
        assert answer.status == 401
        assert "invalid_client" in answer.text
        assert "wrong" not in answer.text
