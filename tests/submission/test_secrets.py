"""What is nobody's business stands in no log, error, decision and line of the audit, whatever goes wrong."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
import sqlalchemy as sql

from backends import free_port
from control_plane import ControlPlane
from desks import bounded
from forwarder import Forwarder
from pincompute.controller.resources import NOUNS
from pincompute.submission.database import Connection, open_database
from pincompute.submission.tables import audit, decisions, outbox
from workloads import HELLO, cluster

pytestmark = pytest.mark.cluster

TOKEN, STRANGER, DATABASE, STORE, INSIDE = (
    f"hush-{each}" for each in ("token", "stranger", "database", "store", "inside")
)
"""One for whatever may be secret: who is here, who is not, the record, the artifact store, and what work is given."""
GIVEN = HELLO.replace("port: 8080", f"port: 8080, environment: {{PASSWORD: {INSIDE}}}")
WRONG = {
    "a list": GIVEN.replace(INSIDE, f"[{INSIDE}]"),
    "a name": GIVEN.replace("PASSWORD", "A=B"),
    "no YAML": GIVEN.replace(f"{INSIDE}}}", f"{INSIDE}"),
    "no field": GIVEN.replace("environment", "enviroment"),
    "twice": GIVEN.replace(f": {INSIDE}", f": {INSIDE}, PASSWORD: {INSIDE}"),
    "configuration": GIVEN.replace("environment", "configuration").replace("PASSWORD", "../a"),
    "too much": GIVEN.replace("port:", "replicas: 100, port:"),
    "elsewhere": GIVEN.replace("name: hello", "name: hello, project: elsewhere"),
}


class Told(NamedTuple):
    """A desk, and all that it has said to somebody."""

    http: aiohttp.ClientSession
    said: list[str]

    async def ask(self, method: str, path: str, body: str = "", token: str = TOKEN) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        async with self.http.request(method, path, data=body.encode(), headers=headers) as answer:
            text = await answer.text()
            # A plan shows those who send a document what becomes of it, whole.
            self.said.append("" if path.endswith("/plans") and answer.ok else text)
            return answer.status


@asynccontextmanager
async def _desk(plane: ControlPlane, folder: Path, where: str, road: int) -> AsyncGenerator[Told]:
    """As a process, with its log in a file."""
    address = f"127.0.0.1:{free_port()}"
    (folder / "token").write_text(TOKEN)
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pincompute", "desk", "--kubeconfig", str(plane.kubeconfig(folder, port=road)),
            "--listen", address, "--token-file", "token", "--database", where, "--folder", ".",
            "--artifacts", f"http://desk:{STORE}@127.0.0.1:{free_port()}/artifactory/builds",
            cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        async with aiohttp.ClientSession(f"http://{address}") as http:
            async with asyncio.timeout(60):
                while process.returncode is None:
                    try:
                        await (await http.get("/healthz")).read()
                        break
                    except aiohttp.ClientConnectionError:
                        await asyncio.sleep(0.05)
            yield Told(http, [])
    finally:
        process.terminate()
        await process.wait()


async def test_what_is_nobodys_business_is_told_to_nobody(plane: ControlPlane, where: str, tmp_path: Path) -> None:
    url = where.replace("desk@", f"desk:{DATABASE}@")
    async with cluster(plane) as client, Forwarder(plane.port) as road:
        project = await bounded(client, 10)
        async with _desk(plane, tmp_path, url, road.port) as desk:
            here = f"/v1/projects/{project}"
            assert await desk.ask("POST", f"{here}/submissions", GIVEN) == 201
            for name, document in WRONG.items():
                assert 400 <= await desk.ask("POST", f"{here}/submissions", document) < 500, name
                await desk.ask("POST", f"{here}/plans", document)
            assert await desk.ask("POST", f"{here}/workloads/hello/changes", '{"change": "no"}') == 422
            assert await desk.ask("GET", "/v1/whoami", token=STRANGER) == 401
            assert await desk.ask("POST", f"{here}/builds/hello/1/submissions") == 503
            await road.cut()
            assert await desk.ask("POST", f"{here}/submissions", GIVEN.replace("8080", "8081")) == 202
            road.mend()
            database = await open_database(where)
            kept = await database.do(_all)
            await database.do(lambda connection: connection.execute(sql.text("ALTER TABLE decisions RENAME TO lost")))
            await database.close()
            assert await desk.ask("POST", f"{here}/submissions", GIVEN) == 500
        seen = await client.get(NOUNS["PinterestService"], "hello", project)
        await client.delete(NOUNS["Project"], project)
    log = (tmp_path / "log").read_text()
    assert "a request failed" in log
    told = {"log": log, "answers": "\n".join(desk.said), "record": kept, "status": str(seen.get("status"))}
    assert {name: re.findall(r".{60}hush-\w+", text, re.DOTALL) for name, text in told.items() if "hush-" in text} == {}


def _all(connection: Connection) -> str:
    """What people and logs are shown of the record; what was asked stands there word by word, for the desk alone."""
    rows = [row for each in (audit, decisions) for row in connection.execute(each.select())]
    return str([*rows, *connection.execute(sql.select(outbox.c.last_error))])
