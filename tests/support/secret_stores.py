"""A secret store in this process, with its HTTP application and the certificates of pods."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp.test_utils import BaseTestServer, TestServer

from manual_clock import ManualClock
from pincompute.agents.callers import Caller
from pincompute.agents.secrets.key_provider import FileKeyProvider
from pincompute.agents.secrets.projects import Namespace
from pincompute.agents.secrets.server import Waiting, build_app
from pincompute.agents.secrets.store import SecretStore
from pincompute.api import secret as api
from pincompute.api.names import DESK
from pincompute.base.clock import Clock
from pincompute.base.database import open_sql_database
from pincompute.base.key_file import create_key_file

CREATED_AT = "2026-01-01T00:00:00Z"
DESK_CALLER = Caller(DESK)


def project_namespace(name: str, uid: str = "", created_at: str = CREATED_AT) -> Namespace:
    metadata = {"name": name, "uid": uid or f"uid-of-{name}", "creationTimestamp": created_at}
    return msgspec.convert({"metadata": metadata}, Namespace)


@asynccontextmanager
async def open_secret_database(
    folder: Path, *projects: str, clock: Clock | None = None, where: str = ""
) -> AsyncGenerator[SecretStore]:
    """A store on a database in the folder, or at the address `where`, that knows these projects."""
    create_key_file(folder / "keys")
    database = open_sql_database(where or str(folder / "secrets.sqlite"))
    store = SecretStore(database, FileKeyProvider(folder / "keys"), clock or ManualClock())
    await store.open()
    for name in projects:
        await store.observe_namespace(project_namespace(name))
    yield store
    await database.close()


async def add_secret(store: SecretStore, project: str, name: str, value: bytes = b"v1") -> None:
    await store.create(api.CreateSecret(project=project, name=name, value=value, caller="ann"))


async def rotate_secret(store: SecretStore, project: str, name: str, value: bytes, *, promote: bool = True) -> None:
    command = api.AddVersion(project=project, name=name, value=value, promote=promote, caller="ann")
    await store.add_version(command)


class StoreSession:
    """HTTP requests to a store, as one caller."""

    def __init__(self, session: aiohttp.ClientSession, server: BaseTestServer) -> None:
        self._session = session
        self._server = server

    async def send(self, command: Any) -> tuple[int, bytes]:
        body = command if isinstance(command, bytes) else msgspec.json.encode(command)
        async with self._session.post(self._server.make_url("/v1/commands"), data=body) as response:
            return response.status, await response.read()

    async def get(self, path: str, *names: str, **query: str) -> tuple[int, bytes]:
        pairs = [*(("name", each) for each in names), *query.items()]
        async with self._session.get(self._server.make_url(path), params=pairs) as response:
            return response.status, await response.read()


@asynccontextmanager
async def store_session(store: SecretStore, caller: Caller, clock: Clock | None = None) -> AsyncGenerator[StoreSession]:
    app = build_app(store, lambda _: caller, clock or ManualClock(), Waiting())
    async with TestServer(app) as server, aiohttp.ClientSession() as session:
        yield StoreSession(session, server)
