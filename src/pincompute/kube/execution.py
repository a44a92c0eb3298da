"""An execution: a program run in a container, with its streams, over one websocket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

import aiohttp
import msgspec

from pincompute.kube.errors import Unreachable, error_of
from pincompute.kube.request import Request, Target
from pincompute.kube.resource import PODS

PROTOCOL = "v5.channel.k8s.io"
"""The first that can say that the input has ended."""

# Each message begins with a byte that says what it belongs to.
_INPUT, _OUTPUT, _ERRORS, _STATUS, _RESIZE, _CLOSE = b"\0", b"\1", b"\2", b"\3", b"\4", b"\xff"


class Chunk(NamedTuple):
    """A piece of what a program printed."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class _Details(msgspec.Struct):
    causes: list[dict[str, Any]] = []


class _Ended(msgspec.Struct):
    status: str = ""
    reason: str = ""
    details: _Details | None = None


def execute(  # noqa: PLR0913  (as a person types it)
    namespace: str, pod: str, command: Sequence[str], *, container: str, stdin: bool, tty: bool
) -> Request:
    """`command` is run as it is, by no shell. With a terminal, errors come by the output as well."""
    target = Target(PODS, pod, namespace, "exec")
    wanted = {"container": container, "stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    query = [(name, str(value).lower() if value is True else value) for name, value in wanted.items() if value]
    query += [("command", word) for word in command]
    # A command's words are parameters of one name, which only the path can carry.
    return Request("GET", f"{target.path}?{urlencode(query)}", about=target.about, verb="get", resource=target.right)


class Execution:
    """Read `output` to its end; then `code` is known."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, about: str, server: str) -> None:
        self.code: int | None = None
        self.socket = socket
        self._about = about
        self._server = server

    async def output(self) -> AsyncGenerator[Chunk]:
        """What it prints, as it comes, until it has ended."""
        async for message in self.socket:
            data: bytes = message.data if message.type == aiohttp.WSMsgType.BINARY else b""
            channel, rest = data[:1], data[1:]
            if channel == _STATUS:
                self.code = self._code(rest)
                return
            if rest and channel in (_OUTPUT, _ERRORS):
                yield Chunk("stdout" if channel == _OUTPUT else "stderr", rest)
        raise Unreachable(self._server, "it broke off before the program had ended", about=self._about)

    async def write(self, data: bytes) -> None:
        await self.socket.send_bytes(_INPUT + data)

    async def end_input(self) -> None:
        await self.socket.send_bytes(_CLOSE + _INPUT)

    async def resize(self, columns: int, rows: int) -> None:
        await self.socket.send_bytes(_RESIZE + msgspec.json.encode({"Width": columns, "Height": rows}))

    def _code(self, status: bytes) -> int:
        ended = msgspec.json.decode(status, type=_Ended)
        if ended.status == "Success":
            return 0
        if ended.reason == "NonZeroExitCode" and ended.details:
            for cause in ended.details.causes:
                if cause.get("reason") == "ExitCode":
                    return int(cause["message"])
        raise error_of(msgspec.json.encode({**msgspec.json.decode(status), "kind": "Status"}), about=self._about)
