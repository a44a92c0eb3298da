"""Authenticates the local administrator by the token that `pin up` wrote into a file only its owner can read."""

from __future__ import annotations

import hmac

from pincompute.api.identity import Identity
from pincompute.desk.authn.authenticator import Credentials


class LocalTokenAuth:
    """Valid from the same machine only. The owner of the machine administers the platform on it."""

    def __init__(self, token: str, name: str) -> None:
        # An empty token would authenticate requests without credentials.
        assert token
        self._token = token.encode()
        self._identity = Identity(name, is_admin=True, is_local=True)

    async def authenticate(self, credentials: Credentials) -> Identity | None:
        if not hmac.compare_digest(credentials.token.encode(), self._token):
            return None
        return self._identity if credentials.is_local else None
