"""Registrar: keeps exactly the ready pods of its node in their serversets.

Every pass compares all wanted members with what this session has registered, so that a crash, a lost session and a
lost response are repaired in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

import structlog

from pincompute.agents.traffic.ensemble import Denied, Ensemble, Unreachable
from pincompute.agents.traffic.members import Member
from pincompute.api.serverset import ServersetKey
from pincompute.base.backoff import backoff_s
from pincompute.base.clock import Clock

VERIFY_INTERVAL_S = 30.0
"""Registered members are verified after this time, in case another client has removed or changed them."""
MAX_CONCURRENT_REQUESTS = 64
MAX_BACKOFF_S = 5.0

log = structlog.get_logger()


class Registration(NamedTuple):
    """An entry that this process may have written."""

    data: bytes
    session: int = 0
    """Session that it was written in; 0 while it is unknown whether it exists."""
    verified: bool = False


class Registrar:
    """Writes the members. `on_pass` is called after each pass, to report what is registered."""

    def __init__(
        self, ensemble: Ensemble, root: str, clock: Clock, *, on_pass: Callable[[], None], own_ensemble: bool = False
    ) -> None:
        self.wanted: Mapping[str, Member] = {}
        """The members that should be registered, by any key of the caller."""
        self.problem = ""
        """Why the last pass failed; empty if it did not."""
        self._ensemble = ensemble
        self._root = root
        self._clock = clock
        self._on_pass = on_pass
        self._own_ensemble = own_ensemble
        self._claimed_session = 0
        self._registered: dict[str, Registration] = {}
        self._changed = asyncio.Event()

    def path(self, member: Member) -> str:
        return f"{folder(self._root, member.serverset)}/{member.name}"

    def is_registered(self, member: Member) -> bool:
        """Whether it is registered for all that is known: members outlive a connection by the time-out of a session."""
        known = self._registered.get(self.path(member))
        if known is None or not known.session:
            return False
        down_since = self._ensemble.down_since
        if down_since is None:
            return known.session == self._ensemble.session
        return self._clock.monotonic() - down_since <= self._ensemble.session_timeout_s

    def reconcile(self) -> None:
        """Starts a pass as soon as possible, after a change of the members or of the connection."""
        self._changed.set()

    async def run(self) -> None:
        failures = 0
        verified = self._clock.monotonic()
        while True:
            self._changed.clear()
            if self._clock.monotonic() - verified > VERIFY_INTERVAL_S:
                self._registered = {path: each._replace(verified=False) for path, each in self._registered.items()}
                verified = self._clock.monotonic()
            failures = 0 if await self._run_pass() else failures + 1
            self._on_pass()
            wait_s = backoff_s(failures, 1, MAX_BACKOFF_S) if failures else VERIFY_INTERVAL_S
            await self._wait(wait_s)

    async def _wait(self, seconds: float) -> None:
        waits = [asyncio.ensure_future(each) for each in (self._changed.wait(), self._clock.sleep(seconds))]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def _run_pass(self) -> bool:
        """Removes before it adds, as SIGTERM is near for those that leave. Returns whether all succeeded."""
        session = self._ensemble.session
        if not session:
            self.problem = "ZooKeeper is unreachable"
            self._ensemble.start_again()
            return False
        wanted = {self.path(each): each.data for each in self.wanted.values()}
        current = {path: Registration(data, session, verified=True) for path, data in wanted.items()}
        slots = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
        superfluous = [path for path in self._registered if path not in wanted]
        missing = [path for path in wanted if self._registered.get(path) != current[path]]
        problem = await self._claim(session)
        if not problem:
            removed = await asyncio.gather(*(self._unregister(path, slots) for path in superfluous))
            puts = (self._register(path, wanted[path], session, slots) for path in missing)
            problem = next((each for each in (*removed, *await asyncio.gather(*puts)) if each), "")
        if problem and problem != self.problem:
            log.warning("registration failed", why=problem)
        self.problem = problem
        return not problem

    async def _claim(self, session: int) -> str:
        """Claims the folder, once a session. Returns why that failed, as the methods below do."""
        if session != self._claimed_session:
            try:
                await self._ensemble.claim_folder(self._root, whole=self._own_ensemble)
            except (Unreachable, Denied) as error:
                return str(error)
            self._claimed_session = session
        return ""

    async def _unregister(self, path: str, slots: asyncio.Semaphore) -> str:
        async with slots:
            try:
                await self._ensemble.delete(path)
            except (Unreachable, Denied) as error:
                return str(error)
        del self._registered[path]
        log.info("member removed", path=path)
        return ""

    async def _register(self, path: str, data: bytes, session: int, slots: asyncio.Semaphore) -> str:
        # A request without an answer may have been done: the entry is remembered, and removed with the others.
        before = self._registered.get(path, Registration(data))
        self._registered[path] = before._replace(verified=False)
        async with slots:
            try:
                await self._ensemble.put_ephemeral(path, data)
            except (Unreachable, Denied) as error:
                return str(error)
        self._registered[path] = Registration(data, session, verified=True)
        if before.session != session:
            log.info("member added", path=path, session=f"{session:#x}")
        return ""


def folder(root: str, key: ServersetKey) -> str:
    """Folder of a serverset."""
    return f"{root}/{key.project}/{key.workload}"
