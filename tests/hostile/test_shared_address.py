"""Attacks on sign-in from an address that others share, such as that of a gateway or a proxy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from fake_openid_provider import AUDIENCE, NOW, FakeProvider, ManualClock, fake_provider
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_REFUSED
from pincompute.desk.authn import throttle
from pincompute.desk.authn.authenticator import Credentials
from pincompute.desk.authn.openid import OpenIdAuth, OpenIdSettings
from pincompute.desk.authn.service_accounts import AUDIENCE as DESK_AUDIENCE, ServiceAccountAuth
from pincompute.desk.authn.signing_keys import MIN_FETCH_INTERVAL_S, SigningKeys
from pincompute.desk.limits.request_queue import Busy

GATEWAY = "192.0.2.7"
FORGER = ECKey.generate_key("P-256", {"kid": "cluster"})
FLOOD = 300


async def rejection(auth: OpenIdAuth | ServiceAccountAuth, token: str) -> Refused:
    with pytest.raises(Refused) as refused:
        await auth.authenticate(Credentials(token, address=GATEWAY))
    return refused.value


async def test_good_login_is_accepted_at_once_amid_forged_ones() -> None:
    async with fake_provider() as provider:
        people = OpenIdAuth(OpenIdSettings(provider.issuer, AUDIENCE), ManualClock())
        forger = RSAKey.generate_key(2048, {"kid": "1"})
        for number in range(FLOOD):
            refused = await rejection(people, provider.token(key=forger, jti=str(number)))
            assert not isinstance(refused, Busy)
        identity = await people.authenticate(Credentials(provider.token(), address=GATEWAY))
        assert str(identity) == "ann@example.com"
        assert provider.discovery_requests == 1


async def test_good_login_does_not_wait_for_keys_that_forged_ones_ask_for() -> None:
    asked, respond = asyncio.Event(), asyncio.Event()
    good, forger = RSAKey.generate_key(2048, {"kid": "1"}), ECKey.generate_key("P-256", {"kid": "evil"})
    provider, clock, fetches = FakeProvider(), ManualClock(), 0
    provider.issuer = "https://login.example.com"

    async def fetch_keys() -> dict[str, Any]:
        nonlocal fetches
        fetches += 1
        if fetches > 1:
            asked.set()
            await respond.wait()
        return {"keys": [good.as_dict(private=False)]}

    keys = SigningKeys(provider.issuer, clock, fetch_keys)
    people = OpenIdAuth(OpenIdSettings(provider.issuer, AUDIENCE), clock, keys)
    assert await people.authenticate(Credentials(provider.token(key=good), address=GATEWAY))
    clock.elapsed_s = 2 * MIN_FETCH_INTERVAL_S
    forged = [provider.token(key=forger, headers={"kid": f"none-{number}"}) for number in range(FLOOD)]
    waiting = [asyncio.create_task(people.authenticate(Credentials(each, address=GATEWAY))) for each in forged]
    await asked.wait()
    async with asyncio.timeout(60):
        assert await people.authenticate(Credentials(provider.token(key=good, jti="2"), address=GATEWAY))
    assert not any(each.done() for each in waiting)
    respond.set()
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(each, Refused) and not isinstance(each, Busy) for each in told)
    assert fetches == 2


async def test_unavailable_provider_is_not_asked_for_each_token() -> None:
    async with fake_provider() as provider:
        provider.unavailable = True
        people = OpenIdAuth(OpenIdSettings(provider.issuer, AUDIENCE), clock := ManualClock())
        for number in range(100):
            assert (await rejection(people, provider.token(jti=str(number)))).problems[
                0
            ].reason.code == "SignInUnavailable"
        assert provider.discovery_requests == 1
        provider.unavailable = False
        clock.elapsed_s = MIN_FETCH_INTERVAL_S
        assert await people.authenticate(Credentials(provider.token(), address=GATEWAY))


class Cluster:
    """A cluster whose token reviews are counted. Deleted accounts have no valid tokens."""

    def __init__(self, *, publishes_keys: bool = True) -> None:
        self.key = ECKey.generate_key("P-256", {"kid": "cluster"})
        self.publishes_keys = publishes_keys
        self.reviews = 0
        self.deleted: set[str] = set()

    def token(self, account: str, key: ECKey | None = None, **claims: Any) -> str:
        subject = f"system:serviceaccount:{account.replace('/', ':')}"
        exp = int(NOW.timestamp()) + 600
        whole = {"iss": "cluster", "sub": subject, "aud": [DESK_AUDIENCE], "exp": exp, **claims}
        return jwt.encode({"alg": "ES256", "kid": "cluster"}, whole, key or self.key, algorithms=["ES256"])

    async def signing_keys(self) -> dict[str, Any]:
        if not self.publishes_keys:
            raise Refused(Problem(CLUSTER_REFUSED, "forbidden"))
        return {"keys": [self.key.as_dict(private=False)]}

    async def service_account_of(self, token: str, audience: str) -> str:
        assert audience == DESK_AUDIENCE
        self.reviews += 1
        try:
            claims = jwt.decode(token, self.key, algorithms=["ES256"]).claims
        except JoseError:
            return ""
        account = claims["sub"].removeprefix("system:serviceaccount:").replace(":", "/")
        return "" if account in self.deleted or claims["exp"] < NOW.timestamp() else account


async def test_good_program_is_accepted_at_once_amid_forged_tokens() -> None:
    cluster = Cluster()
    programs = ServiceAccountAuth(cluster, ManualClock())
    # They claim to be the program that the attacker wants to lock out.
    told = [await rejection(programs, cluster.token("ads/ci", FORGER, jti=str(number))) for number in range(FLOOD)]
    assert isinstance(told[-1], Busy)
    limit = throttle.FAILURES_PER_S * throttle.FAILURE_BURST_S
    assert cluster.reviews == pytest.approx(limit, abs=1)
    identity = await programs.authenticate(Credentials(cluster.token("ads/ci"), address=GATEWAY))
    assert str(identity) == "program ads/ci"


async def test_rejected_programs_lock_out_only_themselves() -> None:
    cluster = Cluster()
    programs = ServiceAccountAuth(cluster, ManualClock())
    cluster.deleted.add("ads/old")
    told = [await rejection(programs, cluster.token("ads/old", jti=str(number))) for number in range(FLOOD)]
    assert isinstance(told[-1], Busy)
    assert cluster.reviews < FLOOD / 2
    assert await programs.authenticate(Credentials(cluster.token("ads/ci"), address=GATEWAY))


async def test_expired_tokens_do_not_lock_out_their_account() -> None:
    cluster = Cluster()
    programs = ServiceAccountAuth(cluster, ManualClock())
    past = int(NOW.timestamp()) - 1
    for number in range(FLOOD):
        await rejection(programs, cluster.token("ads/ci", exp=past, jti=str(number)))
    assert cluster.reviews < FLOOD / 2
    assert await programs.authenticate(Credentials(cluster.token("ads/ci"), address=GATEWAY))


async def test_cluster_that_keeps_its_keys_still_decides() -> None:
    cluster = Cluster(publishes_keys=False)
    programs = ServiceAccountAuth(cluster, clock := ManualClock())
    assert await programs.authenticate(Credentials(cluster.token("ads/ci"), address=GATEWAY))
    told = [await rejection(programs, cluster.token("ads/ci", FORGER, jti=str(number))) for number in range(FLOOD)]
    # Then forged tokens are told from good ones only by the cluster, and that is limited by address.
    assert isinstance(told[-1], Busy)
    assert isinstance(await rejection(programs, cluster.token("ads/cd")), Busy)
    clock.elapsed_s += 1
    assert await programs.authenticate(Credentials(cluster.token("ads/cd"), address=GATEWAY))
