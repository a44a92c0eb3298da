"""Signing keys, signed builds and signed reviews."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pincompute.admission.reviews import Build
from pincompute.api.attestation import Envelope, SigningKey, public_key_text, sign_statement
from pincompute.api.build import (
    Builder,
    BuildSource,
    ProvenanceStatement,
    ReviewStatement,
    RunDetails,
    provenance_statement,
    review_statement,
)

DIGEST = "sha256:" + "c" * 64
COMMIT = "a" * 40
TEXT = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: shop}
spec: {image: hello:dev, port: 8080, simulated: true}
"""


@cache
def signing_key(name: str) -> SigningKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(name.encode()).digest())


def trusted_keys(*names: str) -> dict[str, str]:
    return {name: public_key_text(signing_key(name)) for name in names}


def signed_build(*, by: str = "ci", says: str = "", text: str = TEXT, attested: str = TEXT, **more: Any) -> Build:
    """A build as in the artifact store; `by` is the signer, `says` the builder that it names."""
    source = {"project": "ads", "name": "shop", "version": "1.0", "repository": "/git", "branch": "main"}
    words = BuildSource(**{**source, "path": "shop.yaml", **more.get("source", {})})
    images = more.get("images", {"hello:dev": DIGEST})
    file = hashlib.sha256(attested.encode()).hexdigest()
    statement: ProvenanceStatement = provenance_statement(
        words, more.get("commit", COMMIT), file, images, RunDetails(builder=Builder(id=says or by))
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Build("ads", "shop", "1.0", text.encode(), digest, sign_statement(statement, signing_key(by)), statement)


def signed_review(by: str, commit: str = COMMIT) -> tuple[Envelope, ReviewStatement]:
    statement = review_statement(commit, by, "2026-01-01T00:00:00Z")
    return sign_statement(statement, signing_key(by)), statement
