"""TLS contexts from a pod's own certificate files. Only `peer_id` and `own_id` need more than the standard library."""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import IDENTITY_MISSING
from pincompute.objects.spiffe import SpiffeId

IDENTITY_FOLDER = Path("/run/identity")
"""Mount path of the identity in every container of a pod."""
IDENTITY_FILE = "identity.pem"
"""Private key, certificate and intermediate certificates."""
TRUST_FILE = "trust.pem"
"""Roots of the trust domain."""

_MAX_READS = 5


def client_context(folder: Path = IDENTITY_FOLDER) -> ssl.SSLContext:
    """TLS context of a client. It is cached until the files change, so call this function for each connection.

    The context verifies the server's chain but not its name: check `peer_id` before the first byte is sent.
    """
    return _current_context(folder, ssl.PROTOCOL_TLS_CLIENT)


def server_context(folder: Path = IDENTITY_FOLDER) -> ssl.SSLContext:
    """TLS context of a server. Each handshake uses the current files. `peer_id` identifies the client."""
    context = _current_context(folder, ssl.PROTOCOL_TLS_SERVER)

    def renew(connection: ssl.SSLSocket | ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        # Files that cannot be read are about to be replaced: this handshake uses the previous ones.
        with suppress(Refused):
            connection.context = _current_context(folder, ssl.PROTOCOL_TLS_SERVER)

    context.sni_callback = renew
    return context


def peer_id(certificate: bytes, trust_domain: str) -> SpiffeId:
    """SPIFFE ID of the other side, by its certificate as DER: `getpeercert(binary_form=True)` after the handshake.

    Refused if the certificate violates the SPIFFE standard or belongs to another trust domain.
    """
    # This import triples the memory of the process, and log shippers in every pod never need it.
    from pincompute.objects.svid import verify_svid

    return verify_svid(certificate, trust_domain)


def own_id(folder: Path = IDENTITY_FOLDER) -> SpiffeId:
    """SPIFFE ID of this pod."""
    from pincompute.objects.svid import read_spiffe_id

    try:
        return read_spiffe_id((folder / IDENTITY_FILE).read_text())
    except OSError as error:
        raise _identity_missing(folder, error) from error


class _Files(NamedTuple):
    """Both files with inodes and modification times, by which contexts are cached."""

    identity: Path
    trust: Path
    stamp: tuple[int, ...]


def _current_context(folder: Path, protocol: int) -> ssl.SSLContext:
    """Context from the current files. The kubelet replaces both by one symlink: a read in between is repeated."""
    for _ in range(_MAX_READS - 1):
        with suppress(OSError):
            return _build_context(_find_files(folder), protocol)
    try:
        return _build_context(_find_files(folder), protocol)
    except OSError as error:
        raise _identity_missing(folder, error) from error


def _find_files(folder: Path) -> _Files:
    identity, trust = ((folder / name).resolve(strict=True) for name in (IDENTITY_FILE, TRUST_FILE))
    stats = (identity.stat(), trust.stat())
    return _Files(identity, trust, tuple(number for each in stats for number in (each.st_ino, each.st_mtime_ns)))


@lru_cache(maxsize=4)
def _build_context(files: _Files, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Certificates carry SPIFFE IDs and no host names.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(files.trust)
    context.load_cert_chain(files.identity)
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        # A resumed session would outlive the certificate of its first handshake.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _identity_missing(folder: Path, error: OSError) -> Refused:
    what = f"no identity in {folder}: {error.strerror or error}"
    next_ = "check that the workload's runtime has the part identity: pin runtime who"
    return Refused(Problem(IDENTITY_MISSING, what, Where(file=str(folder)), next=next_))
