"""Makes the certificates, by the letter of the X.509-SVID standard."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import IDENTITY_FAILED, UNSUPPORTED_KEY_TYPE
from pincompute.objects.spiffe import SpiffeId, parse
from pincompute.planning.pods.identity import Granted

LEAST_RSA = 3072
_PEM = b"-----BEGIN"
_CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey


class Issuer:
    """The signer's certificate and key, as `pin up` leaves them; they are read anew when they change."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._stamp: tuple[int, ...] = ()
        self._read()

    @property
    def trust_domain(self) -> str:
        """A signer's own name is that of its trust domain."""
        return _name(self._certificate).trust_domain

    @property
    def ends(self) -> float:
        return self._certificate.not_valid_after_utc.timestamp()

    def chain(self, granted: Granted, key: PublicKey) -> str:
        """The certificate, and then the signer's own, as PEM."""
        self._read()
        if granted.end > self._certificate.not_valid_after_utc:
            what = f"the signer's own certificate ends at {self._certificate.not_valid_after_utc:%Y-%m-%d %H:%M}"
            raise Refused(Problem(IDENTITY_FAILED, f"{what}, before the one that it is to sign", next="pin up"))
        made = _draft(granted, key, self._certificate).sign(self._key, hashes.SHA256())
        return "".join(each.public_bytes(serialization.Encoding.PEM).decode() for each in (made, self._certificate))

    def _read(self) -> None:
        stamp = tuple(number for file in self._files for number in (file.stat().st_ino, file.stat().st_mtime_ns))
        if stamp == self._stamp:
            return
        certificate, key = (file.read_bytes() for file in self._files)
        loaded = serialization.load_pem_private_key(key, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        self._certificate, self._key, self._stamp = x509.load_pem_x509_certificate(certificate), loaded, stamp


def requested_key(request: bytes) -> PublicKey:
    """The key that a PKCS#10 request is for, which whoever asks has shown to hold; nothing else in it is heeded."""
    read = x509.load_pem_x509_csr if request.startswith(_PEM) else x509.load_der_x509_csr
    try:
        asked = read(request)
        valid, key = asked.is_signature_valid, asked.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _unsupported(f"cannot be read: {error}") from error
    if not valid:
        raise _unsupported("is not signed by the key that it names")
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
        return key
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= LEAST_RSA:
        return key
    raise _unsupported("is of a kind or a length that is not signed")


def _draft(granted: Granted, key: PublicKey, issuer: x509.Certificate) -> x509.CertificateBuilder:
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    # Without a subject the name must be critical: there is no other.
    name = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(str(granted.who))])
    above = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(issuer.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(granted.begin)
        .not_valid_after(granted.end)
        .add_extension(name, critical=True)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_SIGNS_MESSAGES, critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(above), critical=False)
    )


_SIGNS_MESSAGES = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


def _name(certificate: x509.Certificate) -> SpiffeId:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return parse(names.get_values_for_type(x509.UniformResourceIdentifier)[0])


def _unsupported(why: str) -> Refused:
    return Refused(Problem(UNSUPPORTED_KEY_TYPE, f"the request's key {why}", next="use ECDSAP256"))
