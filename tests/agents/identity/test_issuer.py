"""Issued certificates: conformance to the X.509-SVID standard, and supported keys."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from certificate_factory import NOW, TRUST_DOMAIN, WEB_SPIFFE_ID, key_request
from pincompute.agents.identity.bundle import peer_id
from pincompute.agents.identity.issuer import Issuer, parse_requested_key
from pincompute.base.certificate_authority import Authority
from pincompute.base.problem import Refused
from pincompute.objects.spiffe import SpiffeId, parse_spiffe_id
from pincompute.planning.pods.certificate_approval import CERTIFICATE_LIFETIME, CertificateGrant

GRANTED = CertificateGrant(
    parse_spiffe_id(WEB_SPIFFE_ID), NOW, NOW + CERTIFICATE_LIFETIME / 2, NOW + CERTIFICATE_LIFETIME
)
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    authority = Authority(tmp_path, name=TRUST_DOMAIN)
    authority.establish()
    authority.delegate("signer", str(SpiffeId(TRUST_DOMAIN)))
    return authority


@pytest.fixture
def issuer(authority: Authority) -> Issuer:
    return Issuer(authority.certificate("signer"), authority.key("signer"))


def test_certificate_conforms_to_svid_standard(issuer: Issuer, authority: Authority) -> None:
    leaf, own = x509.load_pem_x509_certificates(issuer.issue_chain(GRANTED, KEY.public_key()).encode())
    assert peer_id(leaf.public_bytes(Encoding.DER), TRUST_DOMAIN) == GRANTED.spiffe_id
    assert leaf.public_key() == KEY.public_key()
    assert (leaf.not_valid_before_utc, leaf.not_valid_after_utc) == (GRANTED.not_before, GRANTED.not_after)
    assert leaf.subject == x509.Name([])
    critical = {type(each.value).__name__: each.critical for each in leaf.extensions}
    assert critical == {
        "SubjectAlternativeName": True,
        "BasicConstraints": True,
        "KeyUsage": True,
        "ExtendedKeyUsage": False,
        "SubjectKeyIdentifier": False,
        "AuthorityKeyIdentifier": False,
    }
    leaf.verify_directly_issued_by(own)
    own.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.bundle.read_bytes()))


def test_signer_certificate_cannot_issue_authorities(issuer: Issuer, authority: Authority) -> None:
    assert issuer.trust_domain == TRUST_DOMAIN
    own = x509.load_pem_x509_certificate(authority.certificate("signer").read_bytes())
    assert own.extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(True, 0)
    assert own.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    with pytest.raises(Refused):
        peer_id(own.public_bytes(Encoding.DER), TRUST_DOMAIN)


def test_signs_with_replaced_certificate(issuer: Issuer, authority: Authority) -> None:
    authority.certificate("signer").unlink()
    authority.delegate("signer", str(SpiffeId(TRUST_DOMAIN)))
    leaf, own = x509.load_pem_x509_certificates(issuer.issue_chain(GRANTED, KEY.public_key()).encode())
    assert own.public_bytes(Encoding.PEM) == authority.certificate("signer").read_bytes()
    leaf.verify_directly_issued_by(own)


def test_refuses_to_outlive_signer_certificate(issuer: Issuer) -> None:
    too_late = GRANTED._replace(not_after=GRANTED.not_after + timedelta(days=365))
    with pytest.raises(Refused, match="signer's own certificate expires"):
        issuer.issue_chain(too_late, KEY.public_key())


SUPPORTED = {
    "P-256": KEY,
    "P-384": ec.generate_private_key(ec.SECP384R1()),
    "P-521": ec.generate_private_key(ec.SECP521R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "RSA 3072": rsa.generate_private_key(65537, 3072),
}


@pytest.mark.parametrize("key", SUPPORTED.values(), ids=SUPPORTED)
def test_signs_supported_keys(issuer: Issuer, key: ec.EllipticCurvePrivateKey) -> None:
    public = parse_requested_key(key_request(key))
    assert public == key.public_key()
    (leaf, _) = x509.load_pem_x509_certificates(issuer.issue_chain(GRANTED, public).encode())
    assert leaf.public_key() == public


TAMPERED = bytearray(key_request(KEY))
TAMPERED[-1] ^= 1
UNSUPPORTED = {
    "RSA 2048": key_request(rsa.generate_private_key(65537, 2048)),
    "DSA": key_request(dsa.generate_private_key(2048)),
    "another curve": key_request(ec.generate_private_key(ec.SECP256K1())),
    "invalid signature": bytes(TAMPERED),
    "empty": b"",
    "not a request": b"AAAA",
}


@pytest.mark.parametrize("request_", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_rejects_unsupported_keys(request_: bytes) -> None:
    with pytest.raises(Refused) as refused:
        parse_requested_key(request_)
    (problem,) = refused.value.problems
    assert (problem.reason.code, problem.next) == ("UnsupportedKeyType", "use ECDSAP256")
