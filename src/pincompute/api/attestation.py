"""Attestations: in-toto statements in DSSE envelopes, signed with an SSH key.

Both formats are standards, so that tools of others can read our attestations and the other way round.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

P = TypeVar("P", bound="Predicate")

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
SUPPORTED_KEY_TYPES = "ssh-ed25519 or ecdsa-sha2-nistp256"

SigningKey = Ed25519PrivateKey | EllipticCurvePrivateKey
_PublicKey = Ed25519PublicKey | EllipticCurvePublicKey


class AttestationPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of statement parts. Unknown fields are ignored: other tools may add their own."""


class Subject(AttestationPart, frozen=True, kw_only=True):
    """The artifact that a statement is about, identified by digest."""

    name: str = ""
    digest: dict[str, str]


class Predicate(AttestationPart, frozen=True, kw_only=True):
    """Base of the predicates: the content of a statement."""


class Statement(AttestationPart, Generic[P], frozen=True, kw_only=True, omit_defaults=False):
    type_: str = msgspec.field(name="_type", default=STATEMENT_TYPE)
    subject: list[Subject]
    predicate_type: str
    predicate: P


class Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    sig: str
    keyid: str = ""


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """A signed statement. The payload is kept byte for byte, because the signature covers the bytes."""

    payload: str
    payload_type: str
    signatures: list[Signature]

    def payload_bytes(self) -> bytes:
        return _from_base64(self.payload)

    def signers(self, keys: Mapping[str, str]) -> frozenset[str]:
        """Names of those keys that have signed the envelope."""
        return KeyRing(keys).signers(self)


MAX_SIGNATURE_CHECKS = 20_000
"""Checks of one key ring. Genuine signatures need one or two each; unbounded forged ones would occupy a processor."""


class KeyRing:
    """Public keys by name. Bounds the work for all envelopes that are verified with it."""

    def __init__(self, keys: Mapping[str, str], max_checks: int = MAX_SIGNATURE_CHECKS) -> None:
        usable = {name: key for name, key in keys.items() if not public_key_error(key)}
        self._keys = {name: _load_public_key(key) for name, key in usable.items()}
        self._names_by_fingerprint = {fingerprint(key): name for name, key in usable.items()}
        self._remaining_checks = max_checks

    @property
    def exhausted(self) -> bool:
        """Not all signatures were verified: there were too many by unknown keys."""
        return self._remaining_checks <= 0

    def signers(self, envelope: Envelope) -> frozenset[str]:
        """Names of those keys that have signed the envelope."""
        signed = pre_auth_encoding(envelope.payload_type, envelope.payload_bytes())
        return frozenset(filter(None, (self._signer(each, signed) for each in envelope.signatures)))

    def _signer(self, signature: Signature, signed: bytes) -> str:
        """Name of the key that made a signature; empty if it is none of these.

        The key id only decides which key is tried first: it is not authenticated and proves nothing.
        """
        signature_bytes = _from_base64(signature.sig)
        hinted = self._names_by_fingerprint.get(signature.keyid)
        for name in sorted(self._keys, key=lambda each: each != hinted):
            if self.exhausted:
                return ""
            self._remaining_checks -= 1
            if _verifies(self._keys[name], signature_bytes, signed):
                return name
        return ""


class InvalidAttestation(ValueError):  # noqa: N818  (the name states the problem)
    """The envelope or key cannot be read, or holds another type of statement."""


def sign_statement(statement: Statement[Any], key: SigningKey) -> Envelope:
    body = msgspec.json.encode(statement)
    signature = _sign(key, pre_auth_encoding(PAYLOAD_TYPE, body))
    return Envelope(
        _to_base64(body), PAYLOAD_TYPE, [Signature(_to_base64(signature), fingerprint(public_key_text(key)))]
    )


def open_envelope(text: bytes, type_: type[P], predicate_type: str) -> tuple[Envelope, Statement[P]]:
    """Decode an envelope and its statement. Does not verify signatures: call `signers` for that."""
    try:
        envelope = msgspec.json.decode(text, type=Envelope)
        if envelope.payload_type != PAYLOAD_TYPE:
            raise InvalidAttestation(f"the payload type is {envelope.payload_type!r}, expected {PAYLOAD_TYPE!r}")
        body = envelope.payload_bytes()
        head = msgspec.json.decode(body, type=_Head)
        if (head.type_, head.predicate_type) != (STATEMENT_TYPE, predicate_type):
            raise InvalidAttestation(f"the predicate type is {head.predicate_type!r}, expected {predicate_type!r}")
        # The predicate type is given here, because msgspec decodes the fields of a generic by its argument.
        return envelope, msgspec.json.decode(body, type=Statement[type_])  # type: ignore[valid-type]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise error if isinstance(error, InvalidAttestation) else InvalidAttestation(str(error)) from error


class _Head(AttestationPart, frozen=True, kw_only=True):
    type_: str = msgspec.field(name="_type", default="")
    predicate_type: str = ""


def load_private_key(text: bytes) -> SigningKey:
    """Load an unencrypted private key in the format of `ssh-keygen -t ed25519`."""
    try:
        key = serialization.load_ssh_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InvalidAttestation(str(error)) from error
    if not isinstance(key, Ed25519PrivateKey | EllipticCurvePrivateKey):
        raise InvalidAttestation(f"unsupported key type, expected {SUPPORTED_KEY_TYPES}")
    return key


def public_key_text(key: SigningKey) -> str:
    """The public key as written into a project: `ssh-ed25519 AAAA…`."""
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_key().public_bytes(*form).decode()


def fingerprint(key: str) -> str:
    """SHA-256 fingerprint in the format of `ssh-keygen -l`."""
    digest = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    return f"SHA256:{_to_base64(digest).rstrip('=')}"


def public_key_error(key: str) -> str:
    """Why the public key is unusable; empty if it is valid."""
    try:
        _load_public_key(key)
    except (ValueError, UnsupportedAlgorithm) as error:
        return str(error)
    return ""


def _load_public_key(key: str) -> _PublicKey:
    public_key = serialization.load_ssh_public_key(key.encode())
    if not isinstance(public_key, Ed25519PublicKey | EllipticCurvePublicKey):
        raise ValueError(f"unsupported key type, expected {SUPPORTED_KEY_TYPES}")
    return public_key


def _verifies(key: _PublicKey, signature: bytes, signed: bytes) -> bool:
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, signed)
        else:
            key.verify(signature, signed, ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        return False
    return True


def _sign(key: SigningKey, data: bytes) -> bytes:
    return key.sign(data) if isinstance(key, Ed25519PrivateKey) else key.sign(data, ECDSA(hashes.SHA256()))


def pre_auth_encoding(type_: str, body: bytes) -> bytes:
    """The signed bytes: DSSE's pre-authentication encoding, which prefixes lengths so that type and payload cannot
    be confused."""
    return b"DSSEv1 %d %s %d %s" % (len(type_), type_.encode(), len(body), body)


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        # A damaged signature or payload verifies with no key, so it needs no error of its own.
        return b""
