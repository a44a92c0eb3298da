"""Authorities and certificates of every making, good and bad."""

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

from pincompute.agents.identity.bundle import IDENTITY, TRUST

DOMAIN = "test.pincompute.local"
WEB = f"spiffe://{DOMAIN}/me/web"
NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)
BOTH = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH)


class Made(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: tuple[x509.Certificate, ...] = ()
    """Those between it and a root."""

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write(self, folder: Path, *roots: Made) -> Path:
        """As the kubelet lays it down for a pod."""
        folder.mkdir(parents=True, exist_ok=True)
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        between = "".join(each.public_bytes(Encoding.PEM).decode() for each in self.chain)
        (folder / IDENTITY).write_text(key + self.pem + between)
        (folder / TRUST).write_text("".join(root.pem for root in roots))
        return folder


def key_request(key: CertificateIssuerPrivateKeyTypes, digest: hashes.SHA256 | hashes.SHA512 | None = None) -> bytes:
    """Of a key, and of nothing else, as the kubelet makes it."""
    own = None if isinstance(key, ed25519.Ed25519PrivateKey) else digest or hashes.SHA256()
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, own)
    return request.public_bytes(Encoding.DER)


def usage(*said: str) -> x509.KeyUsage:
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{name: name in said for name in names})


def uris(*names: str) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.UniformResourceIdentifier(name) for name in names])


def authority(under: Made | None = None, *, name: str = "an authority", says: x509.KeyUsage | None = None) -> Made:
    """A root, or one that another authority made."""
    extensions = [
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (says or usage("key_cert_sign", "crl_sign"), True),
    ]
    return _made(under, extensions, subject=name, life=24 * HOUR)


def svid(
    by: Made,
    *names: str,
    begin: datetime = NOW - timedelta(minutes=1),
    life: timedelta = HOUR,
    constraints: x509.BasicConstraints | None = None,
    says: x509.KeyUsage | None = None,
    critical: bool = True,
    purposes: Sequence[x509.ObjectIdentifier] = BOTH,
    more: Sequence[tuple[x509.ExtensionType, bool]] = (),
    without: type[x509.ExtensionType] | None = None,
) -> Made:
    """A good one by default, of `me/web`; each word makes it otherwise."""
    extensions: list[tuple[x509.ExtensionType, bool]] = [
        (uris(*(names or (WEB,))), True),
        (constraints or x509.BasicConstraints(ca=False, path_length=None), True),
        (says or usage("digital_signature"), critical),
        *([(x509.ExtendedKeyUsage(purposes), False)] if purposes else []),
    ]
    kept = [each for each in extensions if without is None or not isinstance(each[0], without)]
    return _made(by, [*kept, *more], begin=begin, life=life)


def _made(
    by: Made | None,
    extensions: Sequence[tuple[x509.ExtensionType, bool]],
    *,
    subject: str = "",
    begin: datetime = NOW - HOUR,
    life: timedelta,
) -> Made:
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
    return Made(draft.sign(signs, hashes.SHA256()), key, chain)
