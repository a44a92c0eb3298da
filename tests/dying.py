"""A desk as a process of its own, which the signal that nobody can catch ends at one named step of a submission."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import multiprocessing
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from backends import free_port
from control_plane import ControlPlane
from pincompute.submission import process as desk_process

TOKEN = "correct horse"


class Step(NamedTuple):
    """Just before a function is called, or just after it came to its end."""

    module: str
    function: str
    after: bool


STEPS = {
    "received": Step("submission.record", "keep", after=False),
    "decided, and not yet on disk": Step("submission.outbox", "put", after=True),
    "on record": Step("submission.carrier", "Carrier.take", after=False),
    "taken by the carrier": Step("submission.kubernetes", "Kubernetes.deliver", after=False),
    "applied": Step("submission.kubernetes", "Kubernetes.deliver", after=True),
    "delivered, and not yet on disk": Step("submission.outbox", "delivered", after=True),
    "noted as delivered": Step("submission.decide", "Decider._arrived", after=True),
}


class Living(NamedTuple):
    http: aiohttp.ClientSession
    process: multiprocessing.process.BaseProcess
    armed: Event
    """From then on it dies when it comes to its step."""

    async def death(self) -> None:
        await asyncio.to_thread(self.process.join, 60)
        assert self.process.exitcode == -signal.SIGKILL

    async def kill(self) -> None:
        self.process.kill()
        await self.death()


@asynccontextmanager
async def process(
    plane: ControlPlane, folder: Path, where: str, step: Step | None = None, road: int = 0
) -> AsyncGenerator[Living]:
    """`pin desk`, with its record somewhere; with a step, it dies there once it is armed.

    A road is another port of the same cluster."""
    port, context = free_port(), multiprocessing.get_context("forkserver")
    # Its own path is not yet known there.
    context.set_forkserver_preload([desk_process.__name__])
    (folder / "token").write_text(TOKEN)
    plane.kubeconfig(folder, port=road)
    options = ("--token-file", "token", "--database", where, "--folder", ".")
    words = ("--kubeconfig", "kubeconfig", *options, "--listen")
    armed = context.Event()
    child = context.Process(target=_live, args=(folder, [*words, f"127.0.0.1:{port}"], step, armed))
    child.start()
    address, signed = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {TOKEN}"}
    try:
        async with aiohttp.ClientSession(address, headers=signed) as http:
            await _answers(http, child)
            yield Living(http, child, armed)
    finally:
        child.terminate()
        await asyncio.to_thread(child.join)


async def _answers(http: aiohttp.ClientSession, child: multiprocessing.process.BaseProcess) -> None:
    async with asyncio.timeout(60):
        while True:
            assert child.is_alive()
            try:
                async with http.get("/healthz"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.02)


def _live(folder: Path, words: list[str], step: Step | None, armed: Event) -> None:
    os.chdir(folder)
    if step:
        _replace(step, armed)
    desk_process.desk.main(words, standalone_mode=False)


def _replace(step: Step, armed: Event) -> None:
    *outer, name = step.function.split(".")
    owner: Any = importlib.import_module(f"pincompute.{step.module}")
    for each in outer:
        owner = getattr(owner, each)
    setattr(owner, name, _deadly(getattr(owner, name), step, armed))


def _deadly(function: Callable[..., Any], step: Step, armed: Event) -> Callable[..., Any]:
    def die(*, after: bool) -> None:
        if armed.is_set() and step.after is after:
            os.kill(os.getpid(), signal.SIGKILL)

    async def asks(*arguments: Any, **words: Any) -> Any:
        die(after=False)
        found = await function(*arguments, **words)
        die(after=True)
        return found

    def calls(*arguments: Any, **words: Any) -> Any:
        die(after=False)
        found = function(*arguments, **words)
        die(after=True)
        return found

    return asks if inspect.iscoroutinefunction(inspect.unwrap(function)) else calls
