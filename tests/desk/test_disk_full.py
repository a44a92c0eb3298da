"""The disk of the desk's database is full: nothing is half-stored, the caller learns why, and it heals by itself."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
import sqlalchemy as sql

from control_plane import ControlPlane
from crash_harness import start_desk
from pincompute.desk.store.database import DatabaseFull, open_database, write_nothing
from polling import equals, until
from postgres_server import new_database
from record_fixtures import submissions_of
from workloads import HELLO, cluster_client, new_project

pytestmark = pytest.mark.cluster


@pytest.fixture
def disk() -> Iterator[Path]:
    """A file system of 4 MiB, open to the user of PostgreSQL. Mounting it needs root, as real nodes do."""
    folder = Path(tempfile.mkdtemp(prefix="disk-"))
    folder.chmod(0o755)
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=4m,mode=1777", "tmpfs", str(folder)), check=True)
    yield folder
    subprocess.run(("umount", "--lazy", str(folder)), check=True)
    folder.rmdir()


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    with pytest.raises(OSError, match="No space"):
        (disk / "more").write_bytes(b"x")
    return filler


async def submit(http: aiohttp.ClientSession, project: str, name: str) -> tuple[int, Any]:
    """A document of 200 KiB: more than what is left in a page."""
    text = HELLO.replace("{name: hello}", f"{{name: {name}}}") + f"# {'x' * 200_000}\n"
    async with http.post(f"/v1/projects/{project}/submissions", data=text.encode()) as response:
        return response.status, await response.json()


async def ready_status(http: aiohttp.ClientSession) -> int:
    async with http.get("/readyz") as response:
        return response.status


async def test_desk_refuses_writes_while_the_disk_is_full_and_heals(
    plane: ControlPlane, tmp_path: Path, disk: Path
) -> None:
    database = str(disk / "desk.db")
    async with cluster_client(plane) as client, start_desk(plane, tmp_path, database) as desk:
        project = await new_project(client)
        assert (await submit(desk.http, project, "before"))[0] == 201
        assert await ready_status(desk.http) == 200
        filler = fill(disk)
        for name in ("one", "two"):
            status, problem = await submit(desk.http, project, name)
            assert (status, problem["errors"][0]["reason"]) == (507, "DatabaseFull"), problem
        async with desk.http.get(f"/v1/projects/{project}/workloads") as response:
            assert response.status == 200, "reads go on"
        async with desk.http.get("/healthz") as response:
            assert response.status == 200, "a restart would not help"
        await until(lambda: equals(ready_status(desk.http), 507))
        filler.unlink()
        assert (await submit(desk.http, project, "after"))[0] == 201
        await until(lambda: equals(ready_status(desk.http), 200))
    record = await open_database(database)
    for name, times in {"before": 1, "one": 0, "two": 0, "after": 1}.items():
        assert len(await record.transact(partial(submissions_of, project=project, name=name))) == times, name
    await record.close()


async def test_full_disk_of_postgresql_is_recognized(server: Path, disk: Path) -> None:
    address = await asyncio.to_thread(new_database, server)
    folder = disk / "tables"
    folder.mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    connection = await asyncpg.connect(address)
    await connection.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
    await connection.execute("CREATE TABLE documents (text TEXT) TABLESPACE small")
    await connection.close()
    database = await open_database(address)
    insert = sql.text("INSERT INTO documents SELECT repeat(md5(i::text), 50) FROM generate_series(1, 10000) i")
    with pytest.raises(DatabaseFull):
        await database.transact(lambda connection: connection.execute(insert))
    await database.transact(write_nothing)
    await database.close()
    connection = await asyncpg.connect(address)
    await connection.execute("DROP TABLE documents")
    await connection.execute("DROP TABLESPACE small")
    await connection.close()
