"""Addresses of others, as people write them down."""

from __future__ import annotations

from yarl import URL


def safe(address: str) -> str:
    """What goes over a network goes encrypted."""
    url = URL(address)
    if url.scheme != "https" and not (url.scheme == "http" and url.host in {"127.0.0.1", "::1", "localhost"}):
        raise ValueError(f"{address} is no https:// address")
    return address
