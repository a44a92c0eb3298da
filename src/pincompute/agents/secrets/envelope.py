"""Envelope encryption: each version has a data key of its own, which a key provider wraps."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from cryptography.exceptions import InvalidTag

from pincompute.agents.secrets.key_provider import KeyProvider, WrappedKey, seal, unseal
from pincompute.base.key_file import KEY_BYTES
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import SECRETS_UNAVAILABLE


class Envelope(NamedTuple):
    """An encrypted value, as it is stored."""

    key_id: str
    wrapped_key: bytes
    sealed: bytes


async def close_envelope(provider: KeyProvider, value: bytes, context: str) -> Envelope:
    """Encrypts a value. `context` names the secret: a row that is copied to another secret cannot be opened."""
    data_key = secrets.token_bytes(KEY_BYTES)
    wrapped = await provider.wrap(data_key, context)
    return Envelope(wrapped.key_id, wrapped.wrapped, seal(data_key, value, context))


async def open_envelope(provider: KeyProvider, envelope: Envelope, context: str) -> bytes:
    data_key = await provider.unwrap(WrappedKey(envelope.key_id, envelope.wrapped_key), context)
    try:
        return unseal(data_key, envelope.sealed, context)
    except InvalidTag:
        what = "a stored secret was altered, and cannot be decrypted"
        raise Refused(Problem(SECRETS_UNAVAILABLE, what, next="restore the database from its backup")) from None
