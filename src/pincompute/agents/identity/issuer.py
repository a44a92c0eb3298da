"""Issues certificates according to the X.509-SVID standard."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import IDENTITY_FAILED, UNSUPPORTED_KEY_TYPE
from pincompute.objects.spiffe import SpiffeId, parse_spiffe_id
from pincompute.planning.pods.certificate_approval import CertificateGrant

MIN_RSA_BITS = 3072
_PEM = b"-----BEGIN"
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey


class Issuer:
    """Signs with the certificate and key in two files, which are read again when they change."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._stamp: tuple[int, ...] = ()
        self._reload()

    @property
    def trust_domain(self) -> str:
        """Trust domain, from the SPIFFE ID in the signer's own certificate."""
        return _spiffe_id(self._certificate).trust_domain

    @property
    def expires_at(self) -> float:
        return self._certificate.not_valid_after_utc.timestamp()

    def issue_chain(self, granted: CertificateGrant, key: PublicKey) -> str:
        """Issues a certificate and returns it as PEM, followed by the signer's own certificate."""
        self._reload()
        if granted.not_after > self._certificate.not_valid_after_utc:
            what = f"the signer's own certificate expires at {self._certificate.not_valid_after_utc:%Y-%m-%d %H:%M}"
            raise Refused(Problem(IDENTITY_FAILED, f"{what}, before the requested one", next="pin up"))
        issued = _certificate_builder(granted, key, self._certificate).sign(self._key, hashes.SHA256())
        return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in (issued, self._certificate))

    def _reload(self) -> None:
        stamp = tuple(number for file in self._files for number in (file.stat().st_ino, file.stat().st_mtime_ns))
        if stamp == self._stamp:
            return
        certificate, key = (file.read_bytes() for file in self._files)
        loaded = serialization.load_pem_private_key(key, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        self._certificate, self._key, self._stamp = x509.load_pem_x509_certificate(certificate), loaded, stamp


def parse_requested_key(request: bytes) -> PublicKey:
    """Public key of a PKCS#10 request. The signature proves possession of the key. All other fields are ignored."""
    load = x509.load_pem_x509_csr if request.startswith(_PEM) else x509.load_der_x509_csr
    try:
        parsed = load(request)
        valid, key = parsed.is_signature_valid, parsed.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unsupported_key(f"the request is not valid PKCS#10: {error}") from error
    if not valid:
        raise _unsupported_key("the request must be signed by its own key")
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
        return key
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= MIN_RSA_BITS:
        return key
    raise _unsupported_key(f"the key must be ECDSA, Ed25519, or RSA of at least {MIN_RSA_BITS} bits")


def _certificate_builder(
    granted: CertificateGrant, key: PublicKey, issuer: x509.Certificate
) -> x509.CertificateBuilder:
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    # Without a subject, X.509 requires the alternative name to be critical.
    name = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(str(granted.spiffe_id))])
    issuer_key_id = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(issuer.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(granted.not_before)
        .not_valid_after(granted.not_after)
        .add_extension(name, critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_DIGITAL_SIGNATURE_ONLY, critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key_id), critical=False)
    )


_DIGITAL_SIGNATURE_ONLY = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


def _spiffe_id(certificate: x509.Certificate) -> SpiffeId:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return parse_spiffe_id(names.get_values_for_type(x509.UniformResourceIdentifier)[0])


def _unsupported_key(what: str) -> Refused:
    return Refused(Problem(UNSUPPORTED_KEY_TYPE, what, next="use ECDSAP256"))
