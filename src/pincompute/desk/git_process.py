"""Runs git with bounds: on time, on output, on the files that it writes, and on the protocols that it speaks."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

GIT_TIMEOUT_S = 60.0
MAX_ERROR_BYTES = 16 << 10
_ULIMIT_BLOCK_BYTES = 512
"""The unit of `ulimit -f` in every POSIX shell."""
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    # Replacements would show another commit than the one that was signed.
    "GIT_NO_REPLACE_OBJECTS": "1",
}


class GitResult(NamedTuple):
    code: int
    output: bytes = b""
    errors: str = ""
    truncated: bool = False
    """There was more output than allowed, and git was killed."""
    timed_out: bool = False


class GitCommand(NamedTuple):
    """Arguments of git, and its bounds."""

    words: tuple[str, ...]
    standard_input: bytes = b""
    max_output_bytes: int = 1 << 20
    max_file_bytes: int = 0
    """Size of each file that it may write; 0: unlimited."""


async def run_git(folder: Path, command: GitCommand, options: Sequence[str], protocol: str) -> GitResult:
    """Runs git in a folder. Raises FileNotFoundError if it is not installed.

    `protocol` is the only one that may be spoken, also after a redirect.
    """
    git = ("git", "-C", str(folder), "-c", "core.hooksPath=/dev/null", *options, *command.words)
    start = asyncio.create_subprocess_exec(
        *_with_file_limit(git, command.max_file_bytes),
        env={**os.environ, **_ENVIRONMENT, "GIT_ALLOW_PROTOCOL": protocol},
        stdin=PIPE if command.standard_input else DEVNULL, stdout=PIPE, stderr=PIPE,
        # A session of its own: git starts helpers, which must end with it.
        start_new_session=True,
    )  # fmt: skip
    process = await _started(asyncio.ensure_future(start))
    try:
        async with asyncio.timeout(GIT_TIMEOUT_S):
            _, (output, truncated), errors = await asyncio.gather(
                _send(process, command.standard_input),
                _read_output(process, command.max_output_bytes),
                _read_errors(process),
            )
            code = await process.wait()
    except TimeoutError:
        return GitResult(124, errors=f"no result within {GIT_TIMEOUT_S:g} s", timed_out=True)
    finally:
        await _kill(process)
    return GitResult(code, output, errors.decode("utf-8", "replace").strip(), truncated)


async def _started(start: asyncio.Future[asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """The started process. Cancelled meanwhile, asyncio would kill git alone, and not the helpers it already has."""
    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        await _kill(await start)
        raise


def _with_file_limit(git: Sequence[str], max_file_bytes: int) -> Sequence[str]:
    if not max_file_bytes:
        return git
    # By a shell: a limit that is set from here on a running process would miss its first helpers. If it cannot be set,
    # a lower one is in effect already.
    return ("sh", "-c", 'ulimit -f "$0" 2>/dev/null; exec "$@"', str(max_file_bytes // _ULIMIT_BLOCK_BYTES), *git)


async def _send(process: asyncio.subprocess.Process, content: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(content)
        await process.stdin.drain()
    process.stdin.close()


async def _read_output(process: asyncio.subprocess.Process, limit: int) -> tuple[bytes, bool]:
    assert process.stdout
    output = bytearray()
    while chunk := await process.stdout.read(1 << 16):
        output += chunk
        if len(output) > limit:
            _kill_group(process)
            return b"", True
    return bytes(output), False


async def _read_errors(process: asyncio.subprocess.Process) -> bytes:
    """The beginning of what git reports. The rest is read, too, or git would wait for it."""
    assert process.stderr
    errors = bytearray()
    while chunk := await process.stderr.read(1 << 14):
        errors += chunk[: MAX_ERROR_BYTES - len(errors)]
    return bytes(errors)


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        _kill_group(process)
        await process.wait()


def _kill_group(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
