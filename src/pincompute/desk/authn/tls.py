"""The desk's TLS: client certificates are optional, and renewed files take effect without a restart."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID


class TlsFiles(NamedTuple):
    certificate: Path
    key: Path
    client_roots: Path | None = None
    """Roots of client certificates; without, none are requested."""

    def version(self) -> tuple[int, ...]:
        """Changes when a file is replaced or written."""
        stats = [each.stat() for each in self if each]
        return tuple(number for stat in stats for number in (stat.st_ino, stat.st_mtime_ns))


def server_tls_context(files: TlsFiles) -> ssl.SSLContext:
    """A context that uses the current files for each handshake."""
    # The version first: a file that is replaced while it is loaded is loaded again.
    current = [(files.version(), _load_context(files))]

    def use_current_files(connection: ssl.SSLSocket | ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        # Files that cannot be read are being replaced: until then the former ones are used.
        with suppress(OSError, Refused):
            version = files.version()
            if version != current[0][0]:
                current[0] = version, _load_context(files)
        connection.context = current[0][1]

    first = current[0][1]
    first.sni_callback = use_current_files
    return first


def _load_context(files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # No session resumption: a resumed session would outlive the client certificate that it began with.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_cert_chain(files.certificate, files.key)
        if files.client_roots:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.verify_flags |= ssl.VERIFY_X509_STRICT
            context.load_verify_locations(files.client_roots)
    except OSError as error:
        what = f"cannot load the TLS certificate: {error}"
        raise Refused(Problem(SETTING_INVALID, what, Where(file=str(files.certificate)))) from error
    return context
