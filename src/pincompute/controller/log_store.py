"""The store of lines, as those see it who read: what is left of containers whose pods are gone."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import msgspec

from pincompute.api.logs import HEARTBEAT, Entry, Fresh, Life
from pincompute.api.names import LOG_STORE, LOG_STORE_PORT, SYSTEM
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import LOGS_AWAY
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden, NotFound
from pincompute.kube.resource import PODS
from pincompute.kube.splitter import Splitter
from pincompute.kube.tunnel import tunnel

T = TypeVar("T")
PATIENCE = 10.0


class LogStore:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def lives(self, project: str, workload: str) -> list[Life]:
        return await self._ask("/v1/lives", list[Life], project=project, workload=workload)

    async def lines(self, project: str, workload: str, life: Life, *, tail: int, since: int) -> list[Entry]:
        """The last lines of one life, oldest first."""
        named = {"pod": life.pod, "uid": life.uid, "container": life.container, "restart": life.restart}
        found = {"project": project, "workload": workload, "tail": tail, "since": since}
        return await self._ask("/v1/lines", list[Entry], **named, **found)

    async def fresh(self, project: str, workload: str) -> AsyncGenerator[Fresh | None]:
        """What is written into files of log volumes from now on; first nothing, as soon as it listens."""
        query = {"project": project, "workload": workload}
        patience = aiohttp.ClientTimeout(total=None, sock_connect=PATIENCE, sock_read=3 * HEARTBEAT)
        try:
            async with self._session.get("/v1/fresh", params=query, timeout=patience) as answer:
                if answer.status != 200:
                    raise _away(f"it answered {answer.status}")
                yield None
                splitter = Splitter()
                async for chunk in answer.content.iter_any():
                    for line in filter(None, splitter.feed(chunk)):
                        yield msgspec.json.decode(line, type=Fresh)
        except (aiohttp.ClientError, OSError, msgspec.DecodeError) as error:
            raise _away(str(error) or type(error).__name__) from error

    async def _ask(self, path: str, type_: type[T], **query: Any) -> T:
        try:
            async with self._session.get(path, params=query) as answer:
                body = await answer.read()
                if answer.status == 200:
                    return msgspec.json.decode(body, type=type_)
                why = f"it answered {answer.status}"
        except (aiohttp.ClientError, OSError, msgspec.DecodeError) as error:
            why = str(error) or type(error).__name__
        raise _away(why)


def _away(why: str) -> Refused:
    return Refused(Problem(LOGS_AWAY, f"the store of logs cannot be read: {why}", next="pin status"))


@asynccontextmanager
async def log_store(address: str, tls: ssl.SSLContext) -> AsyncIterator[LogStore]:
    async with _asking(address, aiohttp.TCPConnector(ssl=tls)) as store:
        yield store


@asynccontextmanager
async def log_store_within(client: Client) -> AsyncIterator[LogStore | None]:
    """That of the cluster itself, where it has one: whom the API server lets look into its pod may read."""
    pod = f"{LOG_STORE}-0"
    try:
        await client.get(PODS, pod, SYSTEM)
    except (NotFound, Forbidden):
        yield None
        return
    async with (
        tunnel(client, SYSTEM, pod, LOG_STORE_PORT) as path,
        _asking("http://log-store", aiohttp.UnixConnector(str(path))) as store,
    ):
        yield store


@asynccontextmanager
async def _asking(address: str, connector: aiohttp.BaseConnector) -> AsyncIterator[LogStore]:
    patience = aiohttp.ClientTimeout(total=PATIENCE)
    async with aiohttp.ClientSession(address, connector=connector, timeout=patience) as session:
        yield LogStore(session)
