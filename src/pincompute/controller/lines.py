"""The lines of a workload: of all its copies and of all their lives, as one, also when their pods are gone."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Sequence
from contextlib import aclosing

from pincompute.api.logs import Copies, Entry, Life, Line, Mark, Only, Said, Wanted
from pincompute.api.names import WORKLOAD
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import COPY_UNKNOWN, NO_LOGS
from pincompute.controller.log_store import LogStore
from pincompute.controller.turns import Series, Turn, Whose
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, NotFound
from pincompute.kube.resource import PODS
from pincompute.objects.times import instant
from pincompute.planning.pods.lives import Pod

MOST = 50
"""Containers whose lines are read at once: of a batch there may be thousands."""
MOST_LINES = 100_000


class Lines:
    """Reads pods while they are there, for they know first; and for the rest the store, where there is one."""

    def __init__(self, client: Client, store: LogStore | None) -> None:
        self._client = client
        self.store = store

    async def kept(self, project: str, name: str) -> tuple[list[Life], str]:
        """What the store has, or why it says nothing: those who are there can be read all the same."""
        try:
            return (await self.store.lives(project, name) if self.store else []), ""
        except Refused as refused:
            return [], refused.problems[0].what

    def choose(self, project: str, found: Sequence[Series], whose: Whose, wanted: Wanted) -> list[Series]:
        """Those that are asked for; what failed comes first, where there are too many."""
        chosen = [each for each in found if not wanted.copy or wanted.copy in (each.copy, each.turns[-1].life.pod)]
        if wanted.copy and not chosen:
            raise self._no_copy(project, found, whose, wanted)
        if not wanted.copy and not wanted.gone:
            left_out = whose.leaves_out(chosen)
            chosen = [each for each in chosen if each not in left_out]
        if wanted.previous:
            chosen = [Series(each.turns[-2:-1]) for each in chosen if len(each.turns) > 1]
            if not chosen:
                what = f"nothing of {project}/{whose.name} has lived before"
                raise Refused(Problem(NO_LOGS, what, next=f"pin logs {whose.name}"))
        if wanted.only:
            return _alone(chosen, wanted.only)
        return sorted(chosen, key=lambda each: (not each.failed, each.turns[-1].stored))[:MOST]

    async def told(
        self, project: str, whose: Whose, series: Sequence[Series], wanted: Wanted
    ) -> list[tuple[int, Said]]:
        """The last lines of all, merged by time, and between them what happened."""
        read = await asyncio.gather(*(self._series(project, whose, each, wanted) for each in series))
        return list(heapq.merge(*read, key=lambda each: each[0]))

    async def _series(self, project: str, whose: Whose, series: Series, wanted: Wanted) -> list[tuple[int, Said]]:
        """From the last life backwards, until there are as many lines as are wanted."""
        parts: list[list[tuple[int, Said]]] = []
        left = wanted.tail
        for index in range(len(series.turns) - 1, -1, -1):
            lines = await self._life(project, whose, series.turns[index], left, wanted.since)
            mark = series.mark(index)
            parts.append(lines + _placed(mark, lines, wanted.since))
            left -= len(lines)
            if left <= 0:
                break
        return _ordered(each for part in reversed(parts) for each in part)

    async def _life(self, project: str, whose: Whose, turn: Turn, tail: int, since: int) -> list[tuple[int, Said]]:
        if turn.stored:
            return await self._stored(project, whose, turn, tail, since)
        try:
            source = self._client.logs(
                project,
                turn.life.pod,
                container=turn.life.container,
                tail=tail,
                previous=turn.previous,
                timestamps=True,
            )
            async with aclosing(source) as lines:
                found = [read for read in [read_line(turn, line) async for line in lines] if read[0] > since]
                if found or not (turn.life.end and self.store):
                    return found
                # The node may have forgotten it.
                return await self._stored(project, whose, turn, tail, since)
        except ApiError as error:
            if self.store:
                # Its pod ended since it was listed, or its node is away.
                return await self._stored(project, whose, turn, tail, since)
            # One copy that cannot be read does not silence the others.
            what = "its pod is gone" if isinstance(error, NotFound) else f"cannot be read: {error.problems[0].what}"
            return [(0, Mark(turn.copy, "", what))]

    async def _stored(self, project: str, whose: Whose, turn: Turn, tail: int, since: int) -> list[tuple[int, Said]]:
        assert self.store
        entries = await self.store.lines(project, whose.name, turn.life, tail=tail, since=since)
        return [(instant(each.time), line(turn, each)) for each in entries]

    def _no_copy(self, project: str, found: Sequence[Series], whose: Whose, wanted: Wanted) -> Refused:
        there = sorted({each.copy for each in found}, key=lambda each: (len(each), each))
        some = ", ".join(there[:20]) + (f" and {len(there) - 20} more" if len(there) > 20 else "")
        gone = "" if self.store else "; where its pod is gone, no store of logs keeps its lines on this cluster"
        what = f"{whose.name} has printed nothing as '{wanted.copy}'"
        note = (f"there are {some}" if there else "nothing of it has run") + gone
        return Refused(Problem(COPY_UNKNOWN, what, Where(object=f"{project}/{whose.name}"), note))


async def pods_of(client: Client, project: str, name: str) -> list[Pod]:
    """Those of a workload that are there."""
    return (await client.list(PODS, project, labels=f"{WORKLOAD}={name}", type=Pod)).items


def _alone(series: Sequence[Series], only: Only) -> list[Series]:
    """Where none has ended badly, the youngest is meant."""
    youngest = sorted(series, key=lambda each: each.turns[-1].life.created)
    ended = sorted((each for each in youngest if each.ended_badly), key=lambda each: each.ended_badly)
    return (ended if only == "ended" and ended else youngest)[-1:]


def copies(series: Iterable[Series]) -> Copies:
    return Copies(list(dict.fromkeys(each.copy for each in series)))


def read_line(turn: Turn, line: str) -> tuple[int, Said]:
    """As the API server gives it: a time, and what was printed."""
    time, _, text = line.partition(" ")
    try:
        return instant(time), _line(turn, time, text)
    except ValueError:
        return 0, _line(turn, "", line)


def line(turn: Turn, entry: Entry) -> Line:
    return _line(turn, entry.time, entry.text)


def _line(turn: Turn, time: str, text: str) -> Line:
    return Line(turn.copy, time, text, turn.container)


def _placed(mark: Mark | None, lines: list[tuple[int, Said]], since: int) -> list[tuple[int, Said]]:
    """Behind the last line, whose time is told more exactly than that of the end."""
    if mark is None:
        return []
    at = max(instant(mark.time) if mark.time else 0, lines[-1][0] if lines else 0)
    return [(at, mark)] if at > since else []


def _ordered(told: Iterable[tuple[int, Said]]) -> list[tuple[int, Said]]:
    """Lives follow each other, whatever their clocks say."""
    ordered: list[tuple[int, Said]] = []
    latest = 0
    for at, said in told:
        latest = max(latest, at)
        ordered.append((latest, said))
    return ordered
