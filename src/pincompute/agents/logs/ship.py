"""Ships streams to the store: from where it is, batch by batch, and no more than once is kept of any."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from pincompute.agents.logs.courier import Away, Courier, Later, Unwanted
from pincompute.agents.logs.follow import Follower
from pincompute.agents.logs.place import Stream

Find = Callable[[], dict[Stream, Callable[[], Follower]]]
"""The streams that there are at this moment, each with how it is followed."""

LONGEST = 15.0
"""Seconds between two attempts to reach a store that is away."""
GIVEN_UP = 60.0
"""Seconds after which a pod that the store does not know will never be known to it."""
AGAIN = 3.0
"""Seconds between two questions about such a pod."""
LAST = 20.0
"""Seconds for what is left, when told to end."""


class Shipper:
    """Reads only as fast as the store takes it: what waits, waits in its own files, and nobody is held up."""

    def __init__(self, courier: Courier, find: Find, pause: float) -> None:
        self._courier = courier
        self._find = find
        self._pause = pause
        self._followed: dict[Stream, Follower] = {}
        self._unwanted: set[Stream] = set()
        self._early: dict[Stream, tuple[float, float]] = {}
        """Of those that the store does not know yet: when it was asked first, and when it may be asked again."""
        self._ending = threading.Event()

    def run(self) -> None:
        """Until told to end; then what is left is shipped, and no more is waited for."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ending.set())
        failures = 0
        while not self._ending.is_set():
            try:
                while self.round() and not self._ending.is_set():
                    pass
                failures = 0
            except Away as away:
                failures += 1
                if failures == 1 or not failures % 20:
                    say(f"the store is away: {away}")
            self._ending.wait(self._wait(failures))
        self.finish(time.monotonic() + LAST)
        self.close()

    def round(self, *, last: bool = False) -> bool:
        """One batch of each stream, so that none waits for another; tell whether there was any."""
        there = self._find()
        moved = [self._advance(each, follower, last=last) for each, follower in self._follow(there)]
        for gone in [each for each in self._followed if each not in there]:
            # Its file was held open: what nobody else can read any more is still to be had.
            follower = self._followed[gone]
            while self._advance(gone, follower, last=True):
                pass
            follower.close()
            self._followed.pop(gone, None)
        self._unwanted &= there.keys()
        self._early = {each: when for each, when in self._early.items() if each in there}
        return any(moved)

    def finish(self, until: float) -> None:
        """Everything that was written, the last words without a line break too."""
        waits = 2
        try:
            while time.monotonic() < until:
                if self.round(last=True):
                    continue
                if not self._early or not waits:
                    return
                # A pod may end as soon as it began, before the store has heard of it.
                waits -= 1
                time.sleep(max(0.0, max(again for _, again in self._early.values()) - time.monotonic()))
        except Away as away:
            say(f"the last lines were not shipped: {away}")

    def close(self) -> None:
        """Let go of every file."""
        for follower in self._followed.values():
            follower.close()
        self._followed.clear()

    def _follow(self, there: dict[Stream, Callable[[], Follower]]) -> list[tuple[Stream, Follower]]:
        for each in there:
            if each not in self._followed and each not in self._unwanted:
                self._followed[each] = there[each]()
        return [(each, self._followed[each]) for each in there if each in self._followed]

    def _advance(self, stream: Stream, follower: Follower, *, last: bool) -> bool:
        if time.monotonic() < self._early.get(stream, (0.0, 0.0))[1]:
            return False
        try:
            if not follower.begun:
                follower.begin(self._courier.position(stream))
            batch = follower.next(last=last)
            if batch is None:
                return False
            taken, known = self._courier.bring(batch)
        except Later as later:
            self._wait_for(stream, str(later))
            return False
        except Unwanted as unwanted:
            self._give_up(stream, str(unwanted))
            return False
        if taken:
            follower.stored(batch.end)
        else:
            follower.begin(known)
        return True

    def _wait_for(self, stream: Stream, why: str) -> None:
        now = time.monotonic()
        first, _ = self._early.get(stream, (now, now))
        self._early[stream] = (first, now + AGAIN)
        if now - first > GIVEN_UP:
            self._give_up(stream, why)

    def _give_up(self, stream: Stream, why: str) -> None:
        say(f"not shipped: {stream.project}/{stream.pod} {stream.container}: {why}")
        self._unwanted.add(stream)
        follower = self._followed.pop(stream, None)
        if follower:
            follower.close()

    def _wait(self, failures: int) -> float:
        if not failures:
            return self._pause
        # So that all the shippers of a cluster do not come back at once; nothing secret hangs on it.
        return min(LONGEST, 2.0 ** min(failures, 5) / 2) * (0.5 + random.random() / 2)  # noqa: S311


def say(what: str) -> None:
    """One line of JSON, as all our processes log; without the packages that they do it with."""
    import json

    line = {"process": "log-shipper", "event": what, "level": "info", "timestamp": datetime.now(UTC).isoformat()}
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()
