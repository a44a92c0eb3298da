"""Secrets appear in no log, error, decision and line of the audit log."""

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
from desk_fixtures import project_with_pod_quota
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.desk.store.database import Connection, open_database
from pincompute.desk.store.tables import audit, decisions, outbox
from tcp_forwarder import TcpForwarder
from workloads import HELLO, cluster_client

pytestmark = pytest.mark.cluster

TOKEN, STRANGER, DATABASE, STORE, INSIDE = (
    f"hush-{each}" for each in ("token", "unknown", "database", "store", "inside")
)
"""Tokens, invalid tokens, the database password, the artifact store token, and environment values."""
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
    """A desk with everything that it has responded and logged."""

    http: aiohttp.ClientSession
    said: list[str]

    async def send_request(self, method: str, path: str, body: str = "", token: str = TOKEN) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        async with self.http.request(method, path, data=body.encode(), headers=headers) as answer:
            text = await answer.text()
            # A plan shows its sender the whole document.
            self.said.append("" if path.endswith("/plans") and answer.ok else text)
            return answer.status


@asynccontextmanager
async def _desk(plane: ControlPlane, folder: Path, where: str, forwarder: int) -> AsyncGenerator[Told]:
    """A desk process with its log in a file."""
    address = f"127.0.0.1:{free_port()}"
    (folder / "token").write_text(TOKEN)
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pincompute", "desk", "--kubeconfig", str(plane.kubeconfig(folder, port=forwarder)),
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


async def test_secrets_appear_in_no_output(plane: ControlPlane, where: str, tmp_path: Path) -> None:
    url = where.replace("desk@", f"desk:{DATABASE}@")
    async with cluster_client(plane) as client, TcpForwarder(plane.port) as forwarder:
        project = await project_with_pod_quota(client, 10)
        async with _desk(plane, tmp_path, url, forwarder.port) as desk:
            here = f"/v1/projects/{project}"
            assert await desk.send_request("POST", f"{here}/submissions", GIVEN) == 201
            for name, document in WRONG.items():
                assert 400 <= await desk.send_request("POST", f"{here}/submissions", document) < 500, name
                await desk.send_request("POST", f"{here}/plans", document)
            assert await desk.send_request("POST", f"{here}/workloads/hello/changes", '{"change": "no"}') == 422
            assert await desk.send_request("GET", "/v1/whoami", token=STRANGER) == 401
            assert await desk.send_request("POST", f"{here}/builds/hello/1/submissions") == 503
            await forwarder.cut()
            assert await desk.send_request("POST", f"{here}/submissions", GIVEN.replace("8080", "8081")) == 202
            forwarder.restore()
            database = await open_database(where)
            kept = await database.transact(_all)
            await database.transact(
                lambda connection: connection.execute(sql.text("ALTER TABLE decisions RENAME TO lost"))
            )
            await database.close()
            assert await desk.send_request("POST", f"{here}/submissions", GIVEN) == 500
        seen = await client.get(CUSTOM_RESOURCES["PinterestService"], "hello", project)
        await client.delete(CUSTOM_RESOURCES["Project"], project)
    log = (tmp_path / "log").read_text()
    assert "request failed" in log
    told = {"log": log, "answers": "\n".join(desk.said), "record": kept, "status": str(seen.get("status"))}
    assert {name: re.findall(r".{60}hush-\w+", text, re.DOTALL) for name, text in told.items() if "hush-" in text} == {}


def _all(connection: Connection) -> str:
    """What users can see of the record. The documents themselves are stored in full, for the desk only."""
    rows = [row for each in (audit, decisions) for row in connection.execute(each.select())]
    return str([*rows, *connection.execute(sql.select(outbox.c.last_error))])
