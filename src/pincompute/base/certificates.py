"""A certificate authority in a folder: a certificate for each part and each user, renewed in time."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pincompute.base.clock import Clock, SystemClock

CA_LIFE = timedelta(days=3650)
LIFE = timedelta(days=365)
# Clocks of a machine that just woke may lag a little behind the one that signed.
SLACK = timedelta(minutes=5)


class Authority:
    """Files in one folder: `ca.crt` and `ca.key`, and `NAME.crt` and `NAME.key` for everyone it vouches for."""

    def __init__(self, folder: Path, clock: Clock | None = None, name: str = "pincompute") -> None:
        self.folder = folder
        self.name = name
        self._clock = clock or SystemClock()
        self.replaced = False
        """Whether one that was in use was given up for a new one: whoever holds it must be started anew."""

    @property
    def bundle(self) -> Path:
        """What to trust."""
        return self.folder / "ca.crt"

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def establish(self) -> bool:
        """Make the authority where there is none, or its life nears its end; tell whether it is a new one."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._fresh("ca"):
            return False
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(self.name)
        usage = _usage(signs=True)
        draft = self._draft(name, name, key, CA_LIFE)
        draft = draft.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        draft = draft.add_extension(usage, critical=True)
        self._keep("ca", key, draft.sign(key, hashes.SHA256()))
        self.__dict__.pop("_ca", None)
        return True

    def issue(self, name: str, user: str = "", groups: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> bool:
        """Certify `name` as that user and as server of the hosts, unless it is already; tell whether it is new."""
        subject = _name(user or name, groups)
        if self._fresh(name) and self._says(name, subject, hosts):
            return False
        issuer, issuer_key = self._ca
        key = ec.generate_private_key(ec.SECP256R1())
        draft = self._draft(subject, issuer.subject, key, LIFE)
        for extension, critical in (
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_usage(signs=False), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False),
        ):
            draft = draft.add_extension(extension, critical=critical)
        if hosts:
            draft = draft.add_extension(_alternatives(hosts), critical=False)
        self._keep(name, key, draft.sign(issuer_key, hashes.SHA256()))
        return True

    def delegate(self, name: str, uri: str) -> bool:
        """Let `name` sign for those whose names lie below this one, and make no further authority."""
        subject = _name(f"{self.name}-{name}")
        if self._fresh(name) and self._says(name, subject, (uri,)):
            return False
        issuer, issuer_key = self._ca
        key = ec.generate_private_key(ec.SECP256R1())
        draft = self._draft(subject, issuer.subject, key, LIFE)
        for extension, critical in (
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (_usage(signs=True), True),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False),
            (_alternatives((uri,)), False),
        ):
            draft = draft.add_extension(extension, critical=critical)
        self._keep(name, key, draft.sign(issuer_key, hashes.SHA256()))
        return True

    def issue_key(self, name: str) -> None:
        """A bare pair of keys, `NAME.key` and `NAME.pub`, to sign and check tokens with. It is never renewed."""
        if self.key(name).exists() and (self.folder / f"{name}.pub").exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(self.folder / f"{name}.pub", public)
        write_private(self.key(name), _pem(key))

    @cached_property
    def _ca(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        key = serialization.load_pem_private_key(self.key("ca").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return self._load("ca"), key

    def _load(self, name: str) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate(name).read_bytes())

    def _fresh(self, name: str) -> bool:
        """Whether it is whole, and the first two thirds of its life are not over."""
        if not self.key(name).exists():
            return False
        try:
            certificate = self._load(name)
        except (FileNotFoundError, ValueError):
            return False
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return self._clock.now() < begin + (end - begin) * 2 / 3

    def _says(self, name: str, subject: x509.Name, hosts: tuple[str, ...]) -> bool:
        """Whether the certificate is by this authority and says just this."""
        certificate = self._load(name)
        try:
            certificate.verify_directly_issued_by(self._ca[0])
        except (ValueError, TypeError, InvalidSignature):
            return False
        try:
            seen = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            seen = None
        return certificate.subject == subject and seen == (_alternatives(hosts) if hosts else None)

    def _draft(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta
    ) -> x509.CertificateBuilder:
        begin: datetime = self._clock.now() - SLACK
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(begin + life)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )

    def _keep(self, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        """The key goes first: a certificate without its key is not trusted, so being killed in between does no harm."""
        self.replaced |= self.certificate(name).exists()
        self.certificate(name).unlink(missing_ok=True)
        write_private(self.key(name), _pem(key))
        write_private(self.certificate(name), certificate.public_bytes(serialization.Encoding.PEM))


def write_private(file: Path, content: bytes) -> None:
    """Whole or not at all, and for its owner's eyes only."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f".{file.name}.new")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
        handle.write(content)
    fresh.replace(file)


def _name(user: str, groups: tuple[str, ...] = ()) -> x509.Name:
    """Kubernetes reads the user from the common name and the groups from the organizations."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _alternatives(hosts: tuple[str, ...]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_alternative(host) for host in hosts])


def _alternative(host: str) -> x509.GeneralName:
    if "://" in host:
        return x509.UniformResourceIdentifier(host)
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signs, crl_sign=signs, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
