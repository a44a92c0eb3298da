"""X.509-SVIDs: what the SPIFFE standard demands of a certificate before it says who somebody is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PEER_REFUSED
from pincompute.objects.spiffe import SpiffeId, parse

T = TypeVar("T", bound=x509.ExtensionType)

_BOTH_SIDES = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def identify(certificate: bytes, trust_domain: str) -> SpiffeId:
    """Whom a certificate (DER) is of. That it leads to a root of the trust domain, the handshake has shown."""
    try:
        found = x509.load_der_x509_certificate(certificate)
        fault = next(_faults(found.extensions), "")
        name = "" if fault else _names(found.extensions)[0]
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise _refused(f"it cannot be read: {error}") from error
    if fault:
        raise _refused(fault)
    who = _parsed(name)
    if who.trust_domain != trust_domain:
        raise _refused(f"it is of the trust domain '{who.trust_domain}', and '{trust_domain}' is expected")
    return who


def read(chain: str) -> SpiffeId:
    """Whom the first certificate of a chain (PEM) is of; one's own is believed."""
    return _parsed(_names(x509.load_pem_x509_certificate(chain.encode()).extensions)[0])


def _faults(extensions: x509.Extensions) -> Iterator[str]:
    """Every MUST of the standard that is on one certificate alone."""
    names = _names(extensions)
    if len(names) != 1:
        yield f"it has {len(names)} URI names, and an identity is exactly one"
    constraints = _extension(extensions, x509.BasicConstraints)
    if constraints and constraints.value.ca:
        yield "it is of an authority, and those sign only"
    usage = _extension(extensions, x509.KeyUsage)
    if usage is None:
        yield "it does not say what its key is for"
        return
    if not usage.critical:
        yield "what its key is for is not marked as critical"
    if usage.value.key_cert_sign or usage.value.crl_sign:
        yield "its key may sign certificates or lists of revoked ones"
    if not usage.value.digital_signature:
        yield "its key may not sign"
    extended = _extension(extensions, x509.ExtendedKeyUsage)
    if extended and not set(extended.value) >= _BOTH_SIDES:
        yield "its key is not for both sides of a connection"


def _names(extensions: x509.Extensions) -> list[str]:
    found = _extension(extensions, x509.SubjectAlternativeName)
    return found.value.get_values_for_type(x509.UniformResourceIdentifier) if found else []


def _extension(extensions: x509.Extensions, kind: type[T]) -> x509.Extension[T] | None:
    try:
        return extensions.get_extension_for_class(kind)
    except x509.ExtensionNotFound:
        return None


def _parsed(name: str) -> SpiffeId:
    try:
        who = parse(name)
    except ValueError as error:
        raise _refused(f"its name {name!r} is no SPIFFE ID: {error}") from error
    if not who.path:
        raise _refused(f"{name} is the name of an authority, and of nobody in it")
    return who


def _refused(why: str) -> Refused:
    what = f"the other side's certificate does not say who it is: {why}"
    return Refused(Problem(PEER_REFUSED, what, next="see what signed it: openssl x509 -text -noout"))
