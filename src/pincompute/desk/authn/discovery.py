"""OpenID discovery: the addresses and keys that a provider publishes."""

from __future__ import annotations

from typing import Any

import aiohttp
import msgspec

from pincompute.base.openid import DISCOVERY
from pincompute.base.response_body import read_bounded

FETCH_TIMEOUT = aiohttp.ClientTimeout(total=10)
MAX_DOCUMENT_BYTES = 1 << 20


async def discover_provider(session: aiohttp.ClientSession, issuer: str) -> dict[str, Any]:
    """The provider's discovery document. Raises ValueError if it is that of another issuer."""
    discovery = await fetch_json(session, issuer + DISCOVERY)
    if discovery.get("issuer") != issuer:
        raise ValueError(f"its issuer is {discovery.get('issuer')}")
    return discovery


async def fetch_json(session: aiohttp.ClientSession, address: str) -> dict[str, Any]:
    """A JSON object. Raises ValueError for any other response."""
    async with session.get(address, allow_redirects=False) as response:
        if response.status != 200:
            raise ValueError(f"{address} responded with status {response.status}")
        return await read_json(response)


async def read_json(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """The body as a JSON object. Raises ValueError for any other, or a larger one."""
    body = await read_bounded(response, MAX_DOCUMENT_BYTES)
    if body is None:
        raise ValueError(f"{response.url.origin()} responded with more than {MAX_DOCUMENT_BYTES:,} bytes")
    found: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    return found
