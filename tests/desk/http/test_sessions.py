"""The endpoints of sessions: what a page asks to sign in, look and sign out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from browser import Browser
from pincompute.desk.authn.authenticator import SESSION_COOKIE
from pincompute.desk.authn.sessions import ATTEMPT_COOKIE
from signed_in_desk import SignedInDesk, project_ads, signed_in_desk


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncGenerator[SignedInDesk]:
    async with signed_in_desk(tmp_path) as opened:
        yield opened


async def test_link_signs_a_browser_in_and_out(scene: SignedInDesk) -> None:
    browser = scene.browser()
    before = await browser.send("GET", "/session")
    assert (before.status, before.reason) == (401, "Unauthenticated")
    assert before.body["errors"][0]["next"] == "pin open"
    answer = await browser.open_link("olga")
    assert answer.status == 200
    cookie = answer.cookies[SESSION_COOKIE]
    assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Domain" not in cookie
    assert answer.headers["Cache-Control"] == "no-store"
    shown = await browser.send("GET", "/session")
    assert shown.body == {
        "user": "olga",
        "administrator": False,
        "csrf": browser.csrf,
        "expires": "2026-11-23T00:00:00+00:00",
        "openid": True,
    }
    assert browser.session not in shown.text
    whoami = await browser.send("GET", "/v1/whoami")
    assert (whoami.body["name"], [each["role"] for each in whoami.body["projects"]]) == ("olga", ["owner"])
    assert whoami.headers["Cache-Control"] == "private, no-cache"
    assert whoami.headers["X-Content-Type-Options"] == "nosniff"
    assert (await browser.send("DELETE", "/session")).status == 204
    assert not browser.session
    assert (await browser.send("GET", "/session")).status == 401


async def test_session_changes_things_with_its_token_only(scene: SignedInDesk) -> None:
    browser = await scene.browser_of("olga")
    for csrf, status in ((browser.csrf, 422), ("", 403)):
        answer = await browser.send("POST", "/v1/projects/ads/submissions", {"kind": "Unknown"}, csrf=csrf)
        assert answer.status == status, answer.text


async def test_bearer_token_needs_neither_and_wins_over_the_cookie(scene: SignedInDesk) -> None:
    browser = await scene.browser_of("olga")
    headers = {"Authorization": "Bearer root"}
    shown = await browser.send("GET", "/session", headers=headers)
    assert (shown.body["user"], shown.body["administrator"], shown.body["csrf"]) == ("root", True, "")
    ended = await browser.send("DELETE", "/v1/sessions", csrf="", site="cross-site", headers=headers)
    assert ended.body == {"user": "root", "ended": 0}
    # A header with other credentials is not replaced by the cookie.
    assert (await browser.send("GET", "/session", headers={"Authorization": "Basic b2xnYTp4"})).status == 401


async def test_rights_are_those_of_the_moment(scene: SignedInDesk) -> None:
    browser = await scene.browser_of("olga")
    assert (await browser.send("GET", "/v1/projects/ads/audit")).status == 200
    scene.desk.platform.project = project_ads(members={})
    assert (await browser.send("GET", "/v1/projects/ads/audit")).status == 404


async def test_provider_signs_a_browser_in(scene: SignedInDesk) -> None:
    browser = scene.browser()
    asked = await browser.begin_openid("/ui/projects/ads?tab=quota")
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert asked["redirect_uri"] == f"{browser.origin}/session/openid/callback"
    answer = await browser.finish_openid(scene.provider, asked, groups=["ads"])
    assert (answer.status, answer.headers["Location"]) == (303, "/ui/projects/ads?tab=quota")
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert ATTEMPT_COOKIE not in browser.cookies
    shown = await browser.send("GET", "/session")
    assert (shown.body["user"], shown.body["administrator"]) == ("ann@example.com", False)
    # Longer than the ID token, which lives for ten minutes.
    assert shown.body["expires"] == "2026-11-23T00:00:00+00:00"
    assert (await browser.send("GET", "/v1/projects/ads/audit")).status == 200
    audit = await Browser(scene.desk.http).send("GET", "/v1/audit", headers={"Authorization": "Bearer root"})
    assert [(each["caller"], each["act"], each["note"]) for each in audit.body["entries"]] == [
        ("ann@example.com", "sign-in", "OpenID, from 127.0.0.1")
    ]


async def test_refusal_of_the_provider_is_a_page_for_people(scene: SignedInDesk) -> None:
    browser = scene.browser()
    asked = await browser.begin_openid()
    path = f"/session/openid/callback?error=access_denied&error_description=<b>no</b>&state={asked['state']}"
    answer = await browser.send("GET", path, headers={"Accept": "text/html,*/*"})
    assert answer.status == 401
    assert "the provider refused the sign-in: &lt;b&gt;no&lt;/b&gt;" in answer.text
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert not browser.session


async def test_administrator_ends_sessions_of_a_user(scene: SignedInDesk) -> None:
    browser = await scene.browser_of("olga")
    other = await scene.browser_of("otto")
    refused = await other.send("DELETE", "/v1/sessions?user=olga")
    assert (refused.status, refused.reason) == (403, "Forbidden")
    headers = {"Authorization": "Bearer root"}
    ended = await scene.browser().send("DELETE", "/v1/sessions?user=olga", headers=headers)
    assert ended.body == {"user": "olga", "ended": 1}
    assert (await browser.send("GET", "/session")).status == 401
    assert (await other.send("DELETE", "/v1/sessions")).body == {"user": "otto", "ended": 1}
    assert (await other.send("GET", "/session")).status == 401


async def test_program_and_session_get_no_link(scene: SignedInDesk) -> None:
    browser = await scene.browser_of("olga")
    refused = await browser.send("POST", "/session/link")
    assert (refused.status, refused.reason) == (403, "Forbidden")


async def test_desk_without_a_provider_says_so(tmp_path: Path, scene: SignedInDesk) -> None:
    from unwatched_desk import unwatched_desk

    folder = tmp_path / "other"
    folder.mkdir()
    async with unwatched_desk(folder, scene.desk.platform.project) as desk:
        for path in ("/session/openid", "/session/openid/callback?code=x&state=y"):
            answer = await Browser(desk.http).send("GET", path)
            assert (answer.status, answer.reason) == (404, "SignInNotConfigured")


async def test_unavailable_provider_is_said_and_asked_seldom(scene: SignedInDesk) -> None:
    scene.provider.unavailable = True
    for _ in range(5):
        answer = await scene.browser().send("GET", "/session/openid")
        assert (answer.status, answer.reason) == (503, "SignInUnavailable")
    assert scene.provider.discovery_requests == 1
    scene.provider.unavailable = False
    scene.clock.elapsed_s += 5
    assert (await scene.browser().send("GET", "/session/openid")).status == 303
