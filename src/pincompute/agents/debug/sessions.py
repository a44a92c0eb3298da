"""Open sessions of an agent: how many there may be, and their ends by the desk's order or by time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from pincompute.agents.debug.grants import MAX_USED
from pincompute.base.bounded_map import BoundedMap
from pincompute.base.debug_grant import Grant
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import DEBUG_AGENT_UNAVAILABLE, GRANT_REFUSED

MAX_SESSIONS = 128
MAX_SESSIONS_PER_REPLICA = 16


class Session(NamedTuple):
    grant: Grant
    ended: asyncio.Event
    """Set by the desk's order."""


class Sessions:
    def __init__(self) -> None:
        self._open: dict[str, Session] = {}
        self._by_replica: Counter[str] = Counter()
        self._ended: BoundedMap[str, None] = BoundedMap(MAX_USED)
        """Names of sessions that were ended, some of them before they began."""

    def __len__(self) -> int:
        return len(self._open)

    @contextmanager
    def opened(self, grant: Grant) -> Generator[Session]:
        """Counts a session while the block runs. Raises Refused beyond a limit, or if its end was ordered already."""
        if grant.session in self._ended:
            # Its caller has left the desk, or lost the role, between ticket and session.
            raise Refused(Problem(GRANT_REFUSED, "the desk has ended this session before it began", next="try again"))
        if len(self._open) >= MAX_SESSIONS:
            raise _too_many(f"the node has {MAX_SESSIONS} sessions")
        if self._by_replica[grant.uid] >= MAX_SESSIONS_PER_REPLICA:
            raise _too_many(f"the replica has {MAX_SESSIONS_PER_REPLICA} sessions")
        session = self._open[grant.jti] = Session(grant, asyncio.Event())
        self._by_replica[grant.uid] += 1
        try:
            yield session
        finally:
            del self._open[grant.jti]
            self._by_replica[grant.uid] -= 1
            if not self._by_replica[grant.uid]:
                del self._by_replica[grant.uid]

    def end_named(self, name: str) -> int:
        """Ends the sessions of this name, and returns how many there were."""
        self._ended.put(name, None)
        found = [each for each in self._open.values() if each.grant.session == name]
        for session in found:
            session.ended.set()
        return len(found)


def _too_many(what: str) -> Refused:
    return Refused(
        Problem(DEBUG_AGENT_UNAVAILABLE, f"{what} open, and no more are allowed", next="end one, and try again")
    )
