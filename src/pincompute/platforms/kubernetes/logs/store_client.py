"""Client of the log store, which keeps the lines of containers after their pods are deleted."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import msgspec

from pincompute.api.logs import HEARTBEAT_INTERVAL_S, ContainerRun, LogBatch, LogEntry
from pincompute.api.names import LOG_STORE, LOG_STORE_PORT, SYSTEM_NAMESPACE
from pincompute.base.line_splitter import LineSplitter
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import LOGS_UNAVAILABLE
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden, NotFound
from pincompute.kube.resource import PODS
from pincompute.kube.socket_forward import forward_to_socket

T = TypeVar("T")
REQUEST_TIMEOUT_S = 10.0
MISSED_HEARTBEATS = 3
"""Heartbeats that may be missing before a followed stream counts as broken."""


class LogStoreClient:
    """Lists runs, reads their lines and follows log files. Every failure is raised as LogsUnavailable."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def list_runs(self, project: str, workload: str) -> list[ContainerRun]:
        return await self._get("/v1/lives", list[ContainerRun], project=project, workload=workload)

    async def read_lines(
        self, project: str, workload: str, run: ContainerRun, *, tail: int, since: int
    ) -> list[LogEntry]:
        """The last lines of one run, oldest first."""
        run_query = {"pod": run.pod, "uid": run.uid, "container": run.container, "restart": run.restart}
        query = {"project": project, "workload": workload, "tail": tail, "since": since}
        return await self._get("/v1/lines", list[LogEntry], **run_query, **query)

    async def follow_files(self, project: str, workload: str) -> AsyncGenerator[LogBatch | None]:
        """Batches of lines written to log files from now on. Yields None first, once the store is listening."""
        query = {"project": project, "workload": workload}
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=REQUEST_TIMEOUT_S, sock_read=MISSED_HEARTBEATS * HEARTBEAT_INTERVAL_S
        )
        try:
            async with self._session.get("/v1/fresh", params=query, timeout=timeout) as response:
                if response.status != 200:
                    raise _unavailable(f"HTTP status {response.status}")
                yield None
                splitter = LineSplitter()
                async for chunk in response.content.iter_any():
                    for line in filter(None, splitter.feed(chunk)):
                        batch = msgspec.json.decode(line, type=LogBatch)
                        if batch.problem:
                            raise _unavailable(batch.problem)
                        yield batch
        except (aiohttp.ClientError, OSError, msgspec.DecodeError) as error:
            raise _unavailable(str(error) or type(error).__name__) from error

    async def _get(self, path: str, type_: type[T], **query: Any) -> T:
        try:
            async with self._session.get(path, params=query) as response:
                body = await response.read()
                if response.status == 200:
                    return msgspec.json.decode(body, type=type_)
                why = f"HTTP status {response.status}"
        except (aiohttp.ClientError, OSError, msgspec.DecodeError) as error:
            why = str(error) or type(error).__name__
        raise _unavailable(why)


def _unavailable(why: str) -> Refused:
    return Refused(Problem(LOGS_UNAVAILABLE, f"the log store cannot be read: {why}", next="pin status"))


@asynccontextmanager
async def open_log_store(address: str, tls: ssl.SSLContext) -> AsyncIterator[LogStoreClient]:
    """A client that connects directly, with a client certificate."""
    async with _open_session(address, aiohttp.TCPConnector(ssl=tls)) as store:
        yield store


@asynccontextmanager
async def open_log_store_in_cluster(client: Client) -> AsyncIterator[LogStoreClient | None]:
    """A client through a port forward, with the permissions of the API server. None if there is no log store."""
    pod = f"{LOG_STORE}-0"
    try:
        await client.get(PODS, pod, SYSTEM_NAMESPACE)
    except (NotFound, Forbidden):
        yield None
        return
    async with (
        forward_to_socket(client, SYSTEM_NAMESPACE, pod, LOG_STORE_PORT) as path,
        _open_session("http://log-store", aiohttp.UnixConnector(str(path))) as store,
    ):
        yield store


@asynccontextmanager
async def _open_session(address: str, connector: aiohttp.BaseConnector) -> AsyncIterator[LogStoreClient]:
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as session:
        yield LogStoreClient(session)
