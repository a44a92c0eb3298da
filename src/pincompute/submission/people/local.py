"""Whoever works at this machine: they can read the file that `pin up` wrote, and nobody else can."""

from __future__ import annotations

import hmac
from ipaddress import ip_address

from pincompute.api.identity import Identity
from pincompute.submission.people.door import Shown


class LocalToken:
    """It is good on this machine only, and whose machine it is administers all that runs on it."""

    def __init__(self, token: str, name: str) -> None:
        # An empty file would let everybody in.
        assert token
        self._token = token.encode()
        self._who = Identity(name, administers=True)

    async def identify(self, shown: Shown) -> Identity | None:
        if not hmac.compare_digest(shown.token.encode(), self._token):
            return None
        return self._who if _is_loopback(shown.address) else None


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
