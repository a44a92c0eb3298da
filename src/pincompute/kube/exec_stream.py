"""Exec: runs a program in a container, with its standard streams over one websocket."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

import aiohttp
import msgspec

from pincompute.kube.errors import Unreachable, parse_error
from pincompute.kube.request import Request, Target
from pincompute.kube.resource import PODS

EXEC_PROTOCOL = "v5.channel.k8s.io"
"""First version of the protocol that can close stdin."""

# The first byte of each message is its channel.
_INPUT, _OUTPUT, _ERRORS, _STATUS, _RESIZE, _CLOSE = b"\0", b"\1", b"\2", b"\3", b"\4", b"\xff"


class OutputChunk(NamedTuple):
    """Part of a program's output."""

    stream: Literal["stdout", "stderr"]
    data: bytes


class _Details(msgspec.Struct):
    causes: list[dict[str, Any]] = []


class _ExecStatus(msgspec.Struct):
    status: str = ""
    reason: str = ""
    details: _Details | None = None


def exec_request(  # noqa: PLR0913  (the options of `kubectl exec`)
    namespace: str, pod: str, command: Sequence[str], *, container: str, stdin: bool, tty: bool
) -> Request:
    """Request that runs `command` without a shell. With a terminal, stderr is part of stdout."""
    target = Target(PODS, pod, namespace, "exec")
    options = {"container": container, "stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
    query = [(name, str(value).lower() if value is True else value) for name, value in options.items() if value]
    query += [("command", word) for word in command]
    # The parameter `command` occurs once per word. A mapping holds one value per name, so they go into the path.
    return Request(
        "GET", f"{target.path}?{urlencode(query)}", about=target.about, verb="get", resource=target.rbac_resource
    )


class ExecStream:
    """A running program. `exit_code` is set once `output` has been read to its end."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, about: str, server: str) -> None:
        self.exit_code: int | None = None
        self.socket = socket
        self._about = about
        self._server = server

    async def output(self) -> AsyncGenerator[OutputChunk]:
        """Yields the program's output as it arrives, until the program has ended."""
        async for message in self.socket:
            data: bytes = message.data if message.type == aiohttp.WSMsgType.BINARY else b""
            channel, rest = data[:1], data[1:]
            if channel == _STATUS:
                self.exit_code = self._parse_exit_code(rest)
                return
            if rest and channel in (_OUTPUT, _ERRORS):
                yield OutputChunk("stdout" if channel == _OUTPUT else "stderr", rest)
        raise Unreachable(self._server, "the websocket was closed before the program had ended", about=self._about)

    async def write_stdin(self, data: bytes) -> None:
        await self.socket.send_bytes(_INPUT + data)

    async def close_stdin(self) -> None:
        await self.socket.send_bytes(_CLOSE + _INPUT)

    async def resize(self, columns: int, rows: int) -> None:
        await self.socket.send_bytes(_RESIZE + msgspec.json.encode({"Width": columns, "Height": rows}))

    def _parse_exit_code(self, status: bytes) -> int:
        ended = msgspec.json.decode(status, type=_ExecStatus)
        if ended.status == "Success":
            return 0
        if ended.reason == "NonZeroExitCode" and ended.details:
            for cause in ended.details.causes:
                if cause.get("reason") == "ExitCode":
                    return int(cause["message"])
        raise parse_error(msgspec.json.encode({**msgspec.json.decode(status), "kind": "Status"}), about=self._about)
