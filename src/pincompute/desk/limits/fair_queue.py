"""Fair queue: decides which requests run, which wait and which are rejected.

It is bounded in total and for each client, and serves clients in turn. Pure: it neither waits nor reads a clock; the
time is an argument. `request_queue` makes coroutines wait by it. The reasons are in the package's docstring.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from enum import Enum, auto
from typing import NamedTuple

from pincompute.base.retry_budget import RetryBudget

MAX_RETRY_AFTER_S = 30
"""The longest delay that a client is told: the load cannot be foreseen further than that."""
_PROMPT_RETRY_SHARE = 0.1
"""Share of requests that may be told to retry soon. The others are told the maximum, for which `pin` does not wait."""
_DURATION_SMOOTHING = 0.2
"""Weight of the newest duration in the moving average."""


class QueueLimits(NamedTuple):
    max_running: int
    max_waiting: int
    max_per_client: int
    """Running and waiting together."""


class TicketState(Enum):
    ARRIVING = auto()
    """Has a place in the queue; its request body is still being received."""
    WAITING = auto()
    RUNNING = auto()
    EVICTED = auto()
    """Had a place in the queue and lost it to a client with fewer requests."""
    DONE = auto()


class Ticket:
    """The place of one admitted request."""

    __slots__ = ("client", "started_s", "state")

    def __init__(self, client: str) -> None:
        self.client = client
        self.state = TicketState.ARRIVING
        self.started_s = 0.0
        """When it began to run."""


class Admitted(NamedTuple):
    ticket: Ticket
    evicted: Ticket | None = None
    """The ticket that lost its place to this one."""


class QueueFull(NamedTuple):
    """Why a request is rejected, and when a retry is worth it."""

    retry_after_s: int
    occupied: int
    """Number of requests that fill the queue."""
    own_limit: bool
    """The client has reached its own limit; otherwise the queue is full."""


class FairQueue:
    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        self._by_client: dict[str, list[Ticket]] = {}
        """All tickets of each client: running ones first, then the others in the order of arrival."""
        self._size = 0
        self._ready: OrderedDict[str, deque[Ticket]] = OrderedDict()
        """Waiting tickets of each client; the client with the next turn comes first."""
        self._running = 0
        self._capacity = limits.max_running + limits.max_waiting
        self._prompt_retries = {
            own_limit: RetryBudget(share=_PROMPT_RETRY_SHARE, reserve=self._capacity) for own_limit in (True, False)
        }
        """One budget for clients over their own limit and one for the others: a flood of one client must not use up
        the short delays of clients that it keeps out."""
        self._mean_duration_s = 0.0

    @property
    def size(self) -> int:
        """Number of admitted requests that have not left."""
        return self._size

    @property
    def running(self) -> int:
        """Number of requests that have started and not left."""
        return self._running

    def enter(self, client: str) -> Admitted | QueueFull:
        """Admits a request, evicts another one for it, or rejects it.

        An admitted request counts from here on, before its body has arrived: otherwise slow senders would be unbounded.
        """
        for budget in self._prompt_retries.values():
            budget.earn()
        own = self._count_of(client)
        if own >= self._limits.max_per_client:
            return self._queue_full(own, own_limit=True)
        evicted = None
        if self._size >= self._capacity:
            evicted = self._find_eviction(own)
            if evicted is None:
                return self._queue_full(self._size, own_limit=False)
            self._remove(evicted, TicketState.EVICTED)
        ticket = Ticket(client)
        self._by_client.setdefault(client, []).append(ticket)
        self._size += 1
        return Admitted(ticket, evicted)

    def eviction_notice(self, ticket: Ticket) -> QueueFull:
        """The rejection that an evicted request is answered with."""
        return self._queue_full(self._count_of(ticket.client), own_limit=True)

    def mark_ready(self, ticket: Ticket) -> None:
        """The request has arrived completely and waits for its turn."""
        ticket.state = TicketState.WAITING
        self._ready.setdefault(ticket.client, deque()).append(ticket)

    def start_next(self, now: float) -> list[Ticket]:
        """Starts as many tickets as may run: one of each client in turn."""
        started: list[Ticket] = []
        while self._ready and self._running < self._limits.max_running:
            client, queue = self._ready.popitem(last=False)
            ticket = queue.popleft()
            if queue:
                # Back to the end: every other client has its turn first.
                self._ready[client] = queue
            ticket.state, ticket.started_s = TicketState.RUNNING, now
            self._by_client[client].remove(ticket)
            self._by_client[client].insert(0, ticket)
            self._running += 1
            started.append(ticket)
        return started

    def leave(self, ticket: Ticket, now: float) -> None:
        """Ends a ticket, in whichever state it is; a second call does nothing."""
        if ticket.state is TicketState.RUNNING:
            self._running -= 1
            duration = now - ticket.started_s
            weight = _DURATION_SMOOTHING if self._mean_duration_s else 1
            self._mean_duration_s += (duration - self._mean_duration_s) * weight
        if ticket.state not in {TicketState.EVICTED, TicketState.DONE}:
            self._remove(ticket, TicketState.DONE)

    def _count_of(self, client: str) -> int:
        return len(self._by_client.get(client, ()))

    def _find_eviction(self, own: int) -> Ticket | None:
        """The newest waiting request of the client with most requests.

        None if no client would still have more than the new request's client, which has `own` requests: evicting would
        then only trade places.
        """
        with_waiting = (each for each in self._by_client.values() if each[-1].state is not TicketState.RUNNING)
        longest = max(with_waiting, key=len, default=None)
        return longest[-1] if longest and len(longest) > own + 1 else None

    def _remove(self, ticket: Ticket, state: TicketState) -> None:
        if ticket.state is TicketState.WAITING:
            queue = self._ready[ticket.client]
            queue.remove(ticket)
            if not queue:
                del self._ready[ticket.client]
        own = self._by_client[ticket.client]
        own.remove(ticket)
        if not own:
            del self._by_client[ticket.client]
        self._size -= 1
        ticket.state = state

    def _queue_full(self, occupied: int, *, own_limit: bool) -> QueueFull:
        # The other clients have their turns between any two of this one.
        ahead = occupied * len(self._by_client) if own_limit else occupied
        return QueueFull(self._retry_after_s(ahead, own_limit=own_limit), occupied, own_limit)

    def _retry_after_s(self, ahead: int, *, own_limit: bool) -> int:
        """Time until `ahead` requests have run, at least one more of them."""
        if not self._prompt_retries[own_limit].spend():
            return MAX_RETRY_AFTER_S
        rounds = max(1.0, ahead / self._limits.max_running)
        return max(1, min(MAX_RETRY_AFTER_S, math.ceil(rounds * self._mean_duration_s)))
