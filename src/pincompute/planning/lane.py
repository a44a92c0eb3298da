"""A lane: who is at work, who waits, and who is turned away. It is fair between clients, however many each sends, and
bounded in all and for each: where there is no room, who has most waiting makes some for whoever has less. Pure: what
time it is comes in."""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from enum import Enum, auto
from typing import NamedTuple

from pincompute.base.budget import Budget

LONGEST = 30
"""Seconds that somebody is sent away for, at most: nobody knows what is then."""
_AGAIN = 0.1
"""Of all that come, how many may be told to come back soon, beside as many as there is room for. Each of a thousand
commands knows only of itself; the rest are told a time for which no command waits, and their people know."""
_NEW = 0.2
"""How much what has just ended says of how long others will take."""


class Bounds(NamedTuple):
    at_work: int
    """At one time."""
    waiting: int
    """Beside them."""
    of_one: int
    """Client, at work and waiting."""


class State(Enum):
    COMING = auto()
    """It has room, and is not all there yet."""
    WAITING = auto()
    AT_WORK = auto()
    OUT = auto()
    """It had room, and had to make it for somebody else."""
    GONE = auto()


class Ticket:
    """One that was let in."""

    __slots__ = ("client", "since", "state")

    def __init__(self, client: str) -> None:
        self.client = client
        self.state = State.COMING
        self.since = 0.0
        """When its work began."""


class Room(NamedTuple):
    ticket: Ticket
    instead: Ticket | None = None
    """Which made this room, and is out."""


class Full(NamedTuple):
    """Why somebody is turned away, and when it is worth coming back."""

    seconds: int
    there: int
    own: bool
    """They are all from the same client."""


class Lane:
    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._there: dict[str, list[Ticket]] = {}
        """By client: those at work, and then the others as they came."""
        self._all = 0
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()
        """By client; whose turn is next comes first."""
        self._at_work = 0
        self._most = bounds.at_work + bounds.waiting
        self._soon = {own: Budget(share=_AGAIN, reserve=self._most) for own in (True, False)}
        """Whom one client's flood keeps out spends nothing of what it may spend itself."""
        self._took = 0.0
        """Seconds that work takes, of late."""

    @property
    def there(self) -> int:
        """All that were let in and have not left."""
        return self._all

    def come(self, client: str) -> Room | Full:
        """Room, before anything else is done for them: for those who are long in coming there is no more than that."""
        if full := self.full(client):
            return full
        self._came()
        instead = self._who_makes_room(self._own(client)) if self._all >= self._most else None
        if instead:
            self._remove(instead, State.OUT)
        ticket = Ticket(client)
        self._there.setdefault(client, []).append(ticket)
        self._all += 1
        return Room(ticket, instead)

    def full(self, client: str) -> Full | None:
        """Why there is no room for somebody who asks for it; nothing where they may come."""
        own = self._own(client)
        # The others have their turns meanwhile.
        of_one = own >= self._bounds.of_one
        if not of_one and (self._all < self._most or self._who_makes_room(own)):
            return None
        self._came()
        return self._full(own if of_one else self._all, own=of_one)

    def out(self, ticket: Ticket) -> Full:
        """What one is told that had to make room."""
        return self._full(self._own(ticket.client), own=True)

    def _own(self, client: str) -> int:
        return len(self._there.get(client, ()))

    def _came(self) -> None:
        for each in self._soon.values():
            each.earn()

    def _who_makes_room(self, own: int) -> Ticket | None:
        """For somebody who has so many: the last of whoever has most, and has more than they will. What was begun is
        never given up."""
        waiting = (each for each in self._there.values() if each[-1].state is not State.AT_WORK)
        most = max(waiting, key=len, default=None)
        return most[-1] if most and len(most) > own + 1 else None

    def ready(self, ticket: Ticket) -> None:
        """Nothing of it is missing: it waits for its turn."""
        ticket.state = State.WAITING
        self._waiting.setdefault(ticket.client, deque()).append(ticket)

    def begin(self, now: float) -> list[Ticket]:
        """Those whose turn it is: of each client one, and again from the first."""
        begun: list[Ticket] = []
        while self._waiting and self._at_work < self._bounds.at_work:
            client, queue = self._waiting.popitem(last=False)
            ticket = queue.popleft()
            if queue:
                self._waiting[client] = queue
            ticket.state, ticket.since = State.AT_WORK, now
            self._there[client].remove(ticket)
            self._there[client].insert(0, ticket)
            self._at_work += 1
            begun.append(ticket)
        return begun

    def leave(self, ticket: Ticket, now: float) -> None:
        """Its work is done, or it is not wanted any more; a second time is nothing."""
        if ticket.state is State.AT_WORK:
            self._at_work -= 1
            took = now - ticket.since
            self._took += (took - self._took) * (_NEW if self._took else 1)
        if ticket.state not in {State.OUT, State.GONE}:
            self._remove(ticket, State.GONE)

    def _remove(self, ticket: Ticket, now: State) -> None:
        if ticket.state is State.WAITING:
            queue = self._waiting[ticket.client]
            queue.remove(ticket)
            if not queue:
                del self._waiting[ticket.client]
        own = self._there[ticket.client]
        own.remove(ticket)
        if not own:
            del self._there[ticket.client]
        self._all -= 1
        ticket.state = now

    def _full(self, there: int, *, own: bool) -> Full:
        before = there * len(self._there) if own else there
        return Full(self._seconds(before, own=own), there, own)

    def _seconds(self, before: int, *, own: bool) -> int:
        """Until as many have been at work, and at least one more has."""
        if not self._soon[own].spend():
            return LONGEST
        rounds = max(1.0, before / self._bounds.at_work)
        return max(1, min(LONGEST, math.ceil(rounds * self._took)))
