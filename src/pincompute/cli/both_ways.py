"""Into a copy, by a desk: what is said both ways at the same time goes over a websocket, which aiohttp speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import aiohttp

from pincompute.base.context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import NOT_ALLOWED
from pincompute.cli.asking import Unanswered
from pincompute.cli.come_back import ComeBack
from pincompute.cli.refusal import refusal
from pincompute.cli.trust import tls

HEARTBEAT = 30.0
"""Seconds of silence after which it is asked whether the desk is still there."""


@asynccontextmanager
async def both_ways(
    context: Context, path: str, headers: Mapping[str, str], again: ComeBack
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=5)
    made = tls(context)
    try:
        async with (
            aiohttp.ClientSession(
                context.desk,
                headers=headers,
                timeout=timeout,
                middlewares=(_hear_why_not, coming_back(again)),
                connector=aiohttp.TCPConnector(ssl=made) if made else None,
            ) as session,
            session.ws_connect(path, heartbeat=HEARTBEAT, max_msg_size=0) as socket,
        ):
            try:
                yield socket
            except Refused:
                if socket.close_code != aiohttp.WSCloseCode.POLICY_VIOLATION:
                    raise
            if socket.close_code == aiohttp.WSCloseCode.POLICY_VIOLATION:
                what = "the desk has ended this: your login has run out, or you may no longer go in there"
                raise Refused(Problem(NOT_ALLOWED, what, next="pin whoami"))
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
        raise Unanswered(str(error)) from error


async def _hear_why_not(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """A refused websocket has words too, which its handshake would throw away."""
    answer = await send(request)
    if answer.status != 101:
        async with answer:
            raise refusal(await answer.read(), f"the desk answered {answer.status}")
    return answer


def coming_back(again: ComeBack) -> aiohttp.ClientMiddlewareType:
    async def sent(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        return await again.heard(partial(send, request), _let_go)

    return sent


async def _let_go(answer: aiohttp.ClientResponse) -> None:
    answer.release()
