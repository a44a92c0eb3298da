"""Grants of the desk for the node agent: one session, with one container of one replica, within a minute.

The agent knows no person and asks no cluster. A grant tells it all: which node it is for, which container it opens, and
which request the desk has authorized and recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pincompute.base.clock import Clock
from pincompute.base.compact_jws import sign_jws
from pincompute.base.ids import Ids
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID

T = TypeVar("T")
LIFETIME_S = 60
"""A session must begin within this time."""
MAX_SESSION_S = 8 * 3600
"""A session ends after this time, also if the desk that watches over it has gone."""
END = "end"
"""Verb of the desk's order to end a session."""


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims. Names of one word are registered ones of RFC 7519."""

    aud: str
    """Node whose agent accepts it."""
    sub: str
    """Person or program, for the log of the agent."""
    iat: int
    exp: int
    jti: str
    """Used once."""
    session: str
    """Session that it opens, or ends."""
    verb: str
    uid: str = ""
    """Uid of the replica's pod."""
    container: str = ""
    request: str = ""
    """SHA-256 of the request that was authorized."""


class GrantSubject(NamedTuple):
    """What a grant is for."""

    node: str
    caller: str
    session: str
    verb: str
    uid: str = ""
    container: str = ""
    request: bytes = b""


class GrantSigner:
    """Signs grants with the desk's key."""

    def __init__(self, key_file: Path, clock: Clock, ids: Ids) -> None:
        self._clock = clock
        self._ids = ids
        key = _load(key_file, lambda pem: serialization.load_pem_private_key(pem, None))
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    def sign(self, subject: GrantSubject) -> str:
        now = int(self._clock.now().timestamp())
        grant = Grant(
            aud=subject.node, sub=subject.caller, iat=now, exp=now + LIFETIME_S, jti=self._ids.new("grant"),
            session=subject.session, verb=subject.verb, uid=subject.uid, container=subject.container,
            request=request_digest(subject.request),
        )  # fmt: skip
        return sign_jws(self._key, {"typ": "JWT"}, grant)


def request_digest(request: bytes) -> str:
    return hashlib.sha256(request).hexdigest()


def load_grant_key(file: Path) -> ec.EllipticCurvePublicKey:
    """The key that verifies grants."""
    key = _load(file, serialization.load_pem_public_key)
    assert isinstance(key, ec.EllipticCurvePublicKey)
    return key


def _load(file: Path, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(file.read_bytes())
    except (OSError, ValueError) as error:
        what = f"the key of grants for debugging cannot be read: {error}"
        raise Refused(Problem(SETTING_INVALID, what, Where(file=str(file)), next="pin up")) from error
