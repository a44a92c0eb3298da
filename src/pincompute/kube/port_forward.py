"""Port-forward: one connection to a port of a pod, over one websocket."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress

import aiohttp

from pincompute.kube.errors import ApiError, Unreachable
from pincompute.kube.request import Request, Target
from pincompute.kube.resource import PODS

PORT_FORWARD_PROTOCOL = "v4.channel.k8s.io"
"""One connection per websocket. Newer protocols tunnel SPDY for many connections, which we do not need."""

_DATA, _ERRORS = b"\0", b"\1"
_FIRST_MESSAGE_BYTES = 2
"""Size of the first message of each channel, which only repeats the port number."""


def port_forward_request(namespace: str, pod: str, port: int) -> Request:
    target = Target(PODS, pod, namespace, "portforward")
    return Request(
        "GET", target.path, {"ports": str(port)}, about=target.about, verb="get", resource=target.rbac_resource
    )


class PortForward:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse, about: str, server: str) -> None:
        self.socket = socket
        self._about = about
        self._server = server

    async def chunks(self) -> AsyncGenerator[bytes]:
        """Yields the bytes that the program at the port sends, until it closes the connection."""
        opened: set[bytes] = set()
        async for message in self.socket:
            data: bytes = message.data if message.type == aiohttp.WSMsgType.BINARY else b""
            channel, rest = data[:1], data[1:]
            if channel not in opened and len(rest) == _FIRST_MESSAGE_BYTES:
                opened.add(channel)
            elif channel == _ERRORS and rest:
                raise ApiError(0, "Forward", rest.decode("utf-8", "replace").strip(), about=self._about)
            elif channel == _DATA and rest:
                yield rest
        if self.socket.exception() is not None:
            raise Unreachable(self._server, "the websocket was closed", about=self._about)

    async def write(self, data: bytes) -> None:
        # `chunks` reports why the connection was closed.
        with suppress(aiohttp.ClientConnectionResetError):
            await self.socket.send_bytes(_DATA + data)
