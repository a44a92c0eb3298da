"""Starts, reconfigures and stops one nginx, which outlives the process that configures it."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

MAX_LOG_BYTES = 5_000_000
"""A longer log is rotated; one rotated file is kept of each."""
STOP_TIMEOUT_S = 5.0
"""Time between SIGTERM and SIGKILL."""


class AdoptedProcess:
    """Process of an earlier agent, or of this one before a reexec; has the methods of asyncio's Process that we use.

    Only a child has an exit code; that of any other process is reported as 0.
    """

    def __init__(self, pid: int, handle: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._handle = handle
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._handle, self._reap)

    async def wait(self) -> int:
        await self._ended.wait()
        return self.returncode or 0

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            # By the handle, because the pid could belong to another process by now.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        try:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:
            self.returncode = 0
        self._ended.set()


class Nginx:
    """One nginx, with all its files in one folder. Its methods are called by one task, one at a time."""

    def __init__(self, program: Path, folder: Path, on_end: Callable[[], None]) -> None:
        self._program = program
        self._folder = folder
        self._on_end = on_end
        self._process: Process | AdoptedProcess | None = None
        for needed in (folder, folder / "temporary"):
            needed.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def reconfigure(self, config: str) -> str:
        """Applies a configuration that nginx accepts. Returns nginx's error message for any other."""
        fresh = self._folder / "nginx.conf.new"
        fresh.write_text(config)
        test = await asyncio.create_subprocess_exec(
            *self._command(fresh), "-t", "-q", stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
        )
        output, _ = await test.communicate()
        if test.returncode:
            return output.decode("utf-8", "replace").strip()
        fresh.replace(self._config)
        if self.running:
            self._signal(signal.SIGHUP)
        return ""

    async def start(self) -> str:
        """Returns an empty string once nginx serves, or the reason why it does not."""
        self._kill_group()
        self._pid_file.unlink(missing_ok=True)
        self._process = await asyncio.create_subprocess_exec(
            *self._command(self._config), stdin=DEVNULL, process_group=0
        )
        ended = asyncio.create_task(self._process.wait())
        # nginx writes this file once it listens and handles signals. A SIGHUP before that would end it.
        while not self._pid_file.exists():
            await asyncio.wait([ended], timeout=0.01)
            if ended.done():
                return f"nginx exited with code {ended.result()}: {self._last_error()}"
        ended.add_done_callback(lambda _: self._on_end())
        return ""

    async def adopt(self) -> str:
        """Takes over the nginx of this folder, if one runs: of this process before a reexec, or of an earlier agent.

        Returns the configuration that it has, or nothing if that is uncertain, so that it is configured again: an agent
        that was killed may have written a configuration without telling nginx.
        """
        pid = _read_pid(self._pid_file)
        # The handle keeps the pid from being reused between the check and a signal.
        handle = _open_process(pid)
        if handle is None or not self._is_ours(pid):
            if handle is not None:
                os.close(handle)
            _kill_workers_of(pid, self._program)
            return ""
        self._process = AdoptedProcess(pid, handle)
        if not _is_program(pid, self._program):
            await self.stop()
            return ""
        asyncio.create_task(self._process.wait()).add_done_callback(lambda _: self._on_end())
        return self._config.read_text() if _is_child(pid) else ""

    async def stop(self) -> None:
        if self._process is None or not self.running:
            return
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._kill_group()

    def rotate_logs(self) -> None:
        """Rotates logs that are too long."""
        long = [file for file in self._folder.glob("*.log") if file.stat().st_size > MAX_LOG_BYTES]
        for file in long:
            file.replace(file.with_suffix(".log.1"))
        if long and self.running:
            # By a reload, because the worker processes have no access to the folder.
            self._signal(signal.SIGHUP)

    def _is_ours(self, pid: int) -> bool:
        """Whether the process is the nginx of this folder. The pid in the file could belong to another process by now.

        nginx overwrites its environment, so it is recognized by its title, which contains its arguments.
        """
        try:
            title = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            return False
        return f" -p {self._folder} ".encode() in title

    @property
    def _config(self) -> Path:
        return self._folder / "nginx.conf"

    @property
    def _pid_file(self) -> Path:
        return self._folder / "nginx.pid"

    def _command(self, config: Path) -> tuple[str, ...]:
        errors = self._folder / "error.log"
        return (str(self._program), "-p", str(self._folder), "-e", str(errors), "-c", str(config))

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _kill_group(self) -> None:
        """Kills nginx's process group: workers of a killed master would go on serving and keep the port open."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _last_error(self) -> str:
        """Last failure in nginx's error log, without time and process."""
        lines = (self._folder / "error.log").read_text(errors="replace").splitlines()
        failed = [line.partition(": ")[2] for line in lines if " failed " in line]
        return failed[-1] if failed else "no error in its log"


def _read_pid(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def _open_process(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid) if pid else None
    except ProcessLookupError:
        return None


def _kill_workers_of(master: int, program: Path) -> None:
    """Kills workers of a master that was killed: they would go on serving and keep the port open."""
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with suppress(OSError):
            if master and pid != master and os.getpgid(pid) == master and _is_program(pid, program):
                os.kill(pid, signal.SIGKILL)


def _is_child(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def _is_program(pid: int, program: Path) -> bool:
    """Whether the process runs this program; False if the file was replaced since."""
    return Path(f"/proc/{pid}/exe").resolve() == program.resolve()


def worker_user() -> str:
    """User and group of nginx's workers: `nobody` if this process is root, otherwise empty."""
    if os.geteuid() != 0:
        return ""
    nobody = pwd.getpwnam("nobody")
    return f"{nobody.pw_name} {grp.getgrgid(nobody.pw_gid).gr_name}"
