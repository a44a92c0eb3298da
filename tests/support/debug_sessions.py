"""Sessions with replicas on a real node, as a user at a terminal has them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from busybox import IMAGE, SECURITY
from cli_user import CliUser
from pincompute.engine.platform import Platform
from pincompute.engine.record import read_record

NODE_TIMEOUT_S = 240.0
TEMPLATE = f"""{{spec: {{securityContext: {SECURITY}, volumes: [{{name: data, emptyDir: {{}}}}], \
containers: [{{name: NAME, volumeMounts: [{{name: data, mountPath: /data}}]}}]}}}}"""
SERVICE = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: NAME}}
spec:
  image: {IMAGE}
  command: [sh, -c, 'trap exit TERM; httpd -f -p $PORT & wait']
  port: 8080
  template: {TEMPLATE}
"""


@pytest.fixture
def debugger(real_platform: Platform, tmp_path: Path) -> CliUser:
    return CliUser(real_platform, tmp_path)


@asynccontextmanager
async def deployed(debugger: CliUser, name: str, document: str = SERVICE, code: int = 0) -> AsyncIterator[None]:
    (debugger.folder / f"{name}.yaml").write_text(document.replace("NAME", name))
    await debugger.pin("deploy", f"{name}.yaml", "--timeout", str(NODE_TIMEOUT_S), code=code)
    yield
    await debugger.pin("delete", name, "--yes")


def running_part(platform: Platform, name: str) -> int:
    record = read_record(platform.home)
    assert record is not None
    return record.processes[name].pid


@asynccontextmanager
async def interactive(debugger: CliUser, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pincompute", *words, cwd=debugger.folder, env=debugger.variables,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def echo(shell: asyncio.subprocess.Process, line: str) -> str:
    """Writes a line, and returns the one that comes back."""
    assert shell.stdin is not None
    assert shell.stdout is not None
    shell.stdin.write(f"{line}\n".encode())
    await shell.stdin.drain()
    async with asyncio.timeout(NODE_TIMEOUT_S):
        return (await shell.stdout.readline()).decode().rstrip("\n")
