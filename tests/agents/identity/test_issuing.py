"""What the signer signs: the standard's certificate to the last extension, and for keys that it knows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from authorities import DOMAIN, NOW, WEB, key_request
from pincompute.agents.identity.bundle import peer_id
from pincompute.agents.identity.issuing import Issuer, requested_key
from pincompute.base.certificates import Authority
from pincompute.base.problem import Refused
from pincompute.objects.spiffe import SpiffeId, parse
from pincompute.planning.pods.identity import LIFE, Granted

GRANTED = Granted(parse(WEB), NOW, NOW + LIFE / 2, NOW + LIFE)
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    authority = Authority(tmp_path, name=DOMAIN)
    authority.establish()
    authority.delegate("signer", str(SpiffeId(DOMAIN)))
    return authority


@pytest.fixture
def issuer(authority: Authority) -> Issuer:
    return Issuer(authority.certificate("signer"), authority.key("signer"))


def test_a_certificate_is_the_standards_to_the_last_extension(issuer: Issuer, authority: Authority) -> None:
    leaf, own = x509.load_pem_x509_certificates(issuer.chain(GRANTED, KEY.public_key()).encode())
    assert peer_id(leaf.public_bytes(Encoding.DER), DOMAIN) == GRANTED.who
    assert leaf.public_key() == KEY.public_key()
    assert (leaf.not_valid_before_utc, leaf.not_valid_after_utc) == (GRANTED.begin, GRANTED.end)
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


def test_the_signers_own_says_its_trust_domain_and_makes_no_authority(issuer: Issuer, authority: Authority) -> None:
    assert issuer.trust_domain == DOMAIN
    own = x509.load_pem_x509_certificate(authority.certificate("signer").read_bytes())
    assert own.extensions.get_extension_for_class(x509.BasicConstraints).value == x509.BasicConstraints(True, 0)
    assert own.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    with pytest.raises(Refused):
        peer_id(own.public_bytes(Encoding.DER), DOMAIN)


def test_it_signs_with_what_pin_up_left_last(issuer: Issuer, authority: Authority) -> None:
    authority.certificate("signer").unlink()
    authority.delegate("signer", str(SpiffeId(DOMAIN)))
    leaf, own = x509.load_pem_x509_certificates(issuer.chain(GRANTED, KEY.public_key()).encode())
    assert own.public_bytes(Encoding.PEM) == authority.certificate("signer").read_bytes()
    leaf.verify_directly_issued_by(own)


def test_nothing_outlives_what_signed_it(issuer: Issuer) -> None:
    later = GRANTED._replace(end=GRANTED.end + timedelta(days=365))
    with pytest.raises(Refused, match="signer's own certificate ends"):
        issuer.chain(later, KEY.public_key())


KNOWN = {
    "P-256": KEY,
    "P-384": ec.generate_private_key(ec.SECP384R1()),
    "P-521": ec.generate_private_key(ec.SECP521R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "RSA 3072": rsa.generate_private_key(65537, 3072),
}


@pytest.mark.parametrize("key", KNOWN.values(), ids=KNOWN)
def test_keys_that_a_kubelet_makes_are_signed(issuer: Issuer, key: ec.EllipticCurvePrivateKey) -> None:
    public = requested_key(key_request(key))
    assert public == key.public_key()
    (leaf, _) = x509.load_pem_x509_certificates(issuer.chain(GRANTED, public).encode())
    assert leaf.public_key() == public


TAMPERED = bytearray(key_request(KEY))
TAMPERED[-1] ^= 1
UNKNOWN = {
    "RSA 2048": key_request(rsa.generate_private_key(65537, 2048)),
    "DSA": key_request(dsa.generate_private_key(2048)),
    "another curve": key_request(ec.generate_private_key(ec.SECP256K1())),
    "not signed by it": bytes(TAMPERED),
    "nothing": b"",
    "not a request": b"AAAA",
}


@pytest.mark.parametrize("request_", UNKNOWN.values(), ids=UNKNOWN)
def test_other_keys_are_refused_in_words(request_: bytes) -> None:
    with pytest.raises(Refused) as refused:
        requested_key(request_)
    (problem,) = refused.value.problems
    assert (problem.reason.code, problem.next) == ("UnsupportedKeyType", "use ECDSAP256")
