"""Sessions of browsers attacked: by other sites, by stolen or planted cookies, and by answers of other providers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import WSServerHandshakeError
from joserfc.jwk import RSAKey

from browser import Answer, Browser
from fake_openid_provider import ManualClock
from pincompute.api.identity import Identity
from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import SESSION_COOKIE, Credentials
from pincompute.desk.authn.code_flow import SignInAttempt
from pincompute.desk.authn.sessions import ATTEMPT_COOKIE, Sessions
from pincompute.desk.store import sessions as store
from pincompute.desk.store.database import open_database
from pincompute.desk.store.tables import sessions as table
from signed_in_desk import SignedInDesk, signed_in_desk

EVIL = "https://evil.example"


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncGenerator[SignedInDesk]:
    async with signed_in_desk(tmp_path) as opened:
        yield opened


async def bearer(scene: SignedInDesk, caller: str, method: str, path: str) -> Answer:
    return await scene.browser().send(method, path, headers={"Authorization": f"Bearer {caller}"})


async def test_replayed_link_signs_nobody_in(scene: SignedInDesk) -> None:
    link = (await bearer(scene, "olga", "POST", "/session/link")).body["code"]
    victim, attacker = scene.browser(), scene.browser()
    assert (await victim.redeem(link)).status == 200
    for _ in range(3):
        refused = await attacker.redeem(link)
        assert (refused.status, refused.reason) == (401, "Unauthenticated")
        assert link not in refused.text
    assert not attacker.session


async def test_replayed_answer_of_the_provider_signs_nobody_in(scene: SignedInDesk) -> None:
    """Also in the same browser, with the cookie of the attempt restored: the provider accepts a code once."""
    browser = scene.browser()
    asked = await browser.begin_openid()
    attempt = browser.cookies[ATTEMPT_COOKIE]
    assert (await browser.finish_openid(scene.provider, asked)).status == 303
    path = f"/session/openid/callback?code=code-0&state={asked['state']}"
    assert (await scene.browser().send("GET", path)).status == 401
    thief = Browser(scene.desk.http, {ATTEMPT_COOKIE: attempt})
    assert (await thief.send("GET", path)).status == 401
    assert not thief.session
    assert [each["code"] for each in scene.provider.exchanges] == ["code-0", "code-0"]


async def test_answer_for_another_browser_is_refused(scene: SignedInDesk) -> None:
    """An attacker sends their own answer to a victim, who would then work as the attacker."""
    attacker, victim = scene.browser(), scene.browser()
    of_attacker = await attacker.begin_openid()
    for prepare in (False, True):
        if prepare:
            await victim.begin_openid()
        answer = await victim.finish_openid(scene.provider, of_attacker)
        assert (answer.status, answer.reason) == (401, "Unauthenticated")
        assert not victim.session
    assert scene.provider.exchanges == []


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"nonce": "of-another-sign-in"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"aud": "another-client"}, "InvalidClaimError"),
        ({"iss": EVIL}, "InvalidClaimError"),
        ({"email_verified": False}, "not verified"),
        ({"email": "program ads/ci"}, "reserved prefix"),
        ({"key": RSAKey.generate_key(2048, {"kid": "1"})}, "invalid token"),
        ({"groups": ["g" * 30_000]}, "no usable ID token"),
    ],
)
async def test_token_of_another_sign_in_or_issuer_is_refused(
    scene: SignedInDesk, claims: dict[str, Any], message: str
) -> None:
    browser = scene.browser()
    asked = await browser.begin_openid()
    answer = await browser.finish_openid(scene.provider, asked, **claims)
    assert answer.status == 401
    assert message in answer.text
    assert not browser.session


async def test_answer_of_a_mixed_up_issuer_never_reaches_the_token_endpoint(scene: SignedInDesk) -> None:
    browser = scene.browser()
    for names_itself, issuer in ((False, EVIL), (True, ""), (True, EVIL)):
        scene.provider.names_itself = names_itself
        scene.clock.elapsed_s += 600
        asked = await browser.begin_openid()
        path = f"/session/openid/callback?code=stolen&state={asked['state']}&iss={quote(issuer)}"
        assert (await browser.send("GET", path)).status == 401
    assert scene.provider.exchanges == []


async def test_sign_in_that_takes_too_long_is_refused(scene: SignedInDesk) -> None:
    browser = scene.browser()
    asked = await browser.begin_openid()
    scene.clock.elapsed_s += 601
    answer = await browser.finish_openid(scene.provider, asked)
    assert (answer.status, "longer than 600 seconds" in answer.text) == (401, True)


async def test_planted_session_is_not_taken_over(scene: SignedInDesk) -> None:
    """Fixation: the value that an attacker knows is not that of the session, and their own session ends."""
    attacker = await scene.browser_of("otto")
    planted = attacker.session
    victim = Browser(scene.desk.http, {SESSION_COOKIE: planted})
    refused = await victim.open_link("olga")
    assert (refused.status, refused.reason) == (409, "SignedInAsOther")
    victim.csrf = attacker.csrf
    assert (await victim.send("DELETE", "/session")).status == 204
    assert (await attacker.send("GET", "/session")).status == 401
    # A value that the desk has never given.
    victim.cookies[SESSION_COOKIE] = planted = "x" * 43
    assert (await victim.open_link("olga")).status == 200
    assert victim.session != planted
    assert (await Browser(scene.desk.http, {SESSION_COOKIE: planted}).send("GET", "/session")).status == 401
    asked = await victim.begin_openid()
    before = victim.session
    assert (await victim.finish_openid(scene.provider, asked)).status == 303
    assert victim.session != before
    assert (await Browser(scene.desk.http, {SESSION_COOKIE: before}).send("GET", "/session")).status == 401


async def test_link_of_an_attacker_does_not_replace_a_session(scene: SignedInDesk) -> None:
    """Its reader would work as its writer, and give them what they type."""
    victim = await scene.browser_of("olga")
    link = (await bearer(scene, "otto", "POST", "/session/link")).body["code"]
    refused = await victim.redeem(link)
    assert (refused.status, refused.reason) == (409, "SignedInAsOther")
    assert (await victim.send("GET", "/session")).body["user"] == "olga"
    assert (await victim.open_link("olga")).status == 200


async def test_token_of_another_user_changes_nothing(scene: SignedInDesk) -> None:
    olga, otto = [await scene.browser_of(each) for each in ("olga", "otto")]
    for method, path in (("DELETE", "/session"), ("DELETE", "/v1/sessions"), ("POST", "/v1/projects/ads/submissions")):
        refused = await olga.send(method, path, csrf=otto.csrf)
        assert (refused.status, refused.reason) == (403, "CrossSiteRequest")
    assert (await olga.send("GET", "/session")).status == 200


async def test_page_of_another_site_reaches_nothing(scene: SignedInDesk) -> None:
    browser = await scene.browser_of("olga")
    for site in ("cross-site", "same-site"):
        for method, path in (
            ("POST", "/v1/projects/ads/submissions"),
            ("POST", "/session"),
            ("DELETE", "/session"),
            ("GET", "/v1/projects/ads/audit"),
            ("GET", "/session"),
        ):
            answer = await browser.send(method, path, site=site)
            assert (answer.status, answer.reason) == (403, "CrossSiteRequest"), (method, path)
            assert not [each for each in answer.headers if each.startswith("Access-Control-")]
    preflight = await browser.send("OPTIONS", "/session", site="cross-site")
    assert preflight.status == 405
    assert "Access-Control-Allow-Origin" not in preflight.headers


async def test_page_of_another_site_opens_no_websocket(scene: SignedInDesk) -> None:
    browser = await scene.browser_of("olga")
    for origin in (EVIL, "null", None):
        sent = {"Cookie": f"{SESSION_COOKIE}={browser.session}", **({"Origin": origin} if origin else {})}
        with pytest.raises(WSServerHandshakeError) as refused:
            async with scene.desk.http.ws_connect("/v1/projects/ads/workloads/hello/programs?command=sh", headers=sent):
                raise AssertionError("it was opened")
        assert refused.value.status == 403


async def test_stolen_cookie_ends_with_the_sign_out(scene: SignedInDesk) -> None:
    browser = await scene.browser_of("olga")
    thief = browser.copy()
    assert (await thief.send("GET", "/v1/whoami")).status == 200
    # The cookie alone, without a page that could read an answer of the desk.
    assert (await thief.send("DELETE", "/session", csrf="")).status == 403
    assert (await browser.send("DELETE", "/session")).status == 204
    assert (await thief.send("GET", "/v1/whoami")).status == 401


@pytest.mark.parametrize(
    "path",
    [
        EVIL,
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "javascript:alert(1)",
        "ui",
        "",
        " /",
        "/ä",
        "/x\r\nSet-Cookie: a=b",
        "/" + "x" * 1_024,
    ],
)
async def test_sign_in_leads_to_no_other_site(scene: SignedInDesk, path: str) -> None:
    answer = await scene.browser().send("GET", f"/session/openid?returnTo={quote(path, safe='')}")
    assert (answer.status, answer.reason) == (422, "DocumentInvalid")
    assert "Location" not in answer.headers
    # Nor by a cookie that was written by another program on this machine.
    browser = scene.browser()
    asked = await browser.begin_openid()
    attempt = SignInAttempt.decode(browser.cookies[ATTEMPT_COOKIE])
    assert attempt
    forged = SignInAttempt(attempt.state, attempt.nonce, attempt.verifier, path, attempt.begun_s)
    browser.cookies[ATTEMPT_COOKIE] = forged.encode()
    answer = await browser.finish_openid(scene.provider, asked)
    assert answer.status in {401, 422}
    assert "Location" not in answer.headers


@pytest.mark.parametrize("cookie", ["", "x", "e30", "W10", "x" * 3_900, "bnVsbA", "%00", '"'])
async def test_unreadable_cookies_are_refused(scene: SignedInDesk, cookie: str) -> None:
    browser = Browser(scene.desk.http, {ATTEMPT_COOKIE: cookie, SESSION_COOKIE: cookie})
    assert (await browser.send("GET", "/session/openid/callback?code=x&state=y")).status == 401
    browser = Browser(scene.desk.http, {SESSION_COOKIE: cookie})
    assert (await browser.send("GET", "/session")).status == 401


async def test_guessed_cookies_and_codes_are_paced(scene: SignedInDesk) -> None:
    known = await scene.browser_of("olga")
    assert (await known.send("GET", "/session")).status == 200
    for path in ("/session", "code"):
        statuses = set()
        for number in range(150):
            guess = f"{number:043}"
            browser = Browser(scene.desk.http, {SESSION_COOKIE: guess} if path == "/session" else {})
            answer = await (browser.send("GET", path) if path == "/session" else browser.redeem(guess))
            statuses.add(answer.status)
        assert statuses == {401, 429}
    # A session that was seen before does not wait for them.
    assert (await known.send("GET", "/session")).status == 200
    audit = await bearer(scene, "root", "GET", "/v1/audit?limit=500")
    refused = [each for each in audit.body["entries"] if each["act"] == "sign-in: refused"]
    assert 1 <= len(refused) <= 20
    assert refused[0]["caller"] == "(not signed in)"


async def test_large_or_foreign_bodies_are_refused(scene: SignedInDesk) -> None:
    browser = scene.browser()
    for body in ({"code": "x" * 10_000}, {"code": "x" * 200}, {"code": 7}, ["code"], {"no": "code"}):
        assert (await browser.send("POST", "/session", body)).status == 422


async def test_ten_thousand_sessions_are_the_limit(tmp_path: Path) -> None:
    database = await open_database(str(tmp_path / "desk.db"))
    try:
        sessions, here = Sessions(database, clock := ManualClock()), Credentials(address="127.0.0.1")
        now_s = int(clock.now().timestamp())
        rows = [
            {"digest": str(number), "who": f"user-{number}", "identity": "[]", "created_s": now_s, "used_s": now_s,
             "expires_s": now_s + store.MAX_SESSION_S}
            for number in range(store.MAX_SESSIONS)
        ]  # fmt: skip
        await database.transact(lambda connection: connection.execute(table.insert(), rows), slow=True)
        with pytest.raises(Refused) as refused:
            await sessions.begin(Identity("one-more"), "test", here)
        assert (refused.value.problems[0].reason.code, refused.value.json()["status"]) == ("SessionLimit", 503)
        # They end by themselves, and make room.
        clock.elapsed_s = store.IDLE_TIMEOUT_S
        assert await sessions.begin(Identity("one-more"), "test", here)
    finally:
        await database.close()
