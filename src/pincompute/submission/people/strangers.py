"""Strangers: what it costs to learn who somebody is, is bounded before that is known: so it goes by addresses."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pincompute.base.clock import Clock
from pincompute.base.problem import Refused
from pincompute.base.reasons import NOT_SIGNED_IN
from pincompute.base.recent import Recent
from pincompute.planning.lane import Bounds
from pincompute.planning.pace import Pace
from pincompute.submission.people.door import Shown
from pincompute.submission.queue import Queue, keep_pace

LOOKED_AT = Bounds(at_work=8, waiting=64, of_one=16)
"""Whatever is shown for the first time, or again after a while."""
RATE = 10.0
"""Of what is nobody's, a second from one address."""
AT_ONCE = 10.0
"""Seconds' worth of it."""
FORGOTTEN = 5.0
"""Seconds after which what was nobody's is looked at again."""
MOST = 10_000


class Strangers:
    """Who was found to be somebody does not come by here for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue = Queue("that nobody knows yet", LOOKED_AT, clock)
        self._pace = Pace(RATE, AT_ONCE)
        self._nobodys: Recent[bytes, tuple[Refused, float]] = Recent(MOST)

    @asynccontextmanager
    async def look(self, shown: Shown) -> AsyncGenerator[None]:
        """At what costs something; that it is nobody's is kept in mind."""
        digest = hashlib.sha256(shown.token.encode()).digest()
        refused, until = self._nobodys.get(digest, (None, 0.0))
        if refused and self._clock.monotonic() < until:
            raise Refused(*refused.problems)
        what = f"too much that is nobody's was shown from {shown.address}"
        keep_pace(self._pace, shown.address, self._clock.monotonic(), what)
        with self._queue.come(shown.address) as place:
            await place.turn()
            try:
                yield
            except Refused as why:
                if why.problems[0].reason is NOT_SIGNED_IN:
                    self._pace.take(shown.address, self._clock.monotonic())
                    self._nobodys.note(digest, (why, self._clock.monotonic() + FORGOTTEN))
                raise
