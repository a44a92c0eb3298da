"""Client of insight, which the desk uses with its own certificate, for callers that it has authorized."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import aiohttp
import msgspec

from pincompute.api.history import HistoryPage, HistoryRequest, LastState, LastStateRequest
from pincompute.api.insight import (
    ChangeFrame,
    ChangesRequest,
    Collection,
    ListRequest,
    SummariesRequest,
    WriteMark,
)
from pincompute.base.clock import Clock
from pincompute.base.line_splitter import LineSplitter
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import INSIGHT_UNAVAILABLE

T = TypeVar("T")
REQUEST_TIMEOUT_S = 10.0
STREAM_SILENCE_S = 45.0
"""Three heartbeats."""
DOWN_INTERVAL_S = 1.0
"""After a failed connection no other one is tried for this long: every list would wait for it."""
MAX_CONNECTIONS = 0
"""Unlimited: streams are bounded by the desk, for each caller and in total."""


class InsightAnswer(NamedTuple):
    body: bytes
    age_s: int
    """Seconds since insight has heard of the cluster; 0 while it does."""
    etag: str = ""
    position: str = ""
    """Position in the stream of changes."""
    not_modified: bool = False


class InsightClient:
    """Raises Refused: InsightUnavailable if there is no answer, InsightBehind if a write is missing, or the refusal."""

    def __init__(self, session: aiohttp.ClientSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._down_until = 0.0

    async def summaries(self, project: str, writes: Sequence[WriteMark]) -> InsightAnswer:
        """The workloads of a project as JSON, with all of these writes."""
        return await self._post("summaries", SummariesRequest(project=project, writes=list(writes)))

    async def page(self, collection: Collection, request: ListRequest, etag: str = "") -> InsightAnswer:
        return await self._post(collection, request, {"If-None-Match": etag} if etag else {})

    async def history_of(self, request: HistoryRequest) -> HistoryPage:
        return self._parse_answer(await self._post("history", request), HistoryPage)

    async def last_state_of(self, request: LastStateRequest) -> LastState | None:
        return self._parse_answer(await self._post("last-state", request), LastState | None)

    async def changes(self, request: ChangesRequest) -> AsyncGenerator[ChangeFrame]:
        """The stream of changes. The first frame is a heartbeat, once the stream is open."""
        decoder = msgspec.json.Decoder(ChangeFrame)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_TIMEOUT_S, sock_read=STREAM_SILENCE_S)
        self._require_up()
        try:
            async with self._session.post(
                "/v1/changes", data=msgspec.json.encode(request), timeout=timeout
            ) as response:
                if response.status != 200:
                    raise _answered_refusal(response.status, await response.read())
                splitter = LineSplitter()
                async for chunk in response.content.iter_any():
                    for line in filter(None, splitter.feed(chunk)):
                        yield decoder.decode(line)
        except (aiohttp.ClientError, OSError, TimeoutError, msgspec.DecodeError) as error:
            raise self._mark_down(error) from error

    async def _post(
        self, path: str, request: msgspec.Struct, headers: Mapping[str, str] | None = None
    ) -> InsightAnswer:
        self._require_up()
        try:
            async with self._session.post(
                f"/v1/{path}", data=msgspec.json.encode(request), headers=headers
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._mark_down(error) from error
        if response.status not in (200, 304):
            raise _answered_refusal(response.status, body)
        found = response.headers
        age = found.get("Age", "0")
        return InsightAnswer(
            body,
            int(age) if age.isdecimal() else 0,
            found.get("ETag", ""),
            found.get("Position", ""),
            response.status == 304,
        )

    def _parse_answer(self, answer: InsightAnswer, type_: Any) -> Any:
        try:
            return msgspec.json.decode(answer.body, type=type_)
        except msgspec.DecodeError as error:
            raise self._mark_down(error) from error

    def _require_up(self) -> None:
        if self._clock.monotonic() < self._down_until:
            raise _problem("it did not answer a moment ago")

    def _mark_down(self, error: Exception) -> Refused:
        if isinstance(error, aiohttp.ClientConnectorError | TimeoutError):
            self._down_until = self._clock.monotonic() + DOWN_INTERVAL_S
        return _problem(str(error) or type(error).__name__)


def _problem(why: str) -> Refused:
    return Refused(Problem(INSIGHT_UNAVAILABLE, f"insight does not answer: {why}", next="pin status"))


def _answered_refusal(status: int, body: bytes) -> Refused:
    """The problems that insight answered with; unavailable, if it answered with anything else."""
    try:
        problems = [Problem.from_json(each) for each in msgspec.json.decode(body)["errors"]]
    except (msgspec.DecodeError, KeyError, TypeError):
        problems = list[Problem]()
    if not problems or status >= 500:
        why = problems[0].what if problems else f"HTTP status {status}"
        return _problem(why)
    return Refused(*problems)


@asynccontextmanager
async def open_insight(address: str, tls: ssl.SSLContext | None, clock: Clock) -> AsyncIterator[InsightClient]:
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    connector = aiohttp.TCPConnector(ssl=tls or False, limit=MAX_CONNECTIONS)
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as session:
        yield InsightClient(session, clock)
