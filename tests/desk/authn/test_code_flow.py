"""The settings of the sign-in of browsers, and the request to the provider."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from fake_openid_provider import ManualClock, fake_provider
from pincompute.base.problem import Refused
from pincompute.desk.authn.code_flow import MAX_ATTEMPT_CHARS, SignInAttempt
from pincompute.desk.authn.settings import AuthnSettings
from pincompute.desk.outbound_credentials import OPENID_SECRET_FILE, OutboundCredentials

URL = "https://desk.example.com"


def settings(issuer: str, web_url: str, web_client: str = "") -> AuthnSettings:
    scopes = "openid email offline_access"
    return AuthnSettings("", "", issuer, "pin", scopes=scopes, web_url=web_url, web_client=web_client)


@pytest.mark.parametrize(("issuer", "url"), [("", ""), ("", URL), ("https://login.example.com", "")])
def test_browsers_sign_in_with_a_provider_and_an_address_only(issuer: str, url: str) -> None:
    assert settings(issuer, web_url=url).code_flow(ManualClock(), str) is None
    assert not settings(issuer, web_url=url).sign_in().browser


def test_address_of_the_desk_must_be_encrypted() -> None:
    with pytest.raises(Refused, match=r"--web-url: http://desk.example.com must start with https://"):
        settings("https://login.example.com", web_url="http://desk.example.com").code_flow(ManualClock(), str)


@pytest.mark.parametrize(("client", "expected"), [("", "pin"), ("pin-web", "pin-web")])
async def test_provider_is_asked_without_offline_access(client: str, expected: str) -> None:
    async with fake_provider() as provider:
        flow = settings(provider.issuer, web_url=f"{URL}/", web_client=client).code_flow(ManualClock(), str)
        assert flow
        address, attempt = await flow.begin("/ui")
        query = {name: value for name, (value,) in parse_qs(urlsplit(address).query).items()}
        assert (query["client_id"], query["scope"]) == (expected, "openid email")
        assert query["redirect_uri"] == f"{URL}/session/openid/callback"
        # The verifier stays in the browser's cookie until the code is exchanged.
        assert attempt.verifier not in address
        assert SignInAttempt.decode(attempt.encode()) == attempt


async def test_longest_path_fits_into_the_cookie() -> None:
    async with fake_provider() as provider:
        flow = settings(provider.issuer, web_url=URL).code_flow(ManualClock(), str)
        assert flow
        _, attempt = await flow.begin("/" + '"' * 1_023)
        assert len(attempt.encode()) <= MAX_ATTEMPT_CHARS
        assert SignInAttempt.decode(attempt.encode()) == attempt


def test_client_secret_is_read_for_each_sign_in(tmp_path: Path) -> None:
    credentials = OutboundCredentials(tmp_path)
    assert (credentials.openid_client_secret(), OutboundCredentials().openid_client_secret()) == ("", "")
    for secret in ("first", "second"):
        (tmp_path / OPENID_SECRET_FILE).write_text(f"{secret}\n")
        assert credentials.openid_client_secret() == secret
