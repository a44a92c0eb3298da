"""Connects a program to a websocket, in the protocol of `kubectl exec`: the first byte of a message is its channel."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from pincompute.agents.debug.program import DRAIN_TIMEOUT_S, Program
from pincompute.base.aio import run_until_first_completes

PROTOCOL = "v5.channel.k8s.io"
CHUNK_BYTES = 1 << 15
_INPUT, _OUTPUT, _ERRORS, _STATUS, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_MAX_SIZE = 10_000
"""Columns and rows of a terminal."""


class _Size(msgspec.Struct):
    width: int = msgspec.field(name="Width")
    height: int = msgspec.field(name="Height")


async def relay_program(socket: web.WebSocketResponse, program: Program) -> None:
    """Relays until the program has ended, or the client has gone. The last message is the exit code."""
    await run_until_first_completes(_send_output(socket, program), _receive_input(socket, program))


async def _send_output(socket: web.WebSocketResponse, program: Program) -> None:
    pumps = [_Pump(_OUTPUT, program.stdout), *([_Pump(_ERRORS, program.stderr)] if program.stderr else [])]
    tasks = [asyncio.create_task(pump.run(socket)) for pump in pumps]
    try:
        code = await program.wait_exit()
        await _drain(pumps, tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await socket.send_bytes(bytes([_STATUS]) + msgspec.json.encode(exit_status(code)))


class _Pump:
    """Sends one output of a program."""

    def __init__(self, channel: int, stream: asyncio.StreamReader) -> None:
        self._prefix = bytes([channel])
        self._stream = stream
        self.reads = 0
        self.is_reading = False

    async def run(self, socket: web.WebSocketResponse) -> None:
        while chunk := await self._read():
            # Returns when there is room: a client that does not read stops the program, and not the agent.
            await socket.send_bytes(self._prefix + chunk)

    async def _read(self) -> bytes:
        self.is_reading = True
        chunk = await self._stream.read(CHUNK_BYTES)
        self.is_reading = False
        self.reads += 1
        return chunk


async def _drain(pumps: list[_Pump], tasks: list[asyncio.Task[None]]) -> None:
    """Waits until all output of an ended program is sent, however slowly the client reads.

    Only an output that has nothing to read is given up: another program, still running, has it open.
    """
    while True:
        before = [pump.reads for pump in pumps]
        _, pending = await asyncio.wait(tasks, timeout=DRAIN_TIMEOUT_S)
        idle = all(pump.is_reading for pump, task in zip(pumps, tasks, strict=True) if task in pending)
        if not pending or (idle and before == [pump.reads for pump in pumps]):
            return


async def _receive_input(socket: web.WebSocketResponse, program: Program) -> None:
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _INPUT:
            await program.write(data)
        elif channel == _CLOSE and data == bytes([_INPUT]):
            await program.close_input()
        elif channel == _RESIZE:
            await _resize(program, data)


async def _resize(program: Program, data: bytes) -> None:
    try:
        size = msgspec.json.decode(data, type=_Size)
    except msgspec.DecodeError:
        return
    if 0 < size.width <= _MAX_SIZE and 0 < size.height <= _MAX_SIZE:
        await program.resize_terminal(size.width, size.height)


def exit_status(code: int) -> dict[str, Any]:
    """The exit code as Kubernetes' status."""
    if code == 0:
        return {"status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
