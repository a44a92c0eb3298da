"""Goes on with a workload's lines as they are printed: over restarts, and with copies that join."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable
from contextlib import aclosing, suppress
from datetime import UTC, datetime

from pincompute.api.logs import Copies, Line, Mark, Said
from pincompute.api.names import WORKLOAD
from pincompute.base.problem import Refused
from pincompute.controller.files import Files
from pincompute.controller.lines import read_line
from pincompute.controller.log_store import LogStore
from pincompute.controller.turns import Asked, Series, Turn, turns_of
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, Gone, Unreachable
from pincompute.kube.resource import PODS
from pincompute.kube.watch import DELETED
from pincompute.objects.times import stamp
from pincompute.planning.pods.lives import Pod, how

REST = 2.0
"""Seconds that a pod may take to say that the life has ended whose lines have."""
_OVER = ("Succeeded", "Failed")
WAITING = 1000
"""Lines that are read before the first of them is taken: whoever reads slowly slows the reading, and nothing grows."""


class _Chain:
    """One container of one pod: its lives, one after the other."""

    def __init__(self, since: int) -> None:
        self.since = since
        """What was printed until here was told."""
        self.known: set[int] = set()
        """Lives that it was told of to have begun."""
        self.begun: set[int] = set()
        """Those of them whose lines are read, or were."""
        self.ended: set[int] = set()
        self.gone = False
        self.changed = asyncio.Event()
        self.asked: asyncio.Queue[Turn | Mark] = asyncio.Queue()
        self.busy = False


class Following:
    """Where it begins, `had` says; then `run` goes on. What is written into files, the store tells, if there is one."""

    def __init__(self, client: Client, store: LogStore | None, asked: Asked) -> None:
        self._client = client
        self._asked = asked
        self._labels = f"{WORKLOAD}={asked.whose.name}"
        self._files = Files(store, client.clock, asked, self._say) if store else None
        self._chains: dict[tuple[str, str], _Chain] = {}
        self._copies: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: asyncio.Queue[Said | Refused | None] = asyncio.Queue(maxsize=WAITING)

    def had(self, series: Iterable[Series], said: Iterable[tuple[int, Said]], since: int) -> None:
        """What was told of copies that are there; of the others, nothing more will come."""
        latest: dict[tuple[str, str], int] = {}
        for at, each in said:
            if isinstance(each, Line):
                latest[each.copy, each.container] = at
        for each in series:
            last = each.turns[-1]
            life, told = last.life, max(since, latest.get((each.copy, last.container), 0))
            if self._files and life.of_a_file:
                self._files.had(life, told)
            chain = self._chain((life.uid, life.container), told)
            over = {turn.life.restart for turn in each.turns if turn.life.end}
            chain.known |= {turn.life.restart for turn in each.turns}
            chain.begun |= over
            chain.ended |= over
            if each.copy not in self._copies:
                self._copies.append(each.copy)

    async def run(self, over: Awaitable[None]) -> AsyncGenerator[Said]:
        """Until it is over, and all is told that was printed until then."""
        self._start(self._watch())
        if self._files:
            self._start(self._files.run())
        self._start(self._end(over))
        try:
            while (said := await self._told.get()) is not None:
                if isinstance(said, Refused):
                    raise said
                yield said
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self) -> None:
        """Every pod that there is, and then each change; a watch that ends is begun again."""
        while True:
            try:
                changes = self._client.watch(PODS, self._asked.project, labels=self._labels, type=Pod)
                async with aclosing(changes) as events:
                    async for event in events:
                        await self._see(event.object, gone=event.type == DELETED)
            except (Gone, Unreachable):
                # It is begun again with what is there by then.
                pass
            except ApiError as error:
                await self._told.put(error)
            await self._client.clock.sleep(REST)

    async def _see(self, pod: Pod, *, gone: bool) -> None:
        for turn in turns_of(self._asked.whose, pod, self._asked.container):
            if self._asked.takes(turn):
                await self._take(turn)
        if gone:
            for (uid, _), chain in self._chains.items():
                if uid == pod.metadata.uid and not chain.gone:
                    chain.gone = True
                    chain.changed.set()

    async def _take(self, turn: Turn) -> None:
        life = turn.life
        chain = self._chain((life.uid, life.container), 0)
        await self._join(turn.copy)
        if life.restart not in chain.begun:
            if chain.known - {life.restart} and life.restart not in chain.known:
                chain.asked.put_nowait(Mark(turn.copy, "", "started again"))
            chain.known.add(life.restart)
            chain.begun.add(life.restart)
            chain.asked.put_nowait(turn)
        if life.end and life.restart not in chain.ended:
            chain.ended.add(life.restart)
            chain.changed.set()
            chain.asked.put_nowait(Mark(turn.copy, life.end.at, f"ended: {how(life.end)}"))

    async def _join(self, copy: str) -> None:
        if copy and copy not in self._copies:
            self._copies.append(copy)
            await self._told.put(Copies(list(self._copies)))

    async def _say(self, said: Line | Mark) -> None:
        await self._join(said.copy)
        await self._told.put(said)

    def _chain(self, key: tuple[str, str], since: int) -> _Chain:
        if key not in self._chains:
            self._chains[key] = _Chain(since)
            self._start(self._tell(self._chains[key]))
        return self._chains[key]

    async def _tell(self, chain: _Chain) -> None:
        """One after the other: a mark stands behind the last line of what it speaks of."""
        while True:
            asked = await chain.asked.get()
            chain.busy = True
            if isinstance(asked, Mark):
                await self._told.put(asked)
            else:
                await self._read(chain, asked)
            chain.busy = False

    async def _read(self, chain: _Chain, turn: Turn) -> None:
        """Until that life has ended: a stream that breaks off before is taken up where it was."""
        while True:
            chain.changed.clear()
            with suppress(ApiError):
                await self._stream(chain, turn)
            if turn.life.restart in chain.ended or chain.gone:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(REST):
                    await chain.changed.wait()

    async def _stream(self, chain: _Chain, turn: Turn) -> None:
        since = stamp(datetime.fromtimestamp(chain.since // 1_000_000_000, UTC)) if chain.since else ""
        source = self._client.logs(
            self._asked.project, turn.life.pod, container=turn.life.container, previous=turn.previous,
            follow=True, since=since, timestamps=True,
        )  # fmt: skip
        async with aclosing(source) as lines:
            async for line in lines:
                at, said = read_line(turn, line)
                # The server counts in whole seconds.
                if at > chain.since:
                    chain.since = at
                    await self._told.put(said)

    async def _end(self, over: Awaitable[None]) -> None:
        await over
        while any(each.busy or not each.asked.empty() for each in self._chains.values() if not each.gone):
            await self._client.clock.sleep(0.2)
        if self._files:
            await self._last_of(self._files)
        await self._told.put(None)

    async def _last_of(self, files: Files) -> None:
        """What a program wrote last is shipped when it has ended, and its pod ends after that."""
        with suppress(ApiError):
            while any(pod.status.phase not in _OVER for pod in await self._pods()):
                await self._client.clock.sleep(REST / 4)
        with suppress(Refused):
            await files.catch_up()

    async def _pods(self) -> list[Pod]:
        return (await self._client.list(PODS, self._asked.project, labels=self._labels, type=Pod)).items

    def _start(self, work: Awaitable[None]) -> None:
        self._tasks.add(asyncio.ensure_future(work))  # type: ignore[arg-type]
