"""Goes on with what a workload writes into files of its log volumes: the store tells each batch as it takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from pincompute.api.logs import Entry, Life, Line, Mark
from pincompute.base.clock import Clock
from pincompute.base.problem import Refused
from pincompute.controller.lines import MOST_LINES, line
from pincompute.controller.log_store import LogStore
from pincompute.controller.turns import Asked, kept_turn
from pincompute.objects.times import instant

REST = 2.0
"""Seconds between two attempts to listen."""

Key = tuple[str, str]
Tell = Callable[[Line | Mark], Awaitable[None]]


class Files:
    """Times of a file are all by one clock, that of who ships it: by them it is known what was told."""

    def __init__(self, store: LogStore, clock: Clock, asked: Asked, tell: Tell) -> None:
        self._store = store
        self._clock = clock
        self._asked = asked
        self._tell = tell
        self._one = asyncio.Lock()
        self._told: dict[Key, int] = {}

    def had(self, life: Life, told: int) -> None:
        """What was told of a file until here."""
        self._told[_key(life)] = told

    async def run(self) -> None:
        """For ever; where the store is away, that is told once, and it is gone on when it is back."""
        away = False
        while True:
            try:
                async with aclosing(self._store.fresh(*self._place)) as batches:
                    async for fresh in batches:
                        away = False
                        if fresh is None:
                            await self.catch_up()
                        else:
                            await self._hear(fresh.life, fresh.entries)
            except Refused as refused:
                if not away:
                    await self._tell(Mark("", "", refused.problems[0].what))
                away = True
            await self._clock.sleep(REST)

    async def catch_up(self) -> None:
        """What was stored since it was told last."""
        for life in await self._store.lives(*self._place):
            if self._wants(life):
                since = self._told.get(_key(life), 0)
                await self._hear(life, await self._store.lines(*self._place, life, tail=MOST_LINES, since=since))

    async def _hear(self, life: Life, entries: Sequence[Entry]) -> None:
        """The lines of a batch are all of one time."""
        if not self._wants(life):
            return
        async with self._one:
            turn, before = kept_turn(self._asked.whose, life), self._told.get(_key(life), 0)
            for each in entries:
                at = instant(each.time)
                if at > before:
                    self._told[_key(life)] = max(at, self._told.get(_key(life), 0))
                    await self._tell(line(turn, each))

    def _wants(self, life: Life) -> bool:
        """A pod that is gone writes no more; and what ran before is of another workload, which had the same name."""
        whose, container = self._asked.whose, self._asked.container
        if not life.of_a_file or life.created < whose.created or (life.gone and _key(life) not in self._told):
            return False
        return container in ("", life.container) and self._asked.takes(kept_turn(whose, life))

    @property
    def _place(self) -> tuple[str, str]:
        return self._asked.project, self._asked.whose.name


def _key(life: Life) -> Key:
    return life.uid, life.container
