"""What the desk answers: one document, or a line of JSON for each of many."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import msgspec
from aiohttp import web

from pincompute.base.problem import Refused


def json_of(value: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


async def stream(request: web.Request, values: AsyncGenerator[object]) -> web.StreamResponse:
    """A line of JSON a value. What goes wrong before the first is an answer of its own, after it a last line."""
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    async with aclosing(values):
        first = await anext(values, None)
        # Whoever asked may leave at any moment, and that is nothing to tell anybody.
        with suppress(ConnectionResetError):
            await response.prepare(request)
            if first is not None:
                await _write(response, first, values)
    return response


async def _write(response: web.StreamResponse, first: object, others: AsyncGenerator[object]) -> None:
    await response.write(msgspec.json.encode(first) + b"\n")
    try:
        async for value in others:
            await response.write(msgspec.json.encode(value) + b"\n")
    except Refused as refused:
        await response.write(msgspec.json.encode(refused.json()) + b"\n")
