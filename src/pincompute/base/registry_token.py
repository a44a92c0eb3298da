"""Tokens of the platform's image registry, as the Docker Registry v2 protocol defines them: a JWT that lists what its
holder may do in which repository."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pincompute.base.clock import Clock, SystemClock
from pincompute.base.compact_jws import sign_jws
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import REGISTRY_FAILED

ISSUER = "pincompute"
SERVICE = "pincompute-registry"
"""Audience of the tokens."""
LIFETIME_S = 300
"""Checked when a request begins, so that an upload may take longer."""


class RegistryAccess(msgspec.Struct, frozen=True):
    """One entry of a token: actions on a repository, or on the list of all repositories."""

    type: str
    name: str
    actions: tuple[str, ...]


CATALOG = RegistryAccess("registry", "catalog", ("*",))
"""Lists the names of all repositories."""


def repository_access(repository: str, *, write: bool = False) -> RegistryAccess:
    return RegistryAccess("repository", repository, ("pull", "push") if write else ("pull",))


class RegistryTokenSigner:
    """Signs tokens with the platform's key. Only the owner of the platform's folder can read it."""

    def __init__(self, key_file: Path, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        try:
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        except (OSError, ValueError) as error:
            what = f"the key of the image registry cannot be read: {error}"
            raise Refused(Problem(REGISTRY_FAILED, what, Where(file=str(key_file)), next="pin up")) from error
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key
        self.key_id = registry_key_id(key.public_key())

    def sign(self, subject: str, access: Sequence[RegistryAccess]) -> str:
        now = int(self._clock.now().timestamp())
        claims = {
            "iss": ISSUER, "aud": SERVICE, "sub": subject, "access": access,
            "iat": now, "nbf": now, "exp": now + LIFETIME_S,
        }  # fmt: skip
        return sign_jws(self._key, {"typ": "JWT", "kid": self.key_id}, claims)


def registry_key_id(key: ec.EllipticCurvePublicKey) -> str:
    """Id by which the registry finds a key: its libtrust fingerprint, 240 bits of SHA-256 in groups of four letters."""
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    letters = base64.b32encode(hashlib.sha256(der).digest()[:30]).decode()
    return ":".join(letters[start : start + 4] for start in range(0, len(letters), 4))
