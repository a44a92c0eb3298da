"""How a desk is known to be the one that is meant: by the system's authorities, or by one that was named."""

from __future__ import annotations

import ssl

import aiohttp

from pincompute.base.context import Context
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SETTING_INVALID


def connector(context: Context) -> aiohttp.TCPConnector | None:
    if not context.authority:
        return None
    try:
        return aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=context.authority))
    except OSError as error:
        what = f"the desk's authority cannot be used: {error}"
        raise Refused(Problem(SETTING_INVALID, what, Where(file=context.authority))) from error
