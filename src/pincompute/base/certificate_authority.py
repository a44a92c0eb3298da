"""A certificate authority in a folder, which issues a certificate for each part and user of a platform."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property
from ipaddress import ip_address, ip_network
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pincompute.base.clock import Clock, SystemClock
from pincompute.base.secure_files import make_private_folder, write_private_file

CA_LIFETIME = timedelta(days=3650)
LIFETIME = timedelta(days=365)
# The clock of a machine that just woke up may lag behind the clock of the issuer.
CLOCK_SKEW = timedelta(minutes=5)


class Authority:
    """Keeps `ca.crt` and `ca.key` in one folder, and `NAME.crt` and `NAME.key` for each certificate it issued."""

    def __init__(self, folder: Path, clock: Clock | None = None, name: str = "pincompute", domain: str = "") -> None:
        self.folder = folder
        self.name = name
        self._domain = domain
        """If set, clients reject certificates of this CA for any host that is not at or below it."""
        self.clock = clock or SystemClock()
        self.replaced = False
        """A certificate that was in use has been replaced: the parts that loaded it must be restarted."""
        self._parent: Authority | None = None

    def beneath(self, folder: str, name: str, domain: str = "") -> Authority:
        """Another authority, in a folder of this one and with its clock; what it replaces is replaced here, too."""
        other = Authority(self.folder / folder, self.clock, name, domain)
        other._parent = self
        return other

    @property
    def bundle(self) -> Path:
        """File of the CA certificate."""
        return self.folder / "ca.crt"

    def certificate(self, name: str) -> Path:
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    def establish(self) -> bool:
        """Create the CA if there is none, or it is in the last third of its lifetime. Returns whether it is new."""
        make_private_folder(self.folder)
        if self._fresh("ca"):
            return False
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(self.name)
        usage = _usage(signs=True)
        draft = self._draft(name, name, key, CA_LIFETIME)
        draft = draft.add_extension(
            x509.BasicConstraints(ca=True, path_length=0 if self._domain else None), critical=True
        )
        draft = draft.add_extension(usage, critical=True)
        if self._domain:
            draft = draft.add_extension(_constraints(self._domain), critical=True)
        self._store("ca", key, draft.sign(key, hashes.SHA256()))
        self.__dict__.pop("_ca", None)
        return True

    def issue(self, name: str, user: str = "", groups: tuple[str, ...] = (), hosts: tuple[str, ...] = ()) -> bool:
        """Issue a certificate for the user and the hosts, unless a current one exists. Returns whether it is new."""
        subject = _name(user or name, groups)
        if self._fresh(name) and self._matches(name, subject, hosts):
            return False
        issuer, issuer_key = self._ca
        key = ec.generate_private_key(ec.SECP256R1())
        draft = self._draft(subject, issuer.subject, key, LIFETIME)
        for extension, critical in (
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_usage(signs=False), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), False),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False),
        ):
            draft = draft.add_extension(extension, critical=critical)
        if hosts:
            draft = draft.add_extension(_alternatives(hosts), critical=False)
        self._store(name, key, draft.sign(issuer_key, hashes.SHA256()))
        return True

    def delegate(self, name: str, uri: str) -> bool:
        """Issue an intermediate CA for the names below `uri`. It cannot issue further CAs."""
        subject = _name(f"{self.name}-{name}")
        if self._fresh(name) and self._matches(name, subject, (uri,)):
            return False
        issuer, issuer_key = self._ca
        key = ec.generate_private_key(ec.SECP256R1())
        draft = self._draft(subject, issuer.subject, key, LIFETIME)
        for extension, critical in (
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (_usage(signs=True), True),
            (x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), False),
            (_alternatives((uri,)), False),
        ):
            draft = draft.add_extension(extension, critical=critical)
        self._store(name, key, draft.sign(issuer_key, hashes.SHA256()))
        return True

    def issue_key(self, name: str) -> None:
        """Create the key pair `NAME.key` and `NAME.pub`, which signs tokens. It is never renewed."""
        if self.key(name).exists() and (self.folder / f"{name}.pub").exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private_file(self.folder / f"{name}.pub", public)
        write_private_file(self.key(name), _pem(key))

    def mark_replaced(self) -> None:
        """Note that a certificate of this authority, or of one beneath it, was replaced."""
        self.replaced = True
        if self._parent is not None:
            self._parent.mark_replaced()

    @cached_property
    def _ca(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        key = serialization.load_pem_private_key(self.key("ca").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return self._load("ca"), key

    def _load(self, name: str) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.certificate(name).read_bytes())

    def due_expiry(self, name: str) -> datetime | None:
        """Expiry of a certificate that is in the last third of its lifetime, so that it would be renewed; else None."""
        try:
            certificate = self._load(name)
        except (FileNotFoundError, ValueError):
            return None
        return certificate.not_valid_after_utc if self._is_due(certificate) else None

    def _fresh(self, name: str) -> bool:
        """Key and certificate exist, and the certificate is in the first two thirds of its lifetime."""
        if not self.key(name).exists():
            return False
        try:
            return not self._is_due(self._load(name))
        except (FileNotFoundError, ValueError):
            return False

    def _is_due(self, certificate: x509.Certificate) -> bool:
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return self.clock.now() >= begin + (end - begin) * 2 / 3

    def _matches(self, name: str, subject: x509.Name, hosts: tuple[str, ...]) -> bool:
        """The certificate is issued by this CA and has exactly this subject and these names."""
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
        begin: datetime = self.clock.now() - CLOCK_SKEW
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

    def _store(self, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        """Write the key first: if the process is killed in between, the key without a certificate is replaced later."""
        if self.certificate(name).exists():
            self.mark_replaced()
        self.certificate(name).unlink(missing_ok=True)
        write_private_file(self.key(name), _pem(key))
        write_private_file(self.certificate(name), certificate.public_bytes(serialization.Encoding.PEM))


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


def _constraints(domain: str) -> x509.NameConstraints:
    """A constraint of names does not concern addresses, so these are excluded."""
    addresses = [x509.IPAddress(ip_network(each)) for each in ("0.0.0.0/0", "::/0")]
    return x509.NameConstraints([x509.DNSName(domain)], addresses)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signs, crl_sign=signs, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
