"""Runs one nginx: starts it, tells it what to serve, ends it."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LONGEST_LOG = 5_000_000
"""Bytes; twice that is kept of each log."""
GRACE = 5.0
"""Seconds between asking it to end and ending it."""


class Heir:
    """A child that this process started before it became what it is; as asyncio knows its own, as far as it is used."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._handle = os.pidfd_open(pid)
        self._ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._handle, self._reap)

    async def wait(self) -> int:
        await self._ended.wait()
        return self.returncode or 0

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._ended.set()


class Nginx:
    """All that it reads and writes lies in one folder. One task calls the methods, one at a time."""

    def __init__(self, program: Path, folder: Path, on_end: Callable[[], None]) -> None:
        self._program = program
        self._folder = folder
        self._on_end = on_end
        self._process: Process | Heir | None = None
        for each in (folder, folder / "temporary"):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def take(self, config: str) -> str:
        """Make it the file that is served from, if nginx accepts it; otherwise say what nginx said."""
        fresh = self._folder / "nginx.conf.new"
        fresh.write_text(config)
        test = await asyncio.create_subprocess_exec(
            *self._command(fresh), "-t", "-q", stdin=DEVNULL, stdout=PIPE, stderr=STDOUT
        )
        said, _ = await test.communicate()
        if test.returncode:
            return said.decode("utf-8", "replace").strip()
        fresh.replace(self._config)
        if self.running:
            self._signal(signal.SIGHUP)
        return ""

    async def start(self) -> str:
        """Return when it serves; say why, when it does not."""
        self._sweep()
        self._pid_file.unlink(missing_ok=True)
        self._process = await asyncio.create_subprocess_exec(
            *_ends_with_us(), *self._command(self._config), stdin=DEVNULL, process_group=0
        )
        ended = asyncio.create_task(self._process.wait())
        # The file appears when nginx listens and can be told things by signals: a hang-up before would end it.
        while not self._pid_file.exists():
            await asyncio.wait([ended], timeout=0.01)
            if ended.done():
                return f"it ended with {ended.result()}: {self._last_error()}"
        ended.add_done_callback(lambda _: self._on_end())
        return ""

    async def adopt(self) -> str:
        """Go on with the one that was started by what this process was before, and with what it serves from."""
        pid = self._inherited()
        if not pid:
            return ""
        self._process = Heir(pid)
        if not _runs(pid, self._program):
            await self.stop()
            return ""
        asyncio.create_task(self._process.wait()).add_done_callback(lambda _: self._on_end())
        return self._config.read_text()

    async def stop(self) -> None:
        if self._process is None or not self.running:
            return
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(GRACE):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._sweep()

    def shorten_logs(self) -> None:
        """Begin long logs anew, and keep the one before."""
        long = [file for file in self._folder.glob("*.log") if file.stat().st_size > LONGEST_LOG]
        for file in long:
            file.replace(file.with_suffix(".log.1"))
        if long and self.running:
            # Opened by a reload: the workers themselves may not look into the folder.
            self._signal(signal.SIGHUP)

    def _inherited(self) -> int:
        try:
            pid = int(self._pid_file.read_text())
            return pid if os.waitpid(pid, os.WNOHANG) == (0, 0) else 0
        except (OSError, ValueError):
            # There is none, or it is no child of ours.
            return 0

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

    def _sweep(self) -> None:
        """Workers whose master was killed go on serving, and hold the port; they are of its group."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _last_error(self) -> str:
        """The last thing that failed, without time and process."""
        lines = (self._folder / "error.log").read_text(errors="replace").splitlines()
        failed = [line.partition(": ")[2] for line in lines if " failed " in line]
        return failed[-1] if failed else "it did not say why"


def _runs(pid: int, program: Path) -> bool:
    """Another one, where the program was replaced since."""
    return Path(f"/proc/{pid}/exe").resolve() == program.resolve()


def worker_user() -> str:
    """Whom nginx serves as: nobody, when it is root that starts it."""
    if os.geteuid() != 0:
        return ""
    nobody = pwd.getpwnam("nobody")
    return f"{nobody.pw_name} {grp.getgrgid(nobody.pw_gid).gr_name}"


def _ends_with_us() -> tuple[str, ...]:
    """However this process ends, the kernel ends nginx with it; nothing else could after SIGKILL."""
    return ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
