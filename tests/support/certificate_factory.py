"""Issues certificate authorities and certificates for tests, valid and invalid ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from pincompute.agents.identity.bundle import IDENTITY_FILE, TRUST_FILE

TRUST_DOMAIN = "test.pincompute.local"
WEB_SPIFFE_ID = f"spiffe://{TRUST_DOMAIN}/me/web"
NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)
CLIENT_AND_SERVER = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH)


class IssuedCertificate(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...] = ()
    """The intermediate certificates."""

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write_bundle(self, folder: Path, *roots: IssuedCertificate) -> Path:
        """Writes the files as the kubelet projects them into a pod."""
        folder.mkdir(parents=True, exist_ok=True)
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        between = "".join(each.public_bytes(Encoding.PEM).decode() for each in self.chain)
        (folder / IDENTITY_FILE).write_text(key + self.pem + between)
        (folder / TRUST_FILE).write_text("".join(root.pem for root in roots))
        return folder


def key_request(key: CertificateIssuerPrivateKeyTypes, digest: hashes.SHA256 | hashes.SHA512 | None = None) -> bytes:
    """A signing request with an empty subject, as the kubelet creates it."""
    own = None if isinstance(key, ed25519.Ed25519PrivateKey) else digest or hashes.SHA256()
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, own)
    return request.public_bytes(Encoding.DER)


def key_usage(*said: str) -> x509.KeyUsage:
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{name: name in said for name in names})


def uri_names(*names: str) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.UniformResourceIdentifier(name) for name in names])


def issue_authority(
    under: IssuedCertificate | None = None, *, name: str = "an authority", says: x509.KeyUsage | None = None
) -> IssuedCertificate:
    """A root, or an intermediate authority."""
    extensions = [
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (says or key_usage("key_cert_sign", "crl_sign"), True),
    ]
    return _made(under, extensions, subject=name, life=24 * HOUR)


def issue_svid(
    by: IssuedCertificate,
    *names: str,
    begin: datetime = NOW - timedelta(minutes=1),
    life: timedelta = HOUR,
    constraints: x509.BasicConstraints | None = None,
    says: x509.KeyUsage | None = None,
    critical: bool = True,
    purposes: Sequence[x509.ObjectIdentifier] = CLIENT_AND_SERVER,
    more: Sequence[tuple[x509.ExtensionType, bool]] = (),
    without: type[x509.ExtensionType] | None = None,
) -> IssuedCertificate:
    """A valid SVID of `me/web`; each argument changes one property."""
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (uri_names(*(names or (WEB_SPIFFE_ID,))), True),
        (constraints or x509.BasicConstraints(ca=False, path_length=None), True),
        (says or key_usage("digital_signature"), critical),
        *([(x509.ExtendedKeyUsage(purposes), False)] if purposes else []),
    ]
    kept = [each for each in extensions if without is None or not isinstance(each[0], without)]
    return _made(by, [*kept, *more], begin=begin, life=life)


def _made(
    by: IssuedCertificate | None,
    extensions: Sequence[tuple[x509.ExtensionType, bool]],
    *,
    subject: str = "",
    begin: datetime = NOW - HOUR,
    life: timedelta,
) -> IssuedCertificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)] if subject else [])
    signs = by.key if by else key
    draft = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(by.certificate.subject if by else name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signs.public_key()), critical=False)
    )
    for extension, critical in extensions:
        draft = draft.add_extension(extension, critical=critical)
    chain = (by.certificate, *by.chain) if by and by.certificate.issuer != by.certificate.subject else ()
    return IssuedCertificate(draft.sign(signs, hashes.SHA256()), key, chain)
