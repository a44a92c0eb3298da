"""Attestations: what somebody says of something, in in-toto's words, signed with the key they have for git and ssh.

An envelope is DSSE's, a statement in-toto's, so that what others have made for either can read ours.
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

PAYLOAD = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
KEYS = "ssh-ed25519 or ecdsa-sha2-nistp256"

Key = Ed25519PrivateKey | EllipticCurvePrivateKey
_Public = Ed25519PublicKey | EllipticCurvePublicKey


class Said(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Part of what is said; others may say more."""


class Subject(Said, frozen=True, kw_only=True):
    """What it is said of: by name, and by what cannot change."""

    name: str = ""
    digest: dict[str, str]


class Predicate(Said, frozen=True, kw_only=True):
    """What is said."""


class Statement(Said, Generic[P], frozen=True, kw_only=True, omit_defaults=False):
    type_: str = msgspec.field(name="_type", default=STATEMENT)
    subject: list[Subject]
    predicate_type: str
    predicate: P


class Signature(msgspec.Struct, frozen=True, omit_defaults=True):
    sig: str
    keyid: str = ""


class Envelope(msgspec.Struct, frozen=True, rename="camel"):
    """A statement, word by word, and who signed it."""

    payload: str
    payload_type: str
    signatures: list[Signature]

    def body(self) -> bytes:
        return _bytes(self.payload)

    def signers(self, keys: Mapping[str, str]) -> frozenset[str]:
        """Whose keys have signed it, of these. Which key a signature names is no proof of anything."""
        said = encoded(self.payload_type, self.body())
        each = [_bytes(one.sig) for one in self.signatures]
        return frozenset(name for name, key in keys.items() if any(_signed(key, one, said) for one in each))


class NotSaid(ValueError):  # noqa: N818  (it reads as what is wrong)
    """It is no attestation of this sort."""


def signed(statement: Statement[Any], key: Key) -> Envelope:
    body = msgspec.json.encode(statement)
    signature = _sign(key, encoded(PAYLOAD, body))
    return Envelope(_text(body), PAYLOAD, [Signature(_text(signature), fingerprint(public(key)))])


def opened(text: bytes, type_: type[P], predicate_type: str) -> tuple[Envelope, Statement[P]]:
    """An envelope and what is in it; nothing is known yet of who signed it."""
    try:
        envelope = msgspec.json.decode(text, type=Envelope)
        if envelope.payload_type != PAYLOAD:
            raise NotSaid(f"it holds {envelope.payload_type!r}, and no statement")
        body = envelope.body()
        head = msgspec.json.decode(body, type=_Head)
        if (head.type_, head.predicate_type) != (STATEMENT, predicate_type):
            raise NotSaid(f"it says something of the sort {head.predicate_type!r}")
        # msgspec knows the fields of a generic by the type it is made with.
        return envelope, msgspec.json.decode(body, type=Statement[type_])  # type: ignore[valid-type]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise error if isinstance(error, NotSaid) else NotSaid(str(error)) from error


class _Head(Said, frozen=True, kw_only=True):
    type_: str = msgspec.field(name="_type", default="")
    predicate_type: str = ""


def private(text: bytes) -> Key:
    """A key as `ssh-keygen -t ed25519` writes it, without a password."""
    try:
        key = serialization.load_ssh_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise NotSaid(str(error)) from error
    if not isinstance(key, Ed25519PrivateKey | EllipticCurvePrivateKey):
        raise NotSaid(f"it is no {KEYS}")
    return key


def public(key: Key) -> str:
    """As it stands in a project: `ssh-ed25519 AAAA…`."""
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_key().public_bytes(*form).decode()


def fingerprint(key: str) -> str:
    """As `ssh-keygen -l` says it."""
    digest = hashlib.sha256(base64.b64decode(key.split()[1])).digest()
    return f"SHA256:{_text(digest).rstrip('=')}"


def key_fault(key: str) -> str:
    """Why nobody can sign with it."""
    try:
        _public(key)
    except (ValueError, UnsupportedAlgorithm) as error:
        return str(error)
    return ""


def _public(key: str) -> _Public:
    found = serialization.load_ssh_public_key(key.encode())
    if not isinstance(found, Ed25519PublicKey | EllipticCurvePublicKey):
        raise ValueError(f"it is no {KEYS}")
    return found


def _signed(key: str, signature: bytes, said: bytes) -> bool:
    try:
        found = _public(key)
        if isinstance(found, Ed25519PublicKey):
            found.verify(signature, said)
        else:
            found.verify(signature, said, ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError, UnsupportedAlgorithm):
        return False
    return True


def _sign(key: Key, said: bytes) -> bytes:
    return key.sign(said) if isinstance(key, Ed25519PrivateKey) else key.sign(said, ECDSA(hashes.SHA256()))


def encoded(type_: str, body: bytes) -> bytes:
    """What is signed: DSSE's encoding, in which nothing can be taken for something else."""
    return b"DSSEv1 %d %s %d %s" % (len(type_), type_.encode(), len(body), body)


def _text(some: bytes) -> str:
    return base64.b64encode(some).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        # Nothing is signed by it, and nothing said.
        return b""
