"""TLS settings for a desk: its certificate authority, and the client certificate of a program."""

from __future__ import annotations

import ssl

from pincompute.base.platform_context import Context
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID


def desk_tls_context(context: Context) -> ssl.SSLContext | None:
    """Return None for a desk without settings: the system's authorities, and no client certificate."""
    if not (context.authority or context.identity):
        return None
    try:
        tls = ssl.create_default_context(cafile=context.authority or None)
    except OSError as error:
        what = f"the CA certificate of the desk cannot be loaded: {error}"
        raise Refused(Problem(SETTING_INVALID, what, Where(file=context.authority))) from error
    if context.identity:
        _load_client_certificate(tls, context)
    return tls


def _load_client_certificate(tls: ssl.SSLContext, context: Context) -> None:
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        tls.load_cert_chain(context.identity, context.key or None, password="")
    except OSError as error:
        what = f"the client certificate cannot be loaded: {error}"
        note = "" if context.key else "its key must be in the same file, or in the file of --key"
        raise Refused(Problem(SETTING_INVALID, what, Where(file=context.identity), note)) from error
