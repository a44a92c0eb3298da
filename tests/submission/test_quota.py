"""The quota under everything at once: never over, nearly used up when more is asked for, and nothing leaks."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial

import pytest
import sqlalchemy as sql
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from books import CLUSTER, NOW, Books, Memory, cores, one, place, project, rendered, submission
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_REFUSED
from pincompute.planning.quotas.footprint import COUNTED, NOTHING
from pincompute.submission import ledger, outbox
from pincompute.submission.accept import Proposal, accept, refuse
from pincompute.submission.database import Database, Work, open_database
from pincompute.submission.platform import Delivered, Seen
from pincompute.submission.record import Kept, State
from pincompute.submission.tables import ledger as ledger_
from pincompute.submission.tables import sums

LIMIT = 20
NAMES = ("ant", "bee", "cat", "dog")
names = st.sampled_from(NAMES)


class Machine(RuleBasedStateMachine):
    """A cluster that takes what it is told in order for each workload, and a view of it that lags behind."""

    books: Books
    by_hand = False

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.connection = self.stack.enter_context(self.books.begin())
        self.number = 0
        self.queues: dict[str, list[tuple[int, int | None]]] = {name: [] for name in NAMES}
        self.history: list[tuple[str, int | None]] = []
        """What was written, one after the other: the revision is how much of it there is."""
        self.seen = 0
        self.owner = project(pods=LIMIT)

    def cluster(self, revision: int | None = None) -> dict[str, int]:
        there: dict[str, int] = {}
        for name, size in self.history[:revision]:
            there.pop(name, None)
            if size is not None:
                there[name] = size
        return there

    @rule(name=names, size=st.integers(0, 12))
    def submits(self, name: str, size: int) -> None:
        self.number += 1
        kept = one(self.connection, submission(self.number, name), rendered(self.owner, cores(size), name))
        if kept.state is State.ACCEPTED:
            self.queues[name].append((self.number, size))

    @rule(name=names)
    def deletes(self, name: str) -> None:
        self.number += 1
        one(self.connection, submission(self.number, name), rendered(self.owner, None, name))
        self.queues[name].append((self.number, None))

    @rule(name=names)
    def arrives(self, name: str) -> None:
        if self.queues[name]:
            number, size = self.queues[name].pop(0)
            self.history.append((name, size))
            written = len(self.history) if size is not None else 0
            outbox.delivered(self.connection, submission(number, name), NOW, Delivered(None, written))

    @rule(name=names)
    def is_refused_by_the_cluster(self, name: str) -> None:
        if self.queues[name]:
            number, _ = self.queues[name].pop(0)
            refused = Refused(Problem(CLUSTER_REFUSED, "no"))
            outbox.returned(self.connection, submission(number, name), NOW, refused)

    @rule(steps=st.integers(1, 4))
    def something_is_seen(self, steps: int) -> None:
        before, self.seen = self.seen, min(len(self.history), self.seen + steps)
        self.look({name for name, _ in self.history[before : self.seen]})

    @rule()
    def the_bookkeeper_looks_again(self) -> None:
        self.look({each.name for each in ledger.unsettled(self.connection, CLUSTER)})

    @rule(all_of_it=st.booleans())
    def a_desk_begins(self, all_of_it: bool) -> None:
        """A new one has seen all; one that waited for its turn may lag behind."""
        self.seen = len(self.history) if all_of_it else self.seen
        there = self.cluster(self.seen)
        seen = [Seen(place(each), cores(size), self.seen) for each, size in there.items()]
        ledger.restore(self.connection, CLUSTER, seen, {"PinterestService": self.seen})

    @precondition(lambda self: self.by_hand)
    @rule(name=names, size=st.one_of(st.none(), st.integers(0, 40)))
    def somebody_goes_past_the_desk(self, name: str, size: int | None) -> None:
        self.history.append((name, size))

    def look(self, names: set[str]) -> None:
        view = self.cluster(self.seen)
        sizes = {name: view.get(name) for name in sorted(names)}
        seen = [Seen(place(each), None if size is None else cores(size), self.seen) for each, size in sizes.items()]
        ledger.settle(self.connection, CLUSTER, seen)

    @invariant()
    def never_over(self) -> None:
        """Neither now, nor by anything that is on its way, in whichever order it arrives."""
        there = self.cluster()
        may = {name: max([there.get(name, 0), *(size or 0 for _, size in self.queues[name])]) for name in NAMES}
        if not self.by_hand:
            assert sum(may.values()) <= LIMIT
        held = ledger.held(self.connection, CLUSTER, "ads", "on-demand")
        for name in NAMES:
            own, others = ledger.taken(self.connection, CLUSTER, place(name), "on-demand")
            assert own.pods == held.get(("PinterestService", name), NOTHING).pods
            assert own.cpu + others.cpu >= sum(each.cpu for each in held.values())
        if self.seen == len(self.history):
            assert sum(each.pods for each in held.values()) >= sum(may.values())

    @invariant()
    def the_sums_are_those_of_the_ledger(self) -> None:
        """As the database keeps them, and as they are counted."""
        kept = self.connection.execute(sums.select()).all()
        of = (ledger_.c.cluster, ledger_.c.project, ledger_.c.tier)
        counted = sql.select(*of, *(sql.func.sum(ledger_.c[each]) for each in COUNTED)).group_by(*of)
        assert {row for row in map(tuple, kept) if any(row[3:])} == {
            row for row in map(tuple, self.connection.execute(counted)) if any(row[3:])
        }

    def teardown(self) -> None:
        for name in NAMES:
            while self.queues[name]:
                self.arrives(name)
        self.something_is_seen(len(self.history))
        self.the_bookkeeper_looks_again()
        held = ledger.held(self.connection, CLUSTER, "ads", "on-demand")
        assert {name: each.pods for (_, name), each in held.items()} == self.cluster()
        self.stack.close()


class ByHand(Machine):
    by_hand = True


@pytest.mark.parametrize("machine", [Machine, ByHand])
def test_whatever_happens_in_whichever_order(machine: type[Machine], record: Books) -> None:
    machine.books = record
    # What takes a way to another process is asked less often.
    profile = settings() if isinstance(record, Memory) else settings(max_examples=10)
    run_state_machine_as_test(machine, settings=settings(profile, deadline=None, stateful_step_count=15))


async def test_of_many_at_once_as_many_as_fit(where: str) -> None:
    """Four desks before one database."""
    desks = [await open_database(where) for _ in range(4)]
    owner = project(pods=1000)
    sizes = [1 + number * 7 % 13 for number in range(240)]

    async def ask(desk: Database, number: int, size: int) -> int:
        name = f"w{number}"
        work = partial(one, asked=submission(number, name), proposed=rendered(owner, cores(size), name))
        return size if (await desk.do(work)).state is State.ACCEPTED else 0

    taken = await asyncio.gather(*(ask(desks[each % 4], each, size) for each, size in enumerate(sizes)))
    for desk in desks:
        await desk.close()
    assert sum(sizes) > 1500
    assert 990 <= sum(taken) <= 1000


async def test_the_same_from_many_at_once_is_on_record_once(where: str) -> None:
    """Under one key, before four desks, be it fine or wrong."""
    desks = [await open_database(where) for _ in range(4)]
    told = Refused(Problem(CLUSTER_REFUSED, "no"))

    def fine(number: int) -> Work[Kept]:
        return partial(one, asked=submission(number, key="a"), proposed=rendered(None, cores(1)))

    def wrong(number: int) -> Work[Kept]:
        return lambda connection: refuse(connection, [submission(number, key="b")], {f"s-{number}": told})[0]

    for work in (fine, wrong):
        first = 100 if work is wrong else 0
        kept = await asyncio.gather(*(desks[each % 4].do(work(first + each)) for each in range(40)))
        assert len({each.id for each in kept}) == 1
    for desk in desks:
        await desk.close()


async def test_sets_and_sights_of_several_tiers_do_not_wait_for_each_other(where: str) -> None:
    """Each adds to sums of one project, in orders that cross."""
    desks = [await open_database(where) for _ in range(4)]
    tiers = ("on-demand", "preemptible")

    def asked(number: int) -> Work[object]:
        names = [(f"w{number}-{each}", cores(1, tier)) for each, tier in enumerate(tiers[:: 1 if number % 2 else -1])]
        proposals = [
            Proposal(submission(100 * number + each, name), rendered(None, size, name))
            for each, (name, size) in enumerate(names)
        ]
        sight = [Seen(place(name), size, 1) for name, size in reversed(names)]
        if number % 4 < 2:
            return lambda connection: accept(connection, *proposals)
        return lambda connection: ledger.settle(connection, CLUSTER, sight)

    await asyncio.gather(*(desks[each % 4].do(asked(each)) for each in range(80)))
    for desk in desks:
        await desk.close()
