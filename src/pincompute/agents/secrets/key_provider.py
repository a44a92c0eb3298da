"""Key providers: wrap the data keys of secrets, so that the database alone decrypts nothing.

A provider outside the platform, such as Vault's transit engine, implements the same two methods: `wrap` is its
`encrypt`, `unwrap` its `decrypt`, `context` the associated data, and `key_id` the version in its ciphertext.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pincompute.base.key_file import KEY_BYTES
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SECRETS_UNAVAILABLE

NONCE_BYTES = 12
_ENCODED = msgspec.json.Decoder(dict[str, bytes])


class WrappedKey(NamedTuple):
    """A data key that only the provider can open."""

    key_id: str
    wrapped: bytes


class KeyProvider(Protocol):
    """Both methods raise Refused with SecretsUnavailable if the provider does not answer or has lost the key."""

    async def wrap(self, data_key: bytes, context: str) -> WrappedKey:
        """Encrypts a data key with the newest key. `context` is bound to it, and must be given to unwrap it."""
        ...

    async def unwrap(self, wrapped: WrappedKey, context: str) -> bytes: ...


class FileKeyProvider:
    """Keys in a file that only the store can read, as JSON by their id. The last one wraps; older ones still open."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._keys = _ENCODED.decode(file.read_bytes())
        except OSError as error:
            raise _keys_unavailable(f"cannot read the keys: {error.strerror}", file) from error
        except msgspec.DecodeError as error:
            raise _keys_unavailable("the file of keys is not valid", file) from error
        if not self._keys or any(len(key) != KEY_BYTES for key in self._keys.values()):
            raise _keys_unavailable(f"the file must hold keys of {KEY_BYTES} bytes", file)

    async def wrap(self, data_key: bytes, context: str) -> WrappedKey:
        key_id, key = list(self._keys.items())[-1]
        return WrappedKey(key_id, seal(key, data_key, context))

    async def unwrap(self, wrapped: WrappedKey, context: str) -> bytes:
        if wrapped.key_id not in self._keys:
            raise _keys_unavailable(f"the key '{wrapped.key_id}' is missing", self._file)
        try:
            return unseal(self._keys[wrapped.key_id], wrapped.wrapped, context)
        except InvalidTag:
            raise _keys_unavailable(f"the key '{wrapped.key_id}' does not open this secret", self._file) from None


def seal(key: bytes, content: bytes, context: str) -> bytes:
    """Encrypt with AES-256-GCM; the nonce comes first."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, content, context.encode())


def unseal(key: bytes, sealed: bytes, context: str) -> bytes:
    """Decrypt. InvalidTag if the content was altered, or belongs to another context."""
    return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], context.encode())


def _keys_unavailable(what: str, file: Path) -> Refused:
    next_ = "restore the file from its backup"
    return Refused(Problem(SECRETS_UNAVAILABLE, what, Where(file=str(file)), next=next_))
