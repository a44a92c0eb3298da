"""OpenID tokens: valid ones, and forged ones of many kinds."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from fake_openid_provider import AUDIENCE, NOW, FakeProvider, ManualClock, fake_provider
from pincompute.api.identity import Identity
from pincompute.base.problem import Refused
from pincompute.desk.authn.authenticator import Credentials
from pincompute.desk.authn.openid import OpenIdAuth, OpenIdSettings

AT = int(NOW.timestamp())


class Desk:
    def __init__(self, here: FakeProvider) -> None:
        self.here = here
        self.clock = ManualClock()
        settings = OpenIdSettings(here.issuer, AUDIENCE, administrators="infrastructure")
        self.people = OpenIdAuth(settings, self.clock)

    async def authenticate_token(self, token: str) -> Identity | None:
        return await self.people.authenticate(Credentials(token))

    async def refusal(self, token: str) -> str:
        with pytest.raises(Refused) as refused:
            await self.authenticate_token(token)
        assert refused.value.problems[0].reason.code == "Unauthenticated"
        assert refused.value.problems[0].next == "pin login"
        assert token not in refused.value.text()
        return refused.value.text()


@pytest.fixture
async def desk() -> AsyncGenerator[Desk]:
    async with fake_provider() as here:
        yield Desk(here)


async def test_token_gives_name_and_groups(desk: Desk) -> None:
    who = await desk.authenticate_token(desk.here.token(groups=["ads", "system:masters", 7]))
    assert who
    assert (str(who), who.groups, who.is_admin) == ("ann@example.com", {"ads"}, False)
    who = await desk.authenticate_token(desk.here.token(groups="infrastructure"))
    assert who
    assert (who.groups, who.is_admin) == ({"infrastructure"}, True)


async def test_token_of_another_issuer_is_left_to_other_providers(desk: Desk) -> None:
    for token in (
        "",
        "opaque",
        "a.b.c",
        "é.é.é",
        "e30.bm9uc2Vuc2U.x",
        "e30.W10.x",
        desk.here.token(iss="https://elsewhere.example"),
    ):
        assert await desk.authenticate_token(token) is None
    assert desk.here.discovery_requests == 0


def _part(said: bytes) -> str:
    return base64.urlsafe_b64encode(said).decode().rstrip("=")


def by_nobody(here: FakeProvider) -> str:
    _, body, _ = here.token().split(".")
    return f"{_part(json.dumps({'alg': 'none', 'kid': '1'}).encode())}.{body}."


def by_the_public_key(here: FakeProvider) -> str:
    """Signed symmetrically, with the public key as the secret."""
    _, body, _ = here.token().split(".")
    signed = f"{_part(json.dumps({'alg': 'HS256', 'kid': '1'}).encode())}.{body}"
    secret: bytes = here.keys[0].as_pem(private=False)
    return f"{signed}.{_part(hmac.digest(secret, signed.encode(), 'sha256'))}"


def altered(here: FakeProvider) -> str:
    head, _, signature = here.token().split(".")
    return ".".join((head, here.token(email="root@example.com").split(".")[1], signature))


def by_another_of_the_same_name(here: FakeProvider) -> str:
    return here.token(key=RSAKey.generate_key(2048, {"kid": "1"}))


def by_one_of_another_name(here: FakeProvider) -> str:
    return here.token(key=RSAKey.generate_key(2048, {"kid": "evil"}))


def by_a_key_that_it_brings(here: FakeProvider) -> str:
    own = ECKey.generate_key("P-256", {"kid": "1"})
    return here.token(key=own, headers={"jwk": own.as_dict(private=False)})


FORGED = (by_nobody, by_the_public_key, altered, by_another_of_the_same_name, by_one_of_another_name)


@pytest.mark.parametrize("forged", [*FORGED, by_a_key_that_it_brings])
async def test_token_not_signed_by_the_provider_is_rejected(desk: Desk, forged: Callable[[FakeProvider], str]) -> None:
    assert "invalid token" in await desk.refusal(forged(desk.here))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"aud": "another"}, "InvalidClaimError"),
        ({"aud": None}, "MissingClaimError"),
        ({"aud": [AUDIENCE, "another"], "azp": "another"}, "issued to another client"),
        ({"exp": AT - 61}, "your login has expired"),
        ({"exp": None}, "MissingClaimError"),
        ({"exp": "tomorrow"}, "InvalidClaimError"),
        ({"exp": 1e300}, "invalid token"),
        ({"nbf": AT + 120}, "InvalidClaimError"),
        ({"iat": AT + 120}, "InvalidClaimError"),
        ({"email": None}, "it has no name in the claim 'email'"),
        ({"email": ["ann"]}, "it has no name"),
        ({"email": "ann\nroot"}, "it has no name"),
        ({"email": "system:admin"}, "reserved prefix"),
        ({"email": "program ads/ci"}, "reserved prefix"),
        ({"email": "spiffe://main/ads/ci"}, "reserved prefix"),
        ({"email_verified": False}, "is not verified"),
        ({"email_verified": None}, "is not verified"),
        ({"email_verified": "true"}, "is not verified"),
        ({"groups": ["g"] * 1_001}, "more than 1,000 groups"),
    ],
)
async def test_token_with_invalid_claims_is_rejected(desk: Desk, said: dict[str, Any], told: str) -> None:
    assert told in await desk.refusal(desk.here.token(**said))


async def test_provider_without_verified_addresses_can_be_configured(desk: Desk) -> None:
    desk.people = OpenIdAuth(OpenIdSettings(desk.here.issuer, AUDIENCE, requires_verified_email=False), desk.clock)
    assert await desk.authenticate_token(desk.here.token(email_verified=None))
    # An explicit claim counts.
    for said in (False, "false", 0):
        assert "is not verified" in await desk.refusal(desk.here.token(email_verified=said))


async def test_clock_skew_is_tolerated(desk: Desk) -> None:
    assert await desk.authenticate_token(desk.here.token(exp=AT - 30))
    assert await desk.authenticate_token(desk.here.token(nbf=AT + 30, iat=AT + 30))


async def test_cached_token_is_rejected_after_it_has_expired(desk: Desk) -> None:
    token = desk.here.token(exp=AT + 100)
    assert await desk.authenticate_token(token)
    desk.clock.elapsed_s = 161
    assert "your login has expired" in await desk.refusal(token)


async def test_rotated_keys_are_fetched_and_revoked_ones_expire(desk: Desk) -> None:
    before = desk.here.token()
    assert await desk.authenticate_token(before)
    desk.here.rotate("2")
    desk.clock.elapsed_s = 10
    assert await desk.authenticate_token(desk.here.token())
    assert desk.here.discovery_requests == 2
    # A verified token is cached for five minutes.
    assert await desk.authenticate_token(before)
    desk.clock.elapsed_s = 301
    assert "invalid token" in await desk.refusal(before)


async def test_unknown_key_ids_do_not_multiply_fetches(desk: Desk) -> None:
    assert await desk.authenticate_token(desk.here.token())
    for number in range(50):
        desk.clock.elapsed_s = 10 + number / 100
        await desk.refusal(desk.here.token(headers={"kid": str(number + 2)}))
    assert desk.here.discovery_requests == 2


async def test_keys_are_used_for_an_hour_while_the_provider_is_unavailable(desk: Desk) -> None:
    assert await desk.authenticate_token(desk.here.token())
    desk.here.unavailable = True
    desk.clock.elapsed_s = 3_000
    assert await desk.authenticate_token(desk.here.token(exp=AT + 9_999))
    desk.clock.elapsed_s = 3_700
    with pytest.raises(Refused, match=r"cannot be fetched: .* responded with status 503") as refused:
        await desk.authenticate_token(desk.here.token(exp=AT + 9_998))
    assert refused.value.json()["status"] == 503
    desk.here.unavailable = False
    desk.clock.elapsed_s = 3_710
    assert await desk.authenticate_token(desk.here.token(exp=AT + 9_998))


async def test_provider_with_another_issuer_is_rejected(desk: Desk) -> None:
    desk.here.claims_to_be = "https://elsewhere.example"
    with pytest.raises(Refused, match=r"its issuer is https://elsewhere.example"):
        await desk.authenticate_token(desk.here.token())


async def test_cached_token_is_fast(desk: Desk) -> None:
    token = desk.here.token()
    assert await desk.authenticate_token(token)
    rounds = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(200):
            await desk.authenticate_token(token)
        rounds.append(time.process_time() - begun)
    # About two microseconds each; a signature would take fifty times as long. The median ignores a garbage collection.
    assert min(rounds) < 0.01
