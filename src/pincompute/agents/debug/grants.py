"""Verifies the desk's grants: signature, node, time, the request, and that each is used once."""

from __future__ import annotations

import re

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from pincompute.base.clock import Clock
from pincompute.base.compact_jws import verified_claims
from pincompute.base.debug_grant import LIFETIME_S, Grant, request_digest
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DEBUG_AGENT_UNAVAILABLE, GRANT_REFUSED

MAX_CLOCK_SKEW_S = 30
"""Difference of the clocks of desk and node that is tolerated."""
MAX_USED = 100_000
"""Ids that are remembered until they expire. Only the desk can make any, so that only a fault reaches this."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,253}", re.ASCII)


class GrantVerifier:
    def __init__(self, node: str, key: ec.EllipticCurvePublicKey, clock: Clock) -> None:
        self._node = node
        self._key = key
        self._clock = clock
        # Grants from before the start may have been used already.
        self._started_at = int(clock.now().timestamp())
        self._used: dict[str, int] = {}
        """Expiry by id, in the order of use."""

    def verify(self, token: str, request: bytes = b"") -> Grant:
        """The grant, which is used by this. Raises Refused."""
        claims = verified_claims(token, self._key)
        if claims is None:
            raise _grant_refusal("it is not signed by the desk of this platform")
        try:
            grant = msgspec.json.decode(claims, type=Grant)
        except msgspec.DecodeError:
            raise _grant_refusal("its claims are malformed") from None
        if grant.aud != self._node:
            raise _grant_refusal(f"it is for node {grant.aud}, and this is {self._node}")
        self._require_current(grant)
        if grant.request != request_digest(request):
            raise _grant_refusal("it is for another request")
        if not all(_NAME.fullmatch(each) for each in (grant.uid, grant.container, grant.jti) if each):
            raise _grant_refusal("its names are malformed")
        self._use(grant)
        return grant

    def _require_current(self, grant: Grant) -> None:
        now = int(self._clock.now().timestamp())
        if grant.exp - grant.iat > LIFETIME_S:
            raise _grant_refusal(f"it is valid for {grant.exp - grant.iat} s, and {LIFETIME_S} s are allowed")
        if grant.iat > now + MAX_CLOCK_SKEW_S:
            raise _grant_refusal(f"it begins {grant.iat - now} s from now: the clocks of desk and node differ")
        if grant.exp < now - MAX_CLOCK_SKEW_S:
            raise _grant_refusal(f"it has expired {now - grant.exp} s ago")
        if grant.iat < self._started_at - MAX_CLOCK_SKEW_S:
            raise _grant_refusal("it is older than this agent, which has been restarted")

    def _use(self, grant: Grant) -> None:
        now = int(self._clock.now().timestamp())
        for id_ in list(self._used):
            # In the order of use, which is that of expiry but for the skew of clocks.
            if self._used[id_] + MAX_CLOCK_SKEW_S >= now:
                break
            del self._used[id_]
        if grant.jti in self._used:
            raise _grant_refusal("it has been used already")
        if len(self._used) >= MAX_USED:
            raise Refused(Problem(DEBUG_AGENT_UNAVAILABLE, f"the agent has used {MAX_USED:,} grants within a minute"))
        self._used[grant.jti] = grant.exp


def _grant_refusal(why: str) -> Refused:
    return Refused(
        Problem(GRANT_REFUSED, f"the agent of the node refuses the grant: {why}", next="the same command again")
    )
