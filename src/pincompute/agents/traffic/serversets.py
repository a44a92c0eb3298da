"""Watches the serversets that pods of this node read, one watch for each, and keeps the last known members."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from contextlib import suppress

import structlog

from pincompute.agents.traffic.ensemble import Denied, Ensemble, Unreachable
from pincompute.agents.traffic.members import MEMBER_PREFIX, ServiceInstance, address_lines, parse_member
from pincompute.agents.traffic.registrar import folder
from pincompute.api.serverset import ServersetKey
from pincompute.base.clock import Clock

MAX_MEMBERS = 10_000
"""Members of a serverset that are read; further ones are ignored, in the order of their names."""
MAX_CONCURRENT_READS = 100
IDLE_S = 300.0
"""A serverset that no pod has asked for in this time is forgotten."""
RETRY_S = 1.0
BURST_S = 0.05
"""Shortest time between two reads, so that a rollout causes few."""

log = structlog.get_logger()


class Serverset:
    """One serverset: its members as last read."""

    def __init__(self, now: float) -> None:
        self.text: str | None = None
        """Content of its file; None until it has been read once."""
        self.version = ""
        self.ignored = 0
        """Entries that are no members."""
        self.asked_at = now
        self.changed = asyncio.Event()
        self.members: dict[str, ServiceInstance | None] = {}


class Serversets:
    """All watched serversets. Each has a task, which ends when no pod has asked for it for some time."""

    def __init__(self, ensemble: Ensemble, root: str, clock: Clock, group: asyncio.TaskGroup) -> None:
        self._ensemble = ensemble
        self._root = root
        self._clock = clock
        self._group = group
        self._sets: dict[ServersetKey, Serverset] = {}
        self._changed = asyncio.Event()

    def get(self, key: ServersetKey) -> Serverset:
        """The serverset, which is watched from now on."""
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = Serverset(self._clock.monotonic())
            self._group.create_task(self._watch(key, found))
        found.asked_at = self._clock.monotonic()
        return found

    def refresh(self) -> None:
        """Reads all again: watches end with the connection."""
        for each in self._sets.values():
            each.changed.set()

    def notify(self) -> None:
        """Wakes all that wait for a change, also of the rights to read."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Returns after the next change of any serverset, or after this time."""
        changed = self._changed
        with suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), seconds)

    async def _watch(self, key: ServersetKey, found: Serverset) -> None:
        while self._clock.monotonic() - found.asked_at < IDLE_S:
            found.changed.clear()
            wait_s = IDLE_S
            try:
                await self._read(key, found)
            except (Unreachable, Denied) as error:
                log.debug("serverset not read", serverset=str(key), why=str(error))
                wait_s = RETRY_S
            with suppress(TimeoutError):
                await asyncio.wait_for(found.changed.wait(), wait_s)
            await self._clock.sleep(BURST_S)
        del self._sets[key]

    async def _read(self, key: ServersetKey, found: Serverset) -> None:
        path = folder(self._root, key)
        names = await self._ensemble.children(path, found.changed.set)
        chosen = sorted(each for each in names if each.startswith(MEMBER_PREFIX))[:MAX_MEMBERS]
        slots = asyncio.Semaphore(MAX_CONCURRENT_READS)

        async def read(name: str) -> tuple[str, ServiceInstance | None]:
            async with slots:
                entry = await self._ensemble.read(f"{path}/{name}")
            # Only what ends with a session is a member: anything else would outlive its process.
            return name, parse_member(entry.data) if entry and entry.session else None

        # Valid entries never change. An invalid one may have been replaced.
        new = [each for each in chosen if found.members.get(each) is None]
        read_now = dict(await asyncio.gather(*map(read, new)))
        found.members = {name: read_now.get(name, found.members.get(name)) for name in chosen}
        self._publish(key, found, len(names))

    def _publish(self, key: ServersetKey, found: Serverset, entries: int) -> None:
        members = [each for each in found.members.values() if each]
        if (ignored := entries - len(members)) != found.ignored:
            found.ignored = ignored
            log.warning("entries ignored", serverset=str(key), ignored=ignored, members=len(members))
        text = address_lines(members)
        if text != found.text:
            found.text, found.version = text, _digest([text])
            self.notify()


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def combined_version(parts: Iterable[str]) -> str:
    """Version of a whole answer, by which a client waits for the next one."""
    return _digest(parts)
