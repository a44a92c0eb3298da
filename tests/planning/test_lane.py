"""Whoever waits has their turn; nobody waits for nothing; and who is sent away is told when to come back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pincompute.planning.lane import LONGEST, Bounds, Full, Lane, Room, State, Ticket

CLIENTS = st.sampled_from("abcd")
BOUNDS = Bounds(at_work=2, waiting=6, of_one=4)


class Anything(RuleBasedStateMachine):
    """Whatever comes, in whichever order."""

    def __init__(self) -> None:
        super().__init__()
        self.lane = Lane(BOUNDS)
        self.there: list[Ticket] = []
        self.passed_over: dict[str, set[str]] = {}
        """By client that waits: who had a turn since it had one itself, or began to wait."""

    @rule(client=CLIENTS)
    def comes(self, client: str) -> None:
        own, full = self.count(client), len(self.there) == BOUNDS.at_work + BOUNDS.waiting
        waits = {each.client for each in self.there if each.state is not State.AT_WORK}
        most = max((self.count(each) for each in waits), default=0)
        found = self.lane.come(client)
        if isinstance(found, Full):
            assert found.seconds >= 1
            assert own == BOUNDS.of_one if found.own else full
            assert found.own or most <= own + 1, "somebody was turned away who had less than another has waiting"
            return
        assert own < BOUNDS.of_one
        assert bool(found.instead) == full
        if out := found.instead:
            assert self.count(out.client) == most > own + 1
            assert out.state is State.OUT
            assert self.lane.out(out).there == most - 1
            self.there.remove(out)
            self.lane.leave(out, 1.0)
            self.begins()
        self.there.append(found.ticket)

    def count(self, client: str) -> int:
        return sum(each.client == client for each in self.there)

    @rule(which=st.integers(0, 20))
    def is_ready(self, which: int) -> None:
        coming = [each for each in self.there if each.state is State.COMING]
        if coming:
            ticket = coming[which % len(coming)]
            self.lane.ready(ticket)
            self.passed_over.setdefault(ticket.client, set())
            self.begins()

    @rule(which=st.integers(0, 20))
    def leaves(self, which: int) -> None:
        if self.there:
            ticket = self.there.pop(which % len(self.there))
            self.lane.leave(ticket, 1.0)
            self.lane.leave(ticket, 1.0)
            self.begins()

    def begins(self) -> None:
        for begun in self.lane.begin(0.0):
            self.passed_over.pop(begun.client)
            for others in self.passed_over.values():
                assert begun.client not in others, "somebody has had two turns while another waited"
                others.add(begun.client)
            if any(each.client == begun.client for each in self.of(State.WAITING)):
                self.passed_over[begun.client] = set()
        waiting = {each.client for each in self.of(State.WAITING)}
        self.passed_over = {each: others for each, others in self.passed_over.items() if each in waiting}

    def of(self, state: State) -> list[Ticket]:
        return [each for each in self.there if each.state is state]

    @invariant()
    def no_more_at_work_than_may_be_and_no_place_is_free_while_somebody_waits(self) -> None:
        at_work = len(self.of(State.AT_WORK))
        assert at_work <= BOUNDS.at_work
        assert at_work == BOUNDS.at_work or not self.of(State.WAITING)
        assert self.lane.there == len(self.there) <= BOUNDS.at_work + BOUNDS.waiting


Anything.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestAnything = Anything.TestCase


@given(st.integers(1, 4), st.integers(0, 12), st.integers(1, 16), st.integers(1, 16), st.floats(0.01, 1.5))
def test_who_comes_back_as_late_as_they_were_told_finds_room(
    at_work: int, waiting: int, of_one: int, clients: int, took: float
) -> None:
    """Where everything takes as long as it did before, and nobody else came."""
    lane = Lane(Bounds(at_work, waiting, of_one))
    first = comes(lane, "a")
    lane.ready(first)
    lane.begin(0.0)
    lane.leave(first, took)
    now = took
    number = 0
    while isinstance(found := lane.come(client := str(number % clients)), Room):
        lane.ready(found.ticket)
        number += 1
    at = now + found.seconds
    working = lane.begin(now)
    while working and (ends := working[0].since + took) <= at:
        lane.leave(working.pop(0), ends)
        working += lane.begin(ends)
    comes(lane, client)


def comes(lane: Lane, client: str) -> Ticket:
    room = lane.come(client)
    assert isinstance(room, Room)
    return room.ticket


def test_a_flood_is_not_told_to_come_back_soon() -> None:
    """A tenth of it, and as many as there is room for: each of those who came knows only of itself."""
    lane = Lane(BOUNDS)
    found = [lane.come(str(number)) for number in range(1000)]
    told = [each.seconds for each in found if isinstance(each, Full)]
    assert len(told) == 1000 - BOUNDS.at_work - BOUNDS.waiting
    soon = [number for number, seconds in enumerate(told) if seconds < LONGEST]
    assert soon[:8] == list(range(8)), "a few more than there is room for are no flood"
    assert 90 <= len(soon) <= 110


def test_whom_the_flood_of_another_keeps_out_is_told_when_it_is_worth_coming_back() -> None:
    lane = Lane(Bounds(at_work=1, waiting=1, of_one=1))
    flood = [lane.come("a") for _ in range(1000)]
    assert isinstance(flood[-1], Full)
    assert (flood[-1].own, flood[-1].seconds) == (True, LONGEST)
    comes(lane, "b")
    kept_out = lane.come("c")
    assert isinstance(kept_out, Full)
    assert not kept_out.own
    assert kept_out.seconds < LONGEST


def test_what_was_begun_is_never_given_up_and_what_waits_makes_room_in_whichever_order_they_came() -> None:
    lane = Lane(Bounds(at_work=1, waiting=2, of_one=3))
    flood = [comes(lane, "flood") for _ in range(3)]
    lane.ready(flood[2])
    assert lane.begin(0.0) == [flood[2]]
    room = lane.come("ann")
    assert isinstance(room, Room)
    assert room.instead is flood[1]
    found = lane.come("ben")
    assert isinstance(found, Room)
    assert found.instead is flood[0]
    assert isinstance(lane.come("cay"), Full)
    assert flood[2].state is State.AT_WORK


def test_nobody_is_kept_in_mind_who_is_not_there() -> None:
    lane = Lane(BOUNDS)
    for number in range(100):
        ticket = comes(lane, str(number))
        lane.ready(ticket)
        if number % 2:
            lane.begin(0.0)
        lane.leave(ticket, 1.0)
    assert (lane.there, len(lane._there), len(lane._waiting)) == (0, 0, 0)  # noqa: SLF001
