"""Keys of people and builders, what they publish and review, and the project that trusts them."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pincompute.api.attestation import Envelope, Key, public, signed
from pincompute.api.build import Builder, Built, Details, Reviewed, Source, built, reviewed
from pincompute.planning.landing import Build

DIGEST = "sha256:" + "c" * 64
COMMIT = "a" * 40
TEXT = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: shop}
spec: {image: hello:dev, port: 8080, simulated: true}
"""


@cache
def key(name: str) -> Key:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def trusted(*names: str) -> dict[str, str]:
    return {name: public(key(name)) for name in names}


def build(*, by: str = "ci", says: str = "", text: str = TEXT, attested: str = TEXT, **more: Any) -> Build:
    """As it lies in the store; `by` is whose key has signed it, `says` whom it names."""
    source = {"project": "ads", "name": "shop", "version": "1.0", "repository": "/git", "branch": "main"}
    words = Source(**{**source, "path": "shop.yaml", **more.get("source", {})})
    images = more.get("images", {"hello:dev": DIGEST})
    file = hashlib.sha256(attested.encode()).hexdigest()
    statement: Built = built(words, COMMIT, file, images, Details(builder=Builder(id=says or by)))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Build("ads", "shop", "1.0", text.encode(), digest, signed(statement, key(by)), statement)


def review(by: str, commit: str = COMMIT) -> tuple[Envelope, Reviewed]:
    statement = reviewed(commit, by, "2026-01-01T00:00:00Z")
    return signed(statement, key(by)), statement
