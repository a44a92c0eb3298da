"""A pod's own certificate as its folder holds it, for TLS on either side. It needs nothing but Python itself."""

from __future__ import annotations

import ssl
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import IDENTITY_MISSING
from pincompute.objects.spiffe import SpiffeId

FOLDER = Path("/run/identity")
"""Where every container of a pod finds it."""
IDENTITY = "identity.pem"
"""The private key, and the certificate with those between it and the trust root."""
TRUST = "trust.pem"
"""The roots of the trust domain."""

_TRIES = 5


def client_context(folder: Path = FOLDER) -> ssl.SSLContext:
    """To ask with: made anew only when the files changed, so call it for each connection.

    The chain is verified; who answered says `peer_id`, which must be asked before a byte is sent.
    """
    return _newest(folder, ssl.PROTOCOL_TLS_CLIENT)


def server_context(folder: Path = FOLDER) -> ssl.SSLContext:
    """To answer with: each handshake uses the files as they are by then. Who asked says `peer_id`."""
    context = _newest(folder, ssl.PROTOCOL_TLS_SERVER)

    def renew(connection: ssl.SSLSocket | ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        # What cannot be read is on its way: until then the one before goes on.
        with suppress(Refused):
            connection.context = _newest(folder, ssl.PROTOCOL_TLS_SERVER)

    context.sni_callback = renew
    return context


def peer_id(certificate: bytes, trust_domain: str) -> SpiffeId:
    """Who the other side is, by its certificate as DER: `getpeercert(binary_form=True)` after the handshake.

    Refused, where the certificate breaks a rule of the SPIFFE standard or is of another trust domain.
    """
    # What reads certificates takes three times the memory of all else here, and a shipper of logs may never need it.
    from pincompute.objects.svid import identify

    return identify(certificate, trust_domain)


def own_id(folder: Path = FOLDER) -> SpiffeId:
    """Who this pod is."""
    from pincompute.objects.svid import read

    try:
        return read((folder / IDENTITY).read_text())
    except OSError as error:
        raise _missing(folder, error) from error


class _Files(NamedTuple):
    """Both files, by what tells them from those that came before."""

    identity: Path
    trust: Path
    stamp: tuple[int, ...]


def _newest(folder: Path, protocol: int) -> ssl.SSLContext:
    """The kubelet replaces both files at once, by one link; whoever reads meanwhile reads again."""
    for _ in range(_TRIES - 1):
        with suppress(OSError):
            return _context(_seen(folder), protocol)
    try:
        return _context(_seen(folder), protocol)
    except OSError as error:
        raise _missing(folder, error) from error


def _seen(folder: Path) -> _Files:
    identity, trust = ((folder / name).resolve(strict=True) for name in (IDENTITY, TRUST))
    stats = (identity.stat(), trust.stat())
    return _Files(identity, trust, tuple(number for each in stats for number in (each.st_ino, each.st_mtime_ns)))


@lru_cache(maxsize=4)
def _context(files: _Files, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Names are in SPIFFE IDs, and no host is known by one.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(files.trust)
    context.load_cert_chain(files.identity)
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        # A session that is taken up again would outlive the certificate that it began with.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _missing(folder: Path, error: OSError) -> Refused:
    said = error.strerror or str(error)
    what = f"there is no identity to use in {folder}: {said}"
    next_ = "see that the runtime of this workload has the part identity: pin runtime who"
    return Refused(Problem(IDENTITY_MISSING, what, Where(file=str(folder)), next=next_))
