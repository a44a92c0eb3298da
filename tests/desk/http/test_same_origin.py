"""Which requests of a browser a session counts for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from aiohttp.test_utils import make_mocked_request

from pincompute.base.problem import Refused
from pincompute.desk.authn.sessions import csrf_token
from pincompute.desk.http.same_origin import require_own_page, require_session_origin

SESSION = "x" * 43
OWN = {"Sec-Fetch-Site": "same-origin", "Origin": "http://desk.example.com"}
TOKEN = {"Pin-Csrf": csrf_token(SESSION)}
LINK = {"Sec-Fetch-Mode": "navigate"}
UPGRADE = {"Upgrade": "websocket", "Connection": "Upgrade"}


def is_accepted(method: str, headers: Mapping[str, str]) -> bool:
    request = make_mocked_request(method, "/v1/projects", headers={"Host": "desk.example.com", **headers})
    try:
        require_session_origin(request, SESSION)
    except Refused as error:
        refused = error
    else:
        return True
    assert refused.problems[0].reason.code == "CrossSiteRequest"
    assert TOKEN["Pin-Csrf"] not in refused.text()
    return False


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_own_page_is_accepted(method: str) -> None:
    assert is_accepted(method, {**OWN, **TOKEN})


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("token", ["", "x", csrf_token("y" * 43), TOKEN["Pin-Csrf"][:-1], "ä", SESSION])
def test_write_needs_the_token_of_its_session(method: str, token: str) -> None:
    assert not is_accepted(method, {**OWN, "Pin-Csrf": token})
    assert not is_accepted(method, {**OWN, **LINK})


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "SAME-ORIGIN"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://desk.example.com.evil.example"},
        {"Origin": "http://desk.example.com:8080"},
        {"Origin": "http://sub.desk.example.com"},
        {"Origin": "file://desk.example.com"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://desk.example.com\x01"},
    ],
)
def test_other_origin_is_refused_also_with_the_token(method: str, headers: Mapping[str, str]) -> None:
    assert not is_accepted(method, {**headers, **TOKEN})


def test_link_on_another_site_leads_here_and_changes_nothing() -> None:
    assert is_accepted("GET", {"Sec-Fetch-Site": "cross-site", **LINK})
    assert not is_accepted("POST", {"Sec-Fetch-Site": "cross-site", **LINK, **TOKEN})


def test_desk_behind_a_proxy_that_ends_tls_is_accepted() -> None:
    assert is_accepted("POST", {**OWN, "Origin": "https://desk.example.com", **TOKEN})


def test_websocket_needs_the_own_origin() -> None:
    assert is_accepted("GET", {**UPGRADE, **OWN})
    assert not is_accepted("GET", UPGRADE)
    assert not is_accepted("GET", {**UPGRADE, "Origin": "https://evil.example"})
    assert not is_accepted("GET", {**UPGRADE, "Origin": "https://evil.example", **LINK})


def test_sign_in_of_another_page_is_refused_and_of_a_program_accepted() -> None:
    require_own_page(make_mocked_request("POST", "/session", headers={"Host": "desk.example.com"}))
    with pytest.raises(Refused):
        require_own_page(make_mocked_request("POST", "/session", headers={"Sec-Fetch-Site": "cross-site"}))
