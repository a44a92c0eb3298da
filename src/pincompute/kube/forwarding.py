"""A forwarding: one connection to a port of a pod, over one websocket."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress

import aiohttp

from pincompute.kube.errors import ApiError, Unreachable
from pincompute.kube.request import Request, Target
from pincompute.kube.resource import PODS

PROTOCOL = "v4.channel.k8s.io"
"""The newer ones carry SPDY within a websocket, for many connections at once; here each has its own."""

_DATA, _ERRORS = b"\0", b"\1"
_GREETING = 2
"""Bytes of each channel's first message, which repeats the port."""


def forward(namespace: str, pod: str, port: int) -> Request:
    target = Target(PODS, pod, namespace, "portforward")
    return Request("GET", target.path, {"ports": str(port)}, about=target.about, verb="get", resource=target.right)


class Forwarding:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse, about: str, server: str) -> None:
        self.socket = socket
        self._about = about
        self._server = server

    async def received(self) -> AsyncGenerator[bytes]:
        """What the program at the port says, until it hangs up."""
        greeted: set[bytes] = set()
        async for message in self.socket:
            data: bytes = message.data if message.type == aiohttp.WSMsgType.BINARY else b""
            channel, rest = data[:1], data[1:]
            if channel not in greeted and len(rest) == _GREETING:
                greeted.add(channel)
            elif channel == _ERRORS and rest:
                raise ApiError(0, "Forward", rest.decode("utf-8", "replace").strip(), about=self._about)
            elif channel == _DATA and rest:
                yield rest
        if self.socket.exception() is not None:
            raise Unreachable(self._server, "it broke off", about=self._about)

    async def write(self, data: bytes) -> None:
        # Where it has ended already, whoever reads hears why.
        with suppress(aiohttp.ClientConnectionResetError):
            await self.socket.send_bytes(_DATA + data)
