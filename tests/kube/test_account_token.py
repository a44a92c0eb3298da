"""Tokens of a service account: requested once for many callers, renewed in time, and no other response used."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pincompute.kube.account_token import AccountToken, TokenInvalid
from pincompute.kube.errors import Forbidden
from scripted_transport import InstantClock, ScriptedTransport, client_over


def token_response(token: Any) -> bytes:
    return msgspec.json.encode({"kind": "TokenRequest", "spec": {}, "status": {"token": token}})


def account_over(*responses: bytes | Forbidden) -> tuple[AccountToken, ScriptedTransport, InstantClock]:
    transport, clock = ScriptedTransport(*responses), InstantClock()
    return AccountToken(client_over(transport, clock), "system", "stats"), transport, clock


async def test_requests_the_shortest_token_of_the_one_account() -> None:
    account, transport, _ = account_over(token_response("a.b.c"))
    assert await account.read() == "a.b.c"
    (request,) = transport.requests
    assert (request.method, request.path) == ("POST", "/api/v1/namespaces/system/serviceaccounts/stats/token")
    assert msgspec.json.decode(request.body)["spec"] == {"expirationSeconds": 600}


async def test_concurrent_callers_share_a_request() -> None:
    account, transport, _ = account_over(token_response("a"))
    assert await asyncio.gather(*(account.read() for _ in range(20))) == ["a"] * 20
    assert len(transport.requests) == 1


async def test_renews_after_two_thirds_of_its_life() -> None:
    account, transport, clock = account_over(token_response("a"), token_response("b"))
    seen = []
    for wait_s in (0, 399, 1):
        await clock.sleep(wait_s)
        seen.append(await account.read())
    assert seen == ["a", "a", "b"]
    assert len(transport.requests) == 2


async def test_failure_is_told_and_the_next_caller_asks_again() -> None:
    account, _, _ = account_over(Forbidden(403, "Refused", "no"), token_response("a"))
    with pytest.raises(Forbidden):
        await account.read()
    assert await account.read() == "a"


@pytest.mark.parametrize("token", ["", "a\r\nX-Other: b", "a b\n", "\u00e4", "a" * 20_000, 7, None])
async def test_rejects_response_that_would_change_the_header(token: object) -> None:
    account, _, _ = account_over(token_response(token))
    with pytest.raises(TokenInvalid):
        await account.read()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"status": {}}'])
async def test_rejects_response_without_token(body: bytes) -> None:
    account, _, _ = account_over(body)
    with pytest.raises(TokenInvalid):
        await account.read()
