"""A token that is good now: the one that is kept, or the next one, which nobody has to do anything for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from pincompute.base.clock import Clock, SystemClock
from pincompute.base.context import Context
from pincompute.base.login import Login, in_turn, read_login, write_login
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CREDENTIALS_MISSING
from pincompute.base.settings import setting

SOON = 30.0
"""Seconds before its end that a token is renewed."""


async def signed_in(state: Path, context: Context, clock: Clock | None = None) -> Context:
    """With the token of whoever has signed in; without a login, as it is."""
    if file := setting("token"):
        return msgspec.structs.replace(context, token=_read(file))
    clock = clock or SystemClock()
    login = read_login(state, context.name)
    if login and not _good(login, clock) and login.refresh:
        login = await asyncio.to_thread(_renewed, state, context.name, clock)
    return msgspec.structs.replace(context, token=login.token) if login else context


def _read(file: str) -> str:
    """Each time anew, as others renew it."""
    try:
        return Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        what = f"the token cannot be read: {error}"
        raise Refused(Problem(CREDENTIALS_MISSING, what, Where(file=file), next="pin config view --origin")) from error


def _good(login: Login, clock: Clock) -> bool:
    return clock.now().timestamp() < login.until - SOON


def _renewed(state: Path, name: str, clock: Clock) -> Login | None:
    """Two commands at once would show the same word twice, which a provider takes for theft."""
    with in_turn(state, name):
        login = read_login(state, name)
        if login and not _good(login, clock):
            login = asyncio.run(_renew(login, clock))
            write_login(state, name, login)
        return login


async def _renew(login: Login, clock: Clock) -> Login:
    # Only who has to ask a provider needs to know how.
    from pincompute.cli.openid import asked_of

    async with asked_of(login.issuer, login.client, clock) as provider:
        return await provider.renew(login)
