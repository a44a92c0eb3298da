"""Attestations: envelopes, signatures and SSH keys."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pincompute.api.attestation import (
    PAYLOAD_TYPE,
    InvalidAttestation,
    fingerprint,
    load_private_key,
    open_envelope,
    pre_auth_encoding,
    public_key_error,
    public_key_text,
    sign_statement,
)
from pincompute.api.build import PROVENANCE_TYPE, REVIEW_TYPE, Approval, Provenance, review_statement
from signed_builds import COMMIT, signed_build, signing_key, trusted_keys

EC_KEY = ec.derive_private_key(7, ec.SECP256R1())


def test_signs_dsse_pre_auth_encoding() -> None:
    # https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
    assert pre_auth_encoding("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


@pytest.mark.parametrize("signer", [signing_key("ann"), EC_KEY])
def test_finds_signers_by_key(signer: object) -> None:
    envelope = sign_statement(review_statement(COMMIT, "ben", ""), signer)  # type: ignore[arg-type]
    text = msgspec.json.encode(envelope)
    found, statement = open_envelope(text, Approval, REVIEW_TYPE)
    assert statement == review_statement(COMMIT, "ben", "")
    keys = {"signer": public_key_text(signer), **trusted_keys("ben", "eve")}  # type: ignore[arg-type]
    assert found.signers(keys) == {"signer"}


@pytest.mark.parametrize("change", [("payload", "e30="), ("payload_type", "text/plain")])
def test_signature_does_not_cover_altered_envelope(change: tuple[str, str]) -> None:
    altered = msgspec.structs.replace(signed_build().envelope, **dict([change]))
    assert altered.signers(trusted_keys("ci")) == frozenset()


def test_ignores_key_id_of_signature() -> None:
    envelope = signed_build(by="eve").envelope
    claims = [
        msgspec.structs.replace(each, keyid=fingerprint(public_key_text(signing_key("ci"))))
        for each in envelope.signatures
    ]
    assert msgspec.structs.replace(envelope, signatures=claims).signers(trusted_keys("ci")) == frozenset()


@pytest.mark.parametrize("signature", ["", "!", "A", "AAAA", base64.b64encode(b"x" * 64).decode()])
def test_ignores_malformed_signature(signature: str) -> None:
    envelope = signed_build().envelope
    broken = [msgspec.structs.replace(each, sig=signature) for each in envelope.signatures]
    assert msgspec.structs.replace(envelope, signatures=broken).signers(trusted_keys("ci")) == frozenset()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`"),
        (b'{"payload":"e30=","payloadType":"text/plain","signatures":[]}', "the payload type is 'text/plain'"),
        (f'{{"payload":"e30=","payloadType":"{PAYLOAD_TYPE}","signatures":[]}}'.encode(), "the predicate type is ''"),
        (f'{{"payload":"?","payloadType":"{PAYLOAD_TYPE}","signatures":[]}}'.encode(), ""),
    ],
)
def test_rejects_malformed_attestation(text: bytes, message: str) -> None:
    with pytest.raises(InvalidAttestation) as error:
        open_envelope(text, Provenance, PROVENANCE_TYPE)
    assert message in str(error.value)


def test_rejects_review_in_place_of_build() -> None:
    text = msgspec.json.encode(sign_statement(review_statement(COMMIT, "ann", ""), signing_key("ann")))
    with pytest.raises(InvalidAttestation, match="review"):
        open_envelope(text, Provenance, PROVENANCE_TYPE)


def test_reads_keys_of_ssh_keygen(tmp_path: Path) -> None:
    file = tmp_path / "key"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file), check=True)
    key = load_private_key(file.read_bytes())
    public_key = file.with_suffix(".pub").read_text()
    assert public_key_text(key) == " ".join(public_key.split()[:2])
    listing = subprocess.run(("ssh-keygen", "-l", "-f", file), check=True, capture_output=True, text=True).stdout
    assert listing.split()[1] == fingerprint(public_key)
    assert sign_statement(review_statement(COMMIT, "me", ""), key).signers({"me": public_key}) == {"me"}


def test_rejects_unsupported_key() -> None:
    rsa_key = rsa.generate_private_key(65537, 2048)
    text = rsa_key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert public_key_error(text) == "unsupported key type, expected ssh-ed25519 or ecdsa-sha2-nistp256"
    assert public_key_error("hello")
    assert not public_key_error(public_key_text(EC_KEY))
    with pytest.raises(InvalidAttestation, match="unsupported key type, expected ssh-ed25519"):
        load_private_key(rsa_key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    with pytest.raises(InvalidAttestation):
        load_private_key(b"hello")
