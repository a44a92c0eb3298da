"""The address of a client behind a proxy is believed only from configured proxies."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.base.clock import SystemClock
from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import Authenticator, Credentials
from pincompute.desk.authn.local_token import LocalTokenAuth
from pincompute.desk.authn.settings import AuthnSettings
from pincompute.desk.authn.trusted_proxies import TrustedProxies

PROXIES = TrustedProxies.parse("10.0.0.0/8, 192.0.2.1,2001:db8::/32, 127.0.0.1")


@pytest.mark.parametrize(
    ("peer", "headers", "address"),
    [
        # Not a proxy: every client can write the header.
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("192.0.2.1", ["198.51.100.1"], "198.51.100.1"),
        ("192.0.2.2", ["198.51.100.1"], "192.0.2.2"),
        ("::ffff:10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        ("2001:db8::1", ["2001:dead::1"], "2001:dead::1"),
        # The header of the client stands before the entries of the proxies.
        ("10.1.2.3", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["1.1.1.1", "198.51.100.1, 10.9.9.9"], "198.51.100.1"),
        ("10.1.2.3", ["198.51.100.1, rubbish"], "10.1.2.3"),
        ("10.1.2.3", ["198.51.100.1, rubbish, 10.9.9.9"], "10.1.2.3"),
        ("10.1.2.3", [""], "10.1.2.3"),
        ("10.1.2.3", [], "10.1.2.3"),
        ("", ["198.51.100.1"], ""),
        ("10.1.2.3", [",".join(["198.51.100.1"] * 100_000)], "198.51.100.1"),
    ],
)
def test_client_address(peer: str, headers: list[str], address: str) -> None:
    assert PROXIES.client_address(peer, headers).text == address


def test_header_is_ignored_by_default() -> None:
    assert TrustedProxies().client_address("10.1.2.3", ["198.51.100.1"]).text == "10.1.2.3"


async def test_local_token_is_not_accepted_through_a_proxy() -> None:
    """Whichever address the client has written into the header."""
    authenticator = Authenticator([LocalTokenAuth("correct horse", "pat")])
    for headers in (["127.0.0.1"], ["::1"], ["198.51.100.1"], ["127.0.0.1, 127.0.0.1"]):
        address = PROXIES.client_address("127.0.0.1", headers)
        with pytest.raises(Refused):
            await authenticator.authenticate(Credentials("correct horse", b"", *address))
    address = PROXIES.client_address("127.0.0.1", [])
    assert await authenticator.authenticate(Credentials("correct horse", b"", *address))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"trusted_proxies": "10.0.0.1/8"}, "--trusted-proxies: 10.0.0.1/8 has host bits set"),
        ({"trusted_proxies": "proxy.example.com"}, "--trusted-proxies: 'proxy.example.com' does not appear"),
        ({"issuer": "https://login.example.com", "email_verified": "no"}, "--email-verified: 'no' must be required or"),
    ],
)
def test_invalid_setting_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(Refused, match=told):
        AuthnSettings("", "me", **settings).authenticator(NoCluster(), SystemClock())


class NoCluster:
    async def signing_keys(self) -> dict[str, object]:
        raise NotImplementedError

    async def service_account_of(self, token: str, audience: str) -> str:
        raise NotImplementedError
