"""Provides a valid token for a desk, and refreshes the saved login before it expires."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from pincompute.base.clock import Clock, SystemClock
from pincompute.base.platform_context import Context
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CREDENTIALS_MISSING
from pincompute.base.saved_login import SavedLogin, login_lock, read_login, write_login
from pincompute.base.settings import setting_value

RENEW_BEFORE_S = 30.0
"""A token is refreshed this long before it expires."""


async def with_current_token(state: Path, context: Context, clock: Clock | None = None) -> Context:
    """Set the token of PIN_TOKEN's file or of the saved login; without either, keep the context as it is."""
    if file := setting_value("token"):
        return msgspec.structs.replace(context, token=_read_token(file))
    clock = clock or SystemClock()
    login = read_login(state, context.name)
    if login and not _is_current(login, clock) and login.refresh:
        login = await asyncio.to_thread(_refresh_locked, state, context.name, clock)
    return msgspec.structs.replace(context, token=login.token) if login else context


def _read_token(file: str) -> str:
    """Read at every command, as other programs renew the file."""
    try:
        return Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        what = f"the token cannot be read: {error}"
        raise Refused(Problem(CREDENTIALS_MISSING, what, Where(file=file), next="pin config view --origin")) from error


def _is_current(login: SavedLogin, clock: Clock) -> bool:
    return clock.now().timestamp() < login.expires_at - RENEW_BEFORE_S


def _refresh_locked(state: Path, name: str, clock: Clock) -> SavedLogin | None:
    """Refresh once for all concurrent commands: a provider takes a second use of a refresh token for theft."""
    with login_lock(state, name):
        login = read_login(state, name)
        if login and not _is_current(login, clock):
            login = asyncio.run(_refresh(login, clock))
            write_login(state, name, login)
        return login


async def _refresh(login: SavedLogin, clock: Clock) -> SavedLogin:
    # Loads aiohttp, which only a refresh needs.
    from pincompute.cli.device_login import open_provider

    async with open_provider(login.issuer, login.client, clock) as provider:
        return await provider.refresh_login(login)
