"""What others send is read to its end, and no further than can be meant."""

from __future__ import annotations

import aiohttp


async def whole(answer: aiohttp.ClientResponse, most: int) -> bytes | None:
    """Nothing where it is more: a read of so many bytes would be content with those that are there already."""
    body = bytearray()
    async for chunk in answer.content.iter_any():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)
