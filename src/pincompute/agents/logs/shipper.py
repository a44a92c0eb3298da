"""Ships streams to the store: batch by batch from the store's position, so that each line is stored once."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable

from pincompute.agents.logs.follower import Follower
from pincompute.agents.logs.position import Stream
from pincompute.agents.logs.store_client import PodUnknown, StoreClient, StreamRejected
from pincompute.agents.plain_log import write_log_line
from pincompute.agents.store_connection import StoreUnavailable

FindStreams = Callable[[], dict[Stream, Callable[[], Follower]]]
"""Finds the current streams, each with a factory of its follower."""

MAX_BACKOFF_S = 15.0
"""Longest delay between two attempts to reach the store."""
UNKNOWN_POD_TIMEOUT_S = 60.0
"""A pod that the store does not know after this time is given up."""
UNKNOWN_POD_RETRY_S = 3.0
"""Delay between two attempts for an unknown pod."""
MAX_DELETED_STREAMS = 200
"""Streams without files that wait for the store. They keep the disk space of their deleted files."""
DRAIN_TIMEOUT_S = 20.0
"""Time for the remaining lines after a signal to stop."""


class Shipper:
    """Ships all streams in turn. It reads only as fast as the store accepts, and never blocks the containers."""

    def __init__(self, client: StoreClient, find: FindStreams, poll_interval_s: float) -> None:
        self._client = client
        self._find = find
        self._poll_interval_s = poll_interval_s
        self._followers: dict[Stream, Follower] = {}
        self._rejected: set[Stream] = set()
        self._unknown_pods: dict[Stream, tuple[float, float]] = {}
        """Streams of pods that the store does not know yet: time of the first attempt, and of the next."""
        self._stopping = threading.Event()

    def run(self) -> None:
        """Ships until a signal, and then the remaining lines."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stopping.set())
        failures = 0
        while not self._stopping.is_set():
            try:
                while self.ship_round() and not self._stopping.is_set():
                    pass
                failures = 0
            except StoreUnavailable as error:
                failures += 1
                if failures == 1 or not failures % 20:
                    log_event("log store unavailable", why=str(error), failures=failures)
            self._wait(self._delay_s(failures))
        self.drain(time.monotonic() + DRAIN_TIMEOUT_S)
        self.close()

    def ship_round(self, *, last: bool = False) -> bool:
        """Ships one batch of each stream, so that none waits for another. Returns whether there was any."""
        current = self._find()
        shipped = [self._ship_batch(each, follower, last=last) for each, follower in self._update_followers(current)]
        for stream in [each for each in self._followers if each not in current]:
            # The file was deleted but is still open: ship its remaining lines.
            follower = self._followers[stream]
            while self._ship_batch(stream, follower, last=True):
                pass
            if stream not in self._unknown_pods:
                follower.close()
                self._followers.pop(stream, None)
        self._rejected &= current.keys()
        self._unknown_pods = {each: times for each, times in self._unknown_pods.items() if each in self._followers}
        return any(shipped)

    def hold_files(self) -> None:
        """Opens the files of new streams while the store does not respond; they may be deleted before it does."""
        current = self._find()
        self._update_followers(current)
        deleted = [each for each in self._followers if each not in current]
        for stream in deleted[: max(0, len(deleted) - MAX_DELETED_STREAMS)]:
            log_event("last lines lost", pod=f"{stream.project}/{stream.pod}", container=stream.container)
            self._followers.pop(stream).close()

    def drain(self, until: float) -> None:
        """Ships all remaining lines, including an incomplete last line."""
        retries = 2
        try:
            while time.monotonic() < until:
                if self.ship_round(last=True):
                    continue
                if not self._unknown_pods or not retries:
                    return
                # A pod can end right after its start, before the store has seen it.
                retries -= 1
                time.sleep(max(0.0, max(next_at for _, next_at in self._unknown_pods.values()) - time.monotonic()))
        except StoreUnavailable as error:
            log_event("last lines not shipped", why=str(error))

    def close(self) -> None:
        """Closes all files."""
        for follower in self._followers.values():
            follower.close()
        self._followers.clear()

    def _update_followers(self, current: dict[Stream, Callable[[], Follower]]) -> list[tuple[Stream, Follower]]:
        for stream in current:
            if stream not in self._followers and stream not in self._rejected:
                self._followers[stream] = current[stream]()
            if stream in self._followers:
                self._followers[stream].hold()
        return [(each, self._followers[each]) for each in current if each in self._followers]

    def _ship_batch(self, stream: Stream, follower: Follower, *, last: bool) -> bool:
        if time.monotonic() < self._unknown_pods.get(stream, (0.0, 0.0))[1]:
            return False
        try:
            if not follower.started:
                follower.seek_to(self._client.fetch_position(stream))
                self._unknown_pods.pop(stream, None)
            batch = follower.next_batch(last=last)
            if batch is None:
                return False
            stored, position = self._client.send_batch(batch)
        except PodUnknown as error:
            self._retry_later(stream, str(error))
            return False
        except StreamRejected as error:
            self._reject(stream, str(error))
            return False
        if stored:
            follower.commit(batch.end)
        else:
            follower.seek_to(position)
        return True

    def _retry_later(self, stream: Stream, why: str) -> None:
        now = time.monotonic()
        first, _ = self._unknown_pods.get(stream, (now, now))
        self._unknown_pods[stream] = (first, now + UNKNOWN_POD_RETRY_S)
        if now - first > UNKNOWN_POD_TIMEOUT_S:
            self._reject(stream, why)

    def _reject(self, stream: Stream, why: str) -> None:
        log_event("stream rejected", pod=f"{stream.project}/{stream.pod}", container=stream.container, why=why)
        self._rejected.add(stream)
        self._unknown_pods.pop(stream, None)
        follower = self._followers.pop(stream, None)
        if follower:
            follower.close()

    def _wait(self, delay_s: float) -> None:
        """Waits until the next attempt, or until a signal."""
        end = time.monotonic() + delay_s
        while (remaining := end - time.monotonic()) > 0 and not self._stopping.wait(
            min(remaining, self._poll_interval_s)
        ):
            self.hold_files()

    def _delay_s(self, failures: int) -> float:
        if not failures:
            return self._poll_interval_s
        # Jitter, so that the shippers of a cluster do not reconnect at the same time. It needs no secure randomness.
        return min(MAX_BACKOFF_S, 2.0 ** min(failures, 5) / 2) * (0.5 + random.random() / 2)  # noqa: S311


def log_event(event: str, **fields: object) -> None:
    write_log_line("log-shipper", event, fields)
