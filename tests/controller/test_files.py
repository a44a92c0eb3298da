"""What is written into files of log volumes is told as the store takes it: once, in order, and of whom it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from pincompute.agents.logs import hearers
from pincompute.agents.logs.callers import Caller
from pincompute.agents.logs.lines import wrapped
from pincompute.agents.logs.place import Batch, Position, Stream
from pincompute.agents.logs.server import application
from pincompute.agents.logs.store import Store
from pincompute.agents.process import answering
from pincompute.api.logs import Life, Line, Mark
from pincompute.api.names import DESK
from pincompute.base.clock import SystemClock
from pincompute.controller.files import Files
from pincompute.controller.log_store import LogStore
from pincompute.controller.turns import Asked, Whose
from pincompute.objects.times import instant
from pincompute.planning.pods.lives import Pod
from real_platform import free_port

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEB = Whose("web", "web", created="2026-01-01T00:00:00Z")


class Hurried(SystemClock):
    """Nobody waits long between two attempts."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.01)


class Way:
    """A store, whoever follows its files, and what that one hears."""

    def __init__(self, folder: Path, **asked: str) -> None:
        self.store = Store(folder)
        self.asked = Asked("me", WEB, **asked)
        self.heard: asyncio.Queue[Line | Mark] = asyncio.Queue()
        self.port = free_port()
        self._ends: dict[Stream, Position] = {}

    def write(self, *lines: str, pod: str = "web-0", file: str = "app.log", at: int = 1, workload: str = "web") -> None:
        """As a sidecar ships it: a batch of one time."""
        self.store.see(_pod(pod, workload))
        known = self.store.pods.get(pod)
        assert known
        text = wrapped("\n".join(lines).encode(), f"2026-01-01T00:00:{at:02}Z")
        stream = Stream("me", pod, pod, file)
        start = self._ends.get(stream, Position())
        end = self._ends[stream] = Position(0, start.offset + len(text), "m")
        assert self.store.take(Batch(stream, start, end, text), known)[0]

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        page = application(self.store, lambda _: Caller(DESK), frozenset({DESK}))
        async with answering(f"127.0.0.1:{self.port}", page, grace=0.1):
            yield

    @asynccontextmanager
    async def following(self, **told: int) -> AsyncGenerator[Files]:
        """Told until which second of which pod's file."""
        async with aiohttp.ClientSession(f"http://127.0.0.1:{self.port}") as session:
            files = Files(LogStore(session), Hurried(), self.asked, self.heard.put)
            for pod, second in told.items():
                name = pod.replace("_", "-")
                life = Life(pod=name, uid=name, container="app.log")
                files.had(life, instant(f"2026-01-01T00:00:{second:02}Z"))
            task = asyncio.create_task(files.run())
            try:
                yield files
            finally:
                task.cancel()

    async def next(self) -> str:
        async with asyncio.timeout(60):
            said = await self.heard.get()
        return f"{said.copy} {said.container} {said.text}" if isinstance(said, Line) else f"-- {said.text}"


def _pod(name: str, workload: str, created: str = "2026-01-01T00:00:01Z") -> Pod:
    metadata = {
        "name": name, "namespace": "me", "uid": name, "creationTimestamp": created,
        "labels": {"pinterest.com/workload": workload},
    }  # fmt: skip
    said: dict[str, Any] = {"metadata": metadata, "spec": {"containers": [{"name": workload}]}}
    return msgspec.convert(said, Pod)


async def _listening(way: Way) -> None:
    """By a line that only comes to those who listen."""
    way.write("here", pod="web-9", at=1)
    assert await way.next() == "9 app.log here"


async def test_lines_are_told_as_they_are_stored(tmp_path: Path) -> None:
    way = Way(tmp_path)
    async with way.serving(), way.following():
        await _listening(way)
        way.write("one", "two")
        assert [await way.next() for _ in range(2)] == ["0 app.log one", "0 app.log two"]
        way.write("three", file="access.log", at=2)
        assert await way.next() == "0 access.log three"
        way.write("four", pod="web-1", at=3)
        assert await way.next() == "1 app.log four"


async def test_what_was_told_is_not_told_again_and_what_came_meanwhile_is(tmp_path: Path) -> None:
    way = Way(tmp_path)
    way.write("read before", "and this, of the same moment", at=4)
    way.write("stored before anybody listened", at=5)
    async with way.serving(), way.following(web_0=4):
        assert await way.next() == "0 app.log stored before anybody listened"


async def test_nothing_of_others_is_told(tmp_path: Path) -> None:
    way = Way(tmp_path, container="app.log", copy="0")
    way.store.see(_pod("web-7", "web", "2025-12-31T00:00:00Z"))
    async with way.serving(), way.following():
        way.write("here")
        assert await way.next() == "0 app.log here"
        way.write("another file", file="access.log")
        way.write("another copy", pod="web-1")
        way.write("another workload", pod="db-0", workload="db")
        way.write("what it prints is read from its pod", file="web")
        way.write("here too", at=2)
        assert await way.next() == "0 app.log here too"


async def test_nothing_is_told_of_who_was_gone_or_had_the_name_before(tmp_path: Path) -> None:
    way = Way(tmp_path)
    way.write("it is gone", pod="web-1")
    way.store.forget(_pod("web-1", "web"), NOW)
    way.write("it had the name before", pod="web-2")
    way.store.see(_pod("web-2", "web", "2025-12-31T00:00:00Z"))
    async with way.serving(), way.following():
        await _listening(way)


async def test_where_the_store_is_lost_that_is_told_once_and_then_what_came_meanwhile(tmp_path: Path) -> None:
    way = Way(tmp_path)
    async with way.following():
        async with way.serving():
            assert (await way.next()).startswith("-- the store of logs cannot be read")
            await _listening(way)
        assert (await way.next()).startswith("-- the store of logs cannot be read")
        way.write("meanwhile", at=2)
        async with way.serving():
            assert await way.next() == "0 app.log meanwhile"


async def test_who_reads_slowly_is_let_go_and_comes_back_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearers, "WAITING", 1)
    way = Way(tmp_path)
    way.heard = asyncio.Queue(maxsize=1)
    async with way.serving(), way.following():
        await _listening(way)
        for second in range(2, 50):
            way.write(f"line {second}", at=second)
        assert [await way.next() for _ in range(48)] == [f"0 app.log line {second}" for second in range(2, 50)]


async def test_at_the_end_all_is_told_that_was_stored(tmp_path: Path) -> None:
    way = Way(tmp_path)
    async with way.serving(), way.following() as files:
        await _listening(way)
        way.write("its last word", at=2)
        await files.catch_up()
        assert await way.next() == "0 app.log its last word"
        await files.catch_up()
        assert way.heard.empty()
