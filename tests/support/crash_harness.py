"""Runs a desk in a process of its own and kills it with SIGKILL at one named step of a submission."""

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
from pincompute.desk import process as desk_process

DESK_TOKEN = "correct horse"


class CrashStep(NamedTuple):
    """A moment to kill at: before a function is called, or after it has returned."""

    module: str
    function: str
    after: bool


CRASH_STEPS = {
    "received": CrashStep("desk.store.record", "insert_submission", after=False),
    "decided, and not yet on disk": CrashStep("desk.store.outbox", "insert_entry", after=True),
    "on record": CrashStep("desk.dispatcher", "Dispatcher.dispatch", after=False),
    "taken by the dispatcher": CrashStep("platforms.kubernetes.platform", "KubernetesPlatform.deliver", after=False),
    "applied": CrashStep("platforms.kubernetes.platform", "KubernetesPlatform.deliver", after=True),
    "delivered, and not yet on disk": CrashStep("desk.store.outbox", "record_delivery", after=True),
    "noted as delivered": CrashStep("desk.pipeline", "Pipeline._wait_delivered", after=True),
}


class DeskProcess(NamedTuple):
    http: aiohttp.ClientSession
    process: multiprocessing.process.BaseProcess
    armed: Event
    """Once set, the process kills itself at its step."""

    async def wait_killed(self) -> None:
        await asyncio.to_thread(self.process.join, 60)
        assert self.process.exitcode == -signal.SIGKILL

    async def kill(self) -> None:
        self.process.kill()
        await self.wait_killed()


@asynccontextmanager
async def start_desk(
    plane: ControlPlane, folder: Path, database: str, step: CrashStep | None = None, *, road: int = 0, user: str = ""
) -> AsyncGenerator[DeskProcess]:
    """Starts `pin desk` on a database; with a step, it is killed there once it is armed.

    `road` is another port of the same API server, such as that of a forwarder. The default user is an administrator of
    the cluster.
    """
    port, context = free_port(), multiprocessing.get_context("forkserver")
    # The fork server does not know the path of this module yet, so only the desk is preloaded.
    context.set_forkserver_preload([desk_process.__name__])
    (folder / "token").write_text(DESK_TOKEN)
    if user:
        plane.kubeconfig(folder, user, groups=(), port=road)
    else:
        plane.kubeconfig(folder, port=road)
    options = ("--token-file", "token", "--database", database, "--folder", ".")
    arguments_ = ("--kubeconfig", "kubeconfig", *options, "--listen")
    armed = context.Event()
    child = context.Process(target=_run_child, args=(folder, [*arguments_, f"127.0.0.1:{port}"], step, armed))
    child.start()
    address, headers = f"http://127.0.0.1:{port}", {"Authorization": f"Bearer {DESK_TOKEN}"}
    try:
        async with aiohttp.ClientSession(address, headers=headers) as http:
            await _wait_listening(http, child)
            yield DeskProcess(http, child, armed)
    finally:
        child.terminate()
        await asyncio.to_thread(child.join)


async def _wait_listening(http: aiohttp.ClientSession, child: multiprocessing.process.BaseProcess) -> None:
    async with asyncio.timeout(60):
        while True:
            assert child.is_alive()
            try:
                async with http.get("/healthz"):
                    return
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.02)


def _run_child(folder: Path, arguments_: list[str], step: CrashStep | None, armed: Event) -> None:
    os.chdir(folder)
    if step:
        _patch_function(step, armed)
    desk_process.desk.main(arguments_, standalone_mode=False)


def _patch_function(step: CrashStep, armed: Event) -> None:
    *outer, name = step.function.split(".")
    owner: Any = importlib.import_module(f"pincompute.{step.module}")
    for each in outer:
        owner = getattr(owner, each)
    setattr(owner, name, _killing_wrapper(getattr(owner, name), step, armed))


def _killing_wrapper(function: Callable[..., Any], step: CrashStep, armed: Event) -> Callable[..., Any]:
    def kill_if_armed(*, after: bool) -> None:
        if armed.is_set() and step.after is after:
            os.kill(os.getpid(), signal.SIGKILL)

    async def async_wrapper(*arguments: Any, **arguments_: Any) -> Any:
        kill_if_armed(after=False)
        found = await function(*arguments, **arguments_)
        kill_if_armed(after=True)
        return found

    def sync_wrapper(*arguments: Any, **arguments_: Any) -> Any:
        kill_if_armed(after=False)
        found = function(*arguments, **arguments_)
        kill_if_armed(after=True)
        return found

    return async_wrapper if inspect.iscoroutinefunction(inspect.unwrap(function)) else sync_wrapper
