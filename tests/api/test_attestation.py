"""Whose word it is, and what it says."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pincompute.api.attestation import (
    PAYLOAD,
    NotSaid,
    encoded,
    fingerprint,
    key_fault,
    opened,
    private,
    public,
    signed,
)
from pincompute.api.build import BUILT, REVIEWED, Approval, Provenance, reviewed
from signing import COMMIT, build, key, trusted

ELLIPTIC = ec.derive_private_key(7, ec.SECP256R1())


def test_what_is_signed_is_what_the_standard_says() -> None:
    # https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
    assert encoded("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


@pytest.mark.parametrize("signer", [key("ann"), ELLIPTIC])
def test_who_signed_is_told_by_keys_alone(signer: object) -> None:
    envelope = signed(reviewed(COMMIT, "ben", ""), signer)  # type: ignore[arg-type]
    text = msgspec.json.encode(envelope)
    found, statement = opened(text, Approval, REVIEWED)
    assert statement == reviewed(COMMIT, "ben", "")
    keys = {"signer": public(signer), **trusted("ben", "eve")}  # type: ignore[arg-type]
    assert found.signers(keys) == {"signer"}


@pytest.mark.parametrize("change", [("payload", "e30="), ("payload_type", "text/plain")])
def test_one_letter_more_and_nobody_has_signed_it(change: tuple[str, str]) -> None:
    altered = msgspec.structs.replace(build().envelope, **dict([change]))
    assert altered.signers(trusted("ci")) == frozenset()


def test_which_key_a_signature_names_is_no_proof() -> None:
    envelope = build(by="eve").envelope
    claims = [msgspec.structs.replace(each, keyid=fingerprint(public(key("ci")))) for each in envelope.signatures]
    assert msgspec.structs.replace(envelope, signatures=claims).signers(trusted("ci")) == frozenset()


@pytest.mark.parametrize("signature", ["", "!", "A", "AAAA", base64.b64encode(b"x" * 64).decode()])
def test_a_signature_that_is_none_counts_for_nobody(signature: str) -> None:
    envelope = build().envelope
    broken = [msgspec.structs.replace(each, sig=signature) for each in envelope.signatures]
    assert msgspec.structs.replace(envelope, signatures=broken).signers(trusted("ci")) == frozenset()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`"),
        (b'{"payload":"e30=","payloadType":"text/plain","signatures":[]}', "it holds 'text/plain', and no statement"),
        (f'{{"payload":"e30=","payloadType":"{PAYLOAD}","signatures":[]}}'.encode(), "something of the sort ''"),
        (f'{{"payload":"?","payloadType":"{PAYLOAD}","signatures":[]}}'.encode(), ""),
    ],
)
def test_what_is_no_attestation_says_why(text: bytes, told: str) -> None:
    with pytest.raises(NotSaid) as error:
        opened(text, Provenance, BUILT)
    assert told in str(error.value)


def test_a_review_is_no_build() -> None:
    text = msgspec.json.encode(signed(reviewed(COMMIT, "ann", ""), key("ann")))
    with pytest.raises(NotSaid, match="review"):
        opened(text, Provenance, BUILT)


def test_keys_are_those_of_ssh(tmp_path: Path) -> None:
    file = tmp_path / "key"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file), check=True)
    mine = private(file.read_bytes())
    said = file.with_suffix(".pub").read_text()
    assert public(mine) == " ".join(said.split()[:2])
    told = subprocess.run(("ssh-keygen", "-l", "-f", file), check=True, capture_output=True, text=True).stdout
    assert told.split()[1] == fingerprint(said)
    assert signed(reviewed(COMMIT, "me", ""), mine).signers({"me": said}) == {"me"}


def test_a_key_that_is_none_says_why() -> None:
    large = rsa.generate_private_key(65537, 2048)
    text = large.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert key_fault(text) == "it is no ssh-ed25519 or ecdsa-sha2-nistp256"
    assert key_fault("hello")
    assert not key_fault(public(ELLIPTIC))
    with pytest.raises(NotSaid, match="it is no ssh-ed25519"):
        private(large.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    with pytest.raises(NotSaid):
        private(b"hello")
