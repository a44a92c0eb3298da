"""TLS to a desk: by which authority it is known, and which certificate is shown to it, where a program has one."""

from __future__ import annotations

import ssl

from pincompute.base.context import Context
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID


def tls(context: Context) -> ssl.SSLContext | None:
    """Nothing where neither was named: by the system's authorities, and with nothing to show."""
    if not (context.authority or context.identity):
        return None
    try:
        made = ssl.create_default_context(cafile=context.authority or None)
    except OSError as error:
        what = f"the desk's authority cannot be used: {error}"
        raise Refused(Problem(SETTING_INVALID, what, Where(file=context.authority))) from error
    if context.identity:
        _show(made, context)
    return made


def _show(made: ssl.SSLContext, context: Context) -> None:
    try:
        # Nobody is there who could be asked for the password of a key.
        made.load_cert_chain(context.identity, context.key or None, password="")
    except OSError as error:
        what = f"the certificate that is shown to the desk cannot be used: {error}"
        note = "" if context.key else "its key is looked for in the same file: --key FILE names another one"
        raise Refused(Problem(SETTING_INVALID, what, Where(file=context.identity), note)) from error
