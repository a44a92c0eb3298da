"""Check of server addresses that users configure."""

from __future__ import annotations

from yarl import URL


def require_https(address: str) -> str:
    """Returns the address, or raises ValueError: plain HTTP is accepted for the loopback address only."""
    url = URL(address)
    if url.scheme != "https" and not (url.scheme == "http" and url.host in {"127.0.0.1", "::1", "localhost"}):
        raise ValueError(f"{address} must start with https://")
    return address
