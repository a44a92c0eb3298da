"""Compact JSON Web Signatures with ES256: those of registry tokens, and of grants for debugging."""

from __future__ import annotations

import base64
import binascii

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

ALGORITHM = "ES256"
_P256_BYTES = 32


def sign_jws(key: ec.EllipticCurvePrivateKey, header: dict[str, str], claims: object) -> str:
    """The header, to which the algorithm is added, the claims and the signature, joined by dots."""
    content = b".".join(_base64url(msgspec.json.encode(part)) for part in ({**header, "alg": ALGORITHM}, claims))
    r, s = decode_dss_signature(key.sign(content, ec.ECDSA(hashes.SHA256())))
    signature = r.to_bytes(_P256_BYTES) + s.to_bytes(_P256_BYTES)
    return b".".join((content, _base64url(signature))).decode()


def verified_claims(token: str, key: ec.EllipticCurvePublicKey) -> bytes | None:
    """The claims as JSON, or None if the key has not signed them.

    The header is not read: the key decides the algorithm, so that no header can choose a weaker one.
    """
    content, dot, signature = token.rpartition(".")
    try:
        raw = _decode(signature)
        if not dot or len(raw) != 2 * _P256_BYTES:
            return None
        der = encode_dss_signature(int.from_bytes(raw[:_P256_BYTES]), int.from_bytes(raw[_P256_BYTES:]))
        key.verify(der, content.encode("ascii"), ec.ECDSA(hashes.SHA256()))
        return _decode(content.partition(".")[2])
    except (InvalidSignature, UnicodeEncodeError, binascii.Error, ValueError):
        return None


def _base64url(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
