"""Reading of response bodies with an upper bound."""

from __future__ import annotations

import aiohttp


async def read_bounded(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    """Reads the whole body, or returns None if it is larger than `max_bytes`.

    `content.read(max_bytes)` would not do: it returns the bytes that have arrived, which may be only the first chunk.
    """
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > max_bytes:
            return None
    return bytes(body)
