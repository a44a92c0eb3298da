"""TLS as the desk speaks it: programs may show a certificate, and nobody has to."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID


class Files(NamedTuple):
    certificate: Path
    key: Path
    roots: Path | None = None
    """By which programs are known."""

    def stamp(self) -> tuple[int, ...]:
        found = [each.stat() for each in self if each]
        return tuple(number for each in found for number in (each.st_ino, each.st_mtime_ns))


def context(files: Files) -> ssl.SSLContext:
    """Each handshake uses the files as they are by then."""
    newest = [(files.stamp(), _made(files))]

    def renew(connection: ssl.SSLSocket | ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        # What cannot be read is on its way: until then the one before goes on.
        with suppress(OSError, Refused):
            if (stamp := files.stamp()) != newest[0][0]:
                newest[0] = stamp, _made(files)
        connection.context = newest[0][1]

    first = newest[0][1]
    first.sni_callback = renew
    return first


def _made(files: Files) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    # A session that is taken up again would outlive the certificate that it began with.
    made.options |= ssl.OP_NO_TICKET
    made.num_tickets = 0
    try:
        made.load_cert_chain(files.certificate, files.key)
        if files.roots:
            made.verify_mode = ssl.CERT_OPTIONAL
            made.verify_flags |= ssl.VERIFY_X509_STRICT
            made.load_verify_locations(files.roots)
    except OSError as error:
        what = f"the desk's certificate cannot be used: {error}"
        raise Refused(Problem(SETTING_INVALID, what, Where(file=str(files.certificate)))) from error
    return made
