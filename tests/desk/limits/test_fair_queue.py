"""The fair queue serves clients in turn, keeps its limits, and says when a retry is worth it."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pincompute.desk.limits.fair_queue import (
    MAX_RETRY_AFTER_S,
    Admitted,
    FairQueue,
    QueueFull,
    QueueLimits,
    Ticket,
    TicketState,
)

CLIENTS = st.sampled_from("abcd")
LIMITS = QueueLimits(max_running=2, max_waiting=6, max_per_client=4)
CAPACITY = LIMITS.max_running + LIMITS.max_waiting


class FairQueueMachine(RuleBasedStateMachine):
    """Requests that arrive, become ready and leave in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = FairQueue(LIMITS)
        self.tickets: list[Ticket] = []
        self.served_meanwhile: dict[str, set[str]] = {}
        """For each waiting client: the clients that had a turn since its own last one, or since it began to wait."""

    @rule(client=CLIENTS)
    def request_arrives(self, client: str) -> None:
        own, full = self.count(client), len(self.tickets) == CAPACITY
        waiting = {each.client for each in self.tickets if each.state is not TicketState.RUNNING}
        largest = max((self.count(each) for each in waiting), default=0)
        found = self.queue.enter(client)
        if isinstance(found, QueueFull):
            assert found.retry_after_s >= 1
            assert own == LIMITS.max_per_client if found.own_limit else full
            assert found.own_limit or largest <= own + 1, "rejected a client with fewer requests than another"
            return
        assert own < LIMITS.max_per_client
        assert bool(found.evicted) == full
        if evicted := found.evicted:
            assert self.count(evicted.client) == largest > own + 1
            assert evicted.state is TicketState.EVICTED
            assert self.queue.eviction_notice(evicted).occupied == largest - 1
            self.tickets.remove(evicted)
            self.queue.leave(evicted, 1.0)
            self.start_next()
        self.tickets.append(found.ticket)

    def count(self, client: str) -> int:
        return sum(each.client == client for each in self.tickets)

    @rule(index=st.integers(0, 20))
    def request_is_ready(self, index: int) -> None:
        arriving = self.in_state(TicketState.ARRIVING)
        if arriving:
            ticket = arriving[index % len(arriving)]
            self.queue.mark_ready(ticket)
            self.served_meanwhile.setdefault(ticket.client, set())
            self.start_next()

    @rule(index=st.integers(0, 20))
    def request_leaves(self, index: int) -> None:
        if self.tickets:
            ticket = self.tickets.pop(index % len(self.tickets))
            self.queue.leave(ticket, 1.0)
            self.queue.leave(ticket, 1.0)
            self.start_next()

    def start_next(self) -> None:
        for started in self.queue.start_next(0.0):
            self.served_meanwhile.pop(started.client)
            for served in self.served_meanwhile.values():
                assert started.client not in served, "a client had two turns while another waited"
                served.add(started.client)
            if any(each.client == started.client for each in self.in_state(TicketState.WAITING)):
                self.served_meanwhile[started.client] = set()
        waiting = {each.client for each in self.in_state(TicketState.WAITING)}
        self.served_meanwhile = {
            client: served for client, served in self.served_meanwhile.items() if client in waiting
        }

    def in_state(self, state: TicketState) -> list[Ticket]:
        return [each for each in self.tickets if each.state is state]

    @invariant()
    def limits_hold_and_no_slot_is_free_while_a_request_waits(self) -> None:
        running = len(self.in_state(TicketState.RUNNING))
        assert running <= LIMITS.max_running
        assert running == LIMITS.max_running or not self.in_state(TicketState.WAITING)
        assert self.queue.size == len(self.tickets) <= CAPACITY


FairQueueMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestFairQueue = FairQueueMachine.TestCase


@given(st.integers(1, 4), st.integers(0, 12), st.integers(1, 16), st.integers(1, 16), st.floats(0.01, 1.5))
def test_retry_after_the_told_delay_is_admitted(
    max_running: int, max_waiting: int, max_per_client: int, clients: int, duration_s: float
) -> None:
    """If every request takes as long as those before, and no other client sends one."""
    queue = FairQueue(QueueLimits(max_running, max_waiting, max_per_client))
    first = admit(queue, "a")
    queue.mark_ready(first)
    queue.start_next(0.0)
    queue.leave(first, duration_s)
    now = duration_s
    number = 0
    while isinstance(found := queue.enter(client := str(number % clients)), Admitted):
        queue.mark_ready(found.ticket)
        number += 1
    retry_at = now + found.retry_after_s
    running = queue.start_next(now)
    while running and (ends_at := running[0].started_s + duration_s) <= retry_at:
        queue.leave(running.pop(0), ends_at)
        running += queue.start_next(ends_at)
    admit(queue, client)


def admit(queue: FairQueue, client: str) -> Ticket:
    found = queue.enter(client)
    assert isinstance(found, Admitted)
    return found.ticket


def test_flood_is_told_the_maximum_delay() -> None:
    """Except a tenth of its requests, and as many as the queue holds: a client knows only of its own requests."""
    queue = FairQueue(LIMITS)
    found = [queue.enter(str(number)) for number in range(1000)]
    delays = [each.retry_after_s for each in found if isinstance(each, QueueFull)]
    assert len(delays) == 1000 - CAPACITY
    prompt = [number for number, delay in enumerate(delays) if delay < MAX_RETRY_AFTER_S]
    assert prompt[:8] == list(range(8)), "a few requests more than the queue holds are no flood"
    assert 90 <= len(prompt) <= 110


def test_client_kept_out_by_the_flood_of_another_is_told_a_short_delay() -> None:
    queue = FairQueue(QueueLimits(max_running=1, max_waiting=1, max_per_client=1))
    flood = [queue.enter("a") for _ in range(1000)]
    assert isinstance(flood[-1], QueueFull)
    assert (flood[-1].own_limit, flood[-1].retry_after_s) == (True, MAX_RETRY_AFTER_S)
    admit(queue, "b")
    rejected = queue.enter("c")
    assert isinstance(rejected, QueueFull)
    assert not rejected.own_limit
    assert rejected.retry_after_s < MAX_RETRY_AFTER_S


def test_running_requests_are_never_evicted_and_arriving_ones_are() -> None:
    queue = FairQueue(QueueLimits(max_running=1, max_waiting=2, max_per_client=3))
    flood = [admit(queue, "flood") for _ in range(3)]
    queue.mark_ready(flood[2])
    assert queue.start_next(0.0) == [flood[2]]
    for client, evicted in (("ann", flood[1]), ("ben", flood[0])):
        found = queue.enter(client)
        assert isinstance(found, Admitted)
        assert found.evicted is evicted
    assert isinstance(queue.enter("cay"), QueueFull)
    assert flood[2].state is TicketState.RUNNING


def test_clients_that_left_take_no_memory() -> None:
    queue = FairQueue(LIMITS)
    for number in range(100):
        ticket = admit(queue, str(number))
        queue.mark_ready(ticket)
        if number % 2:
            queue.start_next(0.0)
        queue.leave(ticket, 1.0)
    assert (queue.size, len(queue._by_client), len(queue._ready)) == (0, 0, 0)  # noqa: SLF001
