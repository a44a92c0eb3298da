"""Whom an OpenID provider has signed in, and everything that only looks like its word."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

from pincompute.api.identity import Identity
from pincompute.base.problem import Refused
from pincompute.submission.people.door import Shown
from pincompute.submission.people.openid import OpenId, OpenIdSettings
from provider import AUDIENCE, NOW, Hands, Provider, provider

AT = int(NOW.timestamp())


class Desk:
    def __init__(self, here: Provider) -> None:
        self.here = here
        self.clock = Hands()
        settings = OpenIdSettings(here.issuer, AUDIENCE, administrators="infrastructure")
        self.people = OpenId(settings, self.clock)

    async def ask(self, token: str) -> Identity | None:
        return await self.people.identify(Shown(token))

    async def refusal(self, token: str) -> str:
        with pytest.raises(Refused) as refused:
            await self.ask(token)
        assert refused.value.problems[0].reason.code == "NotSignedIn"
        assert refused.value.problems[0].next == "pin login"
        assert token not in refused.value.text()
        return refused.value.text()


@pytest.fixture
async def desk() -> AsyncGenerator[Desk]:
    async with provider() as here:
        yield Desk(here)


async def test_whom_it_names_and_with_which_groups(desk: Desk) -> None:
    who = await desk.ask(desk.here.token(groups=["ads", "system:masters", 7]))
    assert who
    assert (str(who), who.groups, who.administers) == ("ann@example.com", {"ads"}, False)
    who = await desk.ask(desk.here.token(groups="infrastructure"))
    assert who
    assert (who.groups, who.administers) == ({"infrastructure"}, True)


async def test_another_providers_are_not_its_to_judge(desk: Desk) -> None:
    for token in (
        "",
        "opaque",
        "a.b.c",
        "é.é.é",
        "e30.bm9uc2Vuc2U.x",
        "e30.W10.x",
        desk.here.token(iss="https://elsewhere.example"),
    ):
        assert await desk.ask(token) is None
    assert desk.here.asked == 0


def _part(said: bytes) -> str:
    return base64.urlsafe_b64encode(said).decode().rstrip("=")


def by_nobody(here: Provider) -> str:
    _, body, _ = here.token().split(".")
    return f"{_part(json.dumps({'alg': 'none', 'kid': '1'}).encode())}.{body}."


def by_the_public_key(here: Provider) -> str:
    """As if it were a secret."""
    _, body, _ = here.token().split(".")
    signed = f"{_part(json.dumps({'alg': 'HS256', 'kid': '1'}).encode())}.{body}"
    secret: bytes = here.keys[0].as_pem(private=False)
    return f"{signed}.{_part(hmac.digest(secret, signed.encode(), 'sha256'))}"


def altered(here: Provider) -> str:
    head, _, signature = here.token().split(".")
    return ".".join((head, here.token(email="root@example.com").split(".")[1], signature))


def by_another_of_the_same_name(here: Provider) -> str:
    return here.token(key=RSAKey.generate_key(2048, {"kid": "1"}))


def by_one_of_another_name(here: Provider) -> str:
    return here.token(key=RSAKey.generate_key(2048, {"kid": "evil"}))


def by_a_key_that_it_brings(here: Provider) -> str:
    own = ECKey.generate_key("P-256", {"kid": "1"})
    return here.token(key=own, headers={"jwk": own.as_dict(private=False)})


FORGED = (by_nobody, by_the_public_key, altered, by_another_of_the_same_name, by_one_of_another_name)


@pytest.mark.parametrize("forged", [*FORGED, by_a_key_that_it_brings])
async def test_what_the_provider_has_not_signed_is_refused(desk: Desk, forged: Callable[[Provider], str]) -> None:
    assert "this token is not good" in await desk.refusal(forged(desk.here))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"aud": "another"}, "InvalidClaimError"),
        ({"aud": None}, "MissingClaimError"),
        ({"aud": [AUDIENCE, "another"], "azp": "another"}, "given to another client"),
        ({"exp": AT - 61}, "your login has run out"),
        ({"exp": None}, "MissingClaimError"),
        ({"exp": "tomorrow"}, "InvalidClaimError"),
        ({"exp": 1e300}, "not good"),
        ({"nbf": AT + 120}, "InvalidClaimError"),
        ({"iat": AT + 120}, "InvalidClaimError"),
        ({"email": None}, "it has no name in 'email'"),
        ({"email": ["ann"]}, "it has no name"),
        ({"email": "ann\nroot"}, "it has no name"),
        ({"email": "system:admin"}, "nobody may have"),
        ({"email": "program ads/ci"}, "nobody may have"),
        ({"email": "spiffe://main/ads/ci"}, "nobody may have"),
        ({"email_verified": False}, "nobody has verified"),
        ({"groups": ["g"] * 1_001}, "more than 1,000 groups"),
    ],
)
async def test_what_does_not_say_what_it_must_is_refused(desk: Desk, said: dict[str, Any], told: str) -> None:
    assert told in await desk.refusal(desk.here.token(**said))


async def test_clocks_differ_a_little(desk: Desk) -> None:
    assert await desk.ask(desk.here.token(exp=AT - 30))
    assert await desk.ask(desk.here.token(nbf=AT + 30, iat=AT + 30))


async def test_a_login_ends_also_for_who_was_known(desk: Desk) -> None:
    token = desk.here.token(exp=AT + 100)
    assert await desk.ask(token)
    desk.clock.passed = 161
    assert "your login has run out" in await desk.refusal(token)


async def test_keys_change_and_old_ones_are_believed_for_minutes_only(desk: Desk) -> None:
    before = desk.here.token()
    assert await desk.ask(before)
    desk.here.rotate("2")
    desk.clock.passed = 10
    assert await desk.ask(desk.here.token())
    assert desk.here.asked == 2
    # What was found good is not looked at again for five minutes.
    assert await desk.ask(before)
    desk.clock.passed = 301
    assert "not good" in await desk.refusal(before)


async def test_names_of_keys_that_are_none_make_nobody_ask_again_and_again(desk: Desk) -> None:
    assert await desk.ask(desk.here.token())
    for number in range(50):
        desk.clock.passed = 10 + number / 100
        await desk.refusal(desk.here.token(headers={"kid": str(number + 2)}))
    assert desk.here.asked == 2


async def test_while_the_provider_is_away_its_keys_go_on_for_an_hour(desk: Desk) -> None:
    assert await desk.ask(desk.here.token())
    desk.here.away = True
    desk.clock.passed = 3_000
    assert await desk.ask(desk.here.token(exp=AT + 9_999))
    desk.clock.passed = 3_700
    with pytest.raises(Refused, match=r"cannot be read: .* answered 503") as refused:
        await desk.ask(desk.here.token(exp=AT + 9_998))
    assert refused.value.json()["status"] == 503
    desk.here.away = False
    desk.clock.passed = 3_710
    assert await desk.ask(desk.here.token(exp=AT + 9_998))


async def test_a_provider_that_says_it_is_another_is_not_believed(desk: Desk) -> None:
    desk.here.claims_to_be = "https://elsewhere.example"
    with pytest.raises(Refused, match=r"it says that it is https://elsewhere.example"):
        await desk.ask(desk.here.token())


async def test_who_was_found_good_is_known_at_once(desk: Desk) -> None:
    token = desk.here.token()
    assert await desk.ask(token)
    rounds = []
    for _ in range(5):
        begun = time.process_time()
        for _ in range(200):
            await desk.ask(token)
        rounds.append(time.process_time() - begun)
    # Some two microseconds each; a signature would take fifty times as long. In one of them memory may be tidied up.
    assert min(rounds) < 0.01
