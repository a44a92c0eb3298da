"""A PostgreSQL server for the test session on a private socket, with a new database for each test."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from pincompute.engine import debian

USER = "desk"


@contextmanager
def postgres_server() -> Generator[Path]:
    """Yields the folder of its socket. It runs without fsync."""
    debian.ensure_programs("postgres", "initdb")
    # PostgreSQL refuses to run as root, and other users cannot enter the folders of tests.
    who: Any = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    if who:
        shutil.chown(folder, **who)
    data, log = folder / "data", folder / "log"
    words = ("--username", USER, "--auth", "trust", "--no-sync", "--locale", "C.UTF-8", "--no-instructions")
    made = subprocess.run(
        [_program("initdb"), *words, data], capture_output=True, text=True, check=False, cwd=folder, **who
    )
    assert made.returncode == 0, made.stderr
    settings = ("listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "max_connections=200")
    words = tuple(each for setting in settings for each in ("-c", setting))
    with log.open("wb") as output:
        server = subprocess.Popen(
            [_program("postgres"), "-D", data, *words], stdout=output, stderr=output, cwd=folder, **who
        )
    try:
        asyncio.run(_ready(folder, server))
        yield folder
    finally:
        # SIGINT: a fast shutdown, which does not wait for clients.
        server.send_signal(2)
        server.wait(20)
        shutil.rmtree(folder)


def new_database(server: Path) -> str:
    """The address of a new database, as for `pin desk --database`."""
    name = f"t_{secrets.token_hex(4)}"

    async def create() -> None:
        connection = await asyncpg.connect(host=str(server), user=USER, database="postgres")
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()

    asyncio.run(create())
    return f"postgresql://{USER}@/{name}?host={server}"


async def _ready(folder: Path, server: subprocess.Popen[Any]) -> None:
    async with asyncio.timeout(60):
        while True:
            assert server.poll() is None, (folder / "log").read_text()
            try:
                connection = await asyncpg.connect(host=str(folder), user=USER, database="postgres")
            except (OSError, asyncpg.CannotConnectNowError):
                await asyncio.sleep(0.05)
            else:
                await connection.close()
                return


def _program(name: str) -> Path:
    found = debian.find_program(name)
    assert found
    return found
