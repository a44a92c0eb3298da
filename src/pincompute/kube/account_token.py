"""Short-lived tokens of a service account with few rights, for servers that must not see our own credentials."""

from __future__ import annotations

import asyncio

import msgspec

from pincompute.kube.client import Client

LIFETIME_S = 600
"""The shortest that the API server issues."""
_USED_FOR_S = LIFETIME_S * 2 / 3
_MAX_TOKEN_LENGTH = 16 * 2**10


class _TokenStatus(msgspec.Struct, frozen=True, kw_only=True):
    token: str


class _TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    status: _TokenStatus


class TokenInvalid(Exception):  # noqa: N818  (named for what happened, not for an error class)
    """A response of the API server that holds no usable token."""


class AccountToken:
    """The token of one service account, requested from the API server when it is needed, and used for some minutes."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        self._lock = asyncio.Lock()
        self._token = ""
        self._used_until_s = 0.0

    async def read(self) -> str:
        """A token that is valid for some minutes. Concurrent callers share one request."""
        async with self._lock:
            if not self._token or self._client.clock.monotonic() >= self._used_until_s:
                await self._request()
            return self._token

    async def _request(self) -> None:
        # Without audiences it is for the API server, by which kubelets review tokens.
        wanted = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME_S},
        }
        asked_at_s = self._client.clock.monotonic()
        body = await self._client.raw("POST", self._path, body=msgspec.json.encode(wanted))
        try:
            status = msgspec.json.decode(body, type=_TokenRequest).status
        except msgspec.DecodeError as error:
            raise TokenInvalid from error
        # A token with a line break would end the header, and begin another.
        if (
            not status.token.isascii()
            or not status.token.isprintable()
            or not 0 < len(status.token) < _MAX_TOKEN_LENGTH
        ):
            raise TokenInvalid
        self._token = status.token
        self._used_until_s = asked_at_s + _USED_FOR_S
