"""Asks a cluster to authenticate service account tokens."""

from __future__ import annotations

from typing import Any

import msgspec

from pincompute.kube.client import Client

_USERNAME_PREFIX = "system:serviceaccount:"
_KEYS_PATH = "/openid/v1/jwks"
"""Readable by every service account of a cluster, unless its administrators have changed that."""
_REVIEWS_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: list[str] = []


class _TokenReview(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class TokenReviewer:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def signing_keys(self) -> dict[str, Any]:
        """The public keys that sign the cluster's service account tokens, as a JSON Web Key Set."""
        found: dict[str, Any] = msgspec.json.decode(await self._client.raw("GET", _KEYS_PATH), type=dict[str, Any])
        return found

    async def service_account_of(self, token: str, audience: str) -> str:
        """`NAMESPACE/NAME` of the token's service account; empty if the cluster rejects it for the audience."""
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        response = await self._client.raw("POST", _REVIEWS_PATH, body=msgspec.json.encode(review))
        status = msgspec.json.decode(response, type=_TokenReview).status
        parts = status.user.username.removeprefix(_USERNAME_PREFIX).split(":")
        is_account = status.user.username.startswith(_USERNAME_PREFIX) and len(parts) == 2
        return "/".join(parts) if status.authenticated and audience in status.audiences and is_account else ""
