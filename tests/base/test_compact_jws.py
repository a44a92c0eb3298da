"""Signatures of tokens and grants."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from pincompute.base.compact_jws import sign_jws, verified_claims

KEY = ec.generate_private_key(ec.SECP256R1())
TOKEN = sign_jws(KEY, {"typ": "JWT"}, {"sub": "ann"})


def test_verifies_its_own_signature() -> None:
    assert verified_claims(TOKEN, KEY.public_key()) == b'{"sub":"ann"}'


def test_rejects_another_key() -> None:
    assert verified_claims(TOKEN, ec.generate_private_key(ec.SECP256R1()).public_key()) is None


@pytest.mark.parametrize(
    "token",
    [
        "", ".", "..", "a.b.c", TOKEN + "a", TOKEN[:-4], TOKEN.rpartition(".")[0] + ".", TOKEN.replace(".", ""),
        "ä.b.c", TOKEN + "\n", "\0" * 200,
    ],
)  # fmt: skip
def test_rejects_malformed_tokens(token: str) -> None:
    assert verified_claims(token, KEY.public_key()) is None


def test_rejects_changed_claims() -> None:
    header, _, signature = TOKEN.split(".")
    claims = base64.urlsafe_b64encode(b'{"sub":"bob"}').rstrip(b"=").decode()
    assert verified_claims(f"{header}.{claims}.{signature}", KEY.public_key()) is None


def test_does_not_let_the_header_choose_the_algorithm() -> None:
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    assert verified_claims(f"{none}.{TOKEN.split('.')[1]}.", KEY.public_key()) is None
