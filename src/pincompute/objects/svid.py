"""X.509-SVIDs: verification of a certificate by the rules of the SPIFFE standard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PEER_REFUSED
from pincompute.objects.spiffe import SpiffeId, parse_spiffe_id

T = TypeVar("T", bound=x509.ExtensionType)

_BOTH_SIDES = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def verify_svid(certificate: bytes, trust_domain: str) -> SpiffeId:
    """SPIFFE ID of a peer certificate (DER). The TLS handshake has already verified the chain up to a root."""
    try:
        found = x509.load_der_x509_certificate(certificate)
        violation = next(_violations(found.extensions), "")
        name = "" if violation else _uri_names(found.extensions)[0]
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise _peer_rejected(f"the certificate cannot be parsed: {error}") from error
    if violation:
        raise _peer_rejected(violation)
    spiffe_id = _parse_id(name)
    if spiffe_id.trust_domain != trust_domain:
        raise _peer_rejected(f"its trust domain is '{spiffe_id.trust_domain}', expected '{trust_domain}'")
    return spiffe_id


def read_spiffe_id(chain: str) -> SpiffeId:
    """SPIFFE ID of the first certificate in a PEM chain of our own, which is not verified."""
    return _parse_id(_uri_names(x509.load_pem_x509_certificate(chain.encode()).extensions)[0])


def _violations(extensions: x509.Extensions) -> Iterator[str]:
    """Violations of the standard's requirements for a single certificate."""
    names = _uri_names(extensions)
    if len(names) != 1:
        yield f"it has {len(names)} URI names instead of one"
    constraints = _extension(extensions, x509.BasicConstraints)
    if constraints and constraints.value.ca:
        yield "it is a CA certificate"
    usage = _extension(extensions, x509.KeyUsage)
    if usage is None:
        yield "it has no key usage extension"
        return
    if not usage.critical:
        yield "its key usage extension is not critical"
    if usage.value.key_cert_sign or usage.value.crl_sign:
        yield "its key usage allows to sign certificates or CRLs"
    if not usage.value.digital_signature:
        yield "its key usage lacks digitalSignature"
    extended = _extension(extensions, x509.ExtendedKeyUsage)
    if extended and not set(extended.value) >= _BOTH_SIDES:
        yield "its extended key usage lacks serverAuth or clientAuth"


def _uri_names(extensions: x509.Extensions) -> list[str]:
    found = _extension(extensions, x509.SubjectAlternativeName)
    return found.value.get_values_for_type(x509.UniformResourceIdentifier) if found else []


def _extension(extensions: x509.Extensions, kind: type[T]) -> x509.Extension[T] | None:
    try:
        return extensions.get_extension_for_class(kind)
    except x509.ExtensionNotFound:
        return None


def _parse_id(name: str) -> SpiffeId:
    try:
        spiffe_id = parse_spiffe_id(name)
    except ValueError as error:
        raise _peer_rejected(f"its name {name!r} is not a SPIFFE ID: {error}") from error
    if not spiffe_id.path:
        raise _peer_rejected(f"{name} identifies an authority, not a workload")
    return spiffe_id


def _peer_rejected(reason: str) -> Refused:
    what = f"the peer's certificate is not a valid SVID: {reason}"
    return Refused(Problem(PEER_REFUSED, what, next="inspect it: openssl x509 -text -noout"))
