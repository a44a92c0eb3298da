"""WebSockets to a desk, for `pin shell` and `pin port-forward`. They are aiohttp's, which takes long to load."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import aiohttp

from pincompute.base.platform_context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import FORBIDDEN
from pincompute.base.websocket_limits import MAX_MESSAGE_BYTES
from pincompute.cli.error_response import parse_error_response
from pincompute.cli.http_client import CONNECT_TIMEOUT_S, TransportError
from pincompute.cli.retry import RetryPolicy
from pincompute.cli.tls_context import desk_tls_context

HEARTBEAT_INTERVAL_S = 30.0
"""After this long without a message the desk is pinged."""


@asynccontextmanager
async def open_websocket(
    context: Context, path: str, headers: Mapping[str, str], retry_policy: RetryPolicy
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S)
    tls = desk_tls_context(context)
    try:
        async with (
            aiohttp.ClientSession(
                context.desk,
                headers=headers,
                timeout=timeout,
                middlewares=(raise_rejection, retry_middleware(retry_policy)),
                connector=aiohttp.TCPConnector(ssl=tls) if tls else None,
            ) as session,
            session.ws_connect(path, heartbeat=HEARTBEAT_INTERVAL_S, max_msg_size=MAX_MESSAGE_BYTES) as socket,
        ):
            try:
                yield socket
            except Refused:
                if socket.close_code != aiohttp.WSCloseCode.POLICY_VIOLATION:
                    raise
            if socket.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION:
                what = "the desk closed the session: your login expired, or your permission was withdrawn"
                raise Refused(Problem(FORBIDDEN, what, next="pin whoami"))
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
        raise TransportError(str(error)) from error


async def raise_rejection(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Raise the desk's own error for a rejected handshake, whose body aiohttp would throw away."""
    response = await send(request)
    if response.status != 101:
        async with response:
            raise parse_error_response(await response.read(), f"the desk answered with status {response.status}")
    return response


def retry_middleware(retry_policy: RetryPolicy) -> aiohttp.ClientMiddlewareType:
    async def send_retried(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        return await retry_policy.send_with_retry(partial(send, request), _release_response)

    return send_retried


async def _release_response(response: aiohttp.ClientResponse) -> None:
    response.release()
