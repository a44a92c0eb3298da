"""The local token is accepted from the same machine only."""

from __future__ import annotations

import pytest

from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import Authenticator, Credentials
from pincompute.desk.authn.local_token import LocalTokenAuth

AUTHENTICATOR = Authenticator([LocalTokenAuth("correct horse", "pat")])


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1"])
async def test_local_token_authenticates_the_administrator(address: str) -> None:
    identity = await AUTHENTICATOR.authenticate(Credentials("correct horse", address=address))
    assert (str(identity), identity.is_admin) == ("pat", True)


@pytest.mark.parametrize(
    ("credentials", "message"),
    [
        (Credentials("correct horse", address="192.0.2.1"), "unknown token"),
        (Credentials("correct horse", address=""), "unknown token"),
        (Credentials("correct horse battery", address="127.0.0.1"), "unknown token"),
        (Credentials("", address="127.0.0.1"), "the request has no credentials"),
        (Credentials("h\u00f6rse", address="127.0.0.1"), "unknown token"),
    ],
)
async def test_other_credentials_are_rejected(credentials: Credentials, message: str) -> None:
    with pytest.raises(Refused, match=message) as refused:
        await AUTHENTICATOR.authenticate(credentials)
    assert refused.value.json()["status"] == 401
    assert "correct" not in refused.value.text()


def test_empty_local_token_is_an_error() -> None:
    with pytest.raises(AssertionError):
        LocalTokenAuth("", "pat")
