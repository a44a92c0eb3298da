"""The quota under concurrent events: never exceeded, nearly used up on demand, and never leaked."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial

import pytest
import sqlalchemy as sql
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CLUSTER_REFUSED
from pincompute.desk.store import ledger, outbox
from pincompute.desk.store.database import Database, TransactionBody, open_database
from pincompute.desk.store.record import SubmissionRecord, SubmissionState
from pincompute.desk.store.tables import ledger as ledger_, sums
from pincompute.desk.transaction import Proposal, record_acceptance, record_refusals
from pincompute.planning.footprint import COUNTED_RESOURCES, EMPTY_FOOTPRINT
from pincompute.platforms.protocol import Delivery, ObservedUsage
from record_fixtures import (
    CLUSTER,
    NOW,
    MemoryRecord,
    RecordStore,
    accept_one,
    cores_footprint,
    new_submission,
    project_with_quota,
    rendered_workload,
    workload_key,
)

LIMIT = 20
NAMES = ("ant", "bee", "cat", "dog")
names = st.sampled_from(NAMES)


class Machine(RuleBasedStateMachine):
    """A cluster that carries out commands in order for each workload, and a watch that lags behind."""

    books: RecordStore
    by_hand = False

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.connection = self.stack.enter_context(self.books.begin())
        self.number = 0
        self.queues: dict[str, list[tuple[int, int | None]]] = {name: [] for name in NAMES}
        self.history: list[tuple[str, int | None]] = []
        """All writes in order: a revision is their number."""
        self.seen = 0
        self.owner = project_with_quota(pods=LIMIT)

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
        kept = accept_one(
            self.connection,
            new_submission(self.number, name),
            rendered_workload(self.owner, cores_footprint(size), name),
        )
        if kept.state is SubmissionState.ACCEPTED:
            self.queues[name].append((self.number, size))

    @rule(name=names)
    def deletes(self, name: str) -> None:
        self.number += 1
        accept_one(self.connection, new_submission(self.number, name), rendered_workload(self.owner, None, name))
        self.queues[name].append((self.number, None))

    @rule(name=names)
    def arrives(self, name: str) -> None:
        if self.queues[name]:
            number, size = self.queues[name].pop(0)
            self.history.append((name, size))
            written = len(self.history) if size is not None else 0
            outbox.record_delivery(self.connection, new_submission(number, name), NOW, Delivery(None, written))

    @rule(name=names)
    def is_refused_by_the_cluster(self, name: str) -> None:
        if self.queues[name]:
            number, _ = self.queues[name].pop(0)
            refused = Refused(Problem(CLUSTER_REFUSED, "no"))
            outbox.record_rejection(self.connection, new_submission(number, name), NOW, refused)

    @rule(steps=st.integers(1, 4))
    def something_is_seen(self, steps: int) -> None:
        before, self.seen = self.seen, min(len(self.history), self.seen + steps)
        self.look({name for name, _ in self.history[before : self.seen]})

    @rule()
    def ledger_sync_rechecks(self) -> None:
        self.look({each.name for each in ledger.unobserved_writes(self.connection, CLUSTER)})

    @rule(all_of_it=st.booleans())
    def a_desk_begins(self, all_of_it: bool) -> None:
        """A new leader has a complete cache; a former standby may lag behind."""
        self.seen = len(self.history) if all_of_it else self.seen
        there = self.cluster(self.seen)
        seen = [ObservedUsage(workload_key(each), cores_footprint(size), self.seen) for each, size in there.items()]
        ledger.resync(self.connection, CLUSTER, seen, {"PinterestService": self.seen})

    @precondition(lambda self: self.by_hand)
    @rule(name=names, size=st.one_of(st.none(), st.integers(0, 40)))
    def somebody_goes_past_the_desk(self, name: str, size: int | None) -> None:
        self.history.append((name, size))

    def look(self, names: set[str]) -> None:
        view = self.cluster(self.seen)
        sizes = {name: view.get(name) for name in sorted(names)}
        seen = [
            ObservedUsage(workload_key(each), None if size is None else cores_footprint(size), self.seen)
            for each, size in sizes.items()
        ]
        ledger.apply_observed(self.connection, CLUSTER, seen)

    @invariant()
    def never_over(self) -> None:
        """Neither now, nor after undelivered commands, in any order of arrival."""
        there = self.cluster()
        may = {name: max([there.get(name, 0), *(size or 0 for _, size in self.queues[name])]) for name in NAMES}
        if not self.by_hand:
            assert sum(may.values()) <= LIMIT
        held = ledger.held_by_workload(self.connection, CLUSTER, "ads", "on-demand")
        for name in NAMES:
            own, others = ledger.own_and_other_usage(self.connection, CLUSTER, workload_key(name), "on-demand")
            assert own.pods == held.get(("PinterestService", name), EMPTY_FOOTPRINT).pods
            assert own.cpu + others.cpu >= sum(each.cpu for each in held.values())
        if self.seen == len(self.history):
            assert sum(each.pods for each in held.values()) >= sum(may.values())

    @invariant()
    def the_sums_are_those_of_the_ledger(self) -> None:
        """The sums of the triggers equal the sums of the rows."""
        kept = self.connection.execute(sums.select()).all()
        of = (ledger_.c.cluster, ledger_.c.project, ledger_.c.tier)
        counted = sql.select(*of, *(sql.func.sum(ledger_.c[each]) for each in COUNTED_RESOURCES)).group_by(*of)
        assert {row for row in map(tuple, kept) if any(row[3:])} == {
            row for row in map(tuple, self.connection.execute(counted)) if any(row[3:])
        }

    def teardown(self) -> None:
        for name in NAMES:
            while self.queues[name]:
                self.arrives(name)
        self.something_is_seen(len(self.history))
        self.ledger_sync_rechecks()
        held = ledger.held_by_workload(self.connection, CLUSTER, "ads", "on-demand")
        assert {name: each.pods for (_, name), each in held.items()} == self.cluster()
        self.stack.close()


class ByHand(Machine):
    by_hand = True


@pytest.mark.parametrize("machine", [Machine, ByHand])
def test_quota_invariants_hold_in_any_order(machine: type[Machine], record: RecordStore) -> None:
    machine.books = record
    # Fewer examples on PostgreSQL, where each step is a round trip.
    profile = settings() if isinstance(record, MemoryRecord) else settings(max_examples=10)
    run_state_machine_as_test(machine, settings=settings(profile, deadline=None, stateful_step_count=15))


async def test_concurrent_acceptances_fit_the_quota(where: str) -> None:
    """Four desks with one database."""
    desks = [await open_database(where) for _ in range(4)]
    owner = project_with_quota(pods=1000)
    sizes = [1 + number * 7 % 13 for number in range(240)]

    async def submit_once(desk: Database, number: int, size: int) -> int:
        name = f"w{number}"
        work = partial(
            accept_one,
            asked=new_submission(number, name),
            proposed=rendered_workload(owner, cores_footprint(size), name),
        )
        return size if (await desk.transact(work)).state is SubmissionState.ACCEPTED else 0

    taken = await asyncio.gather(*(submit_once(desks[each % 4], each, size) for each, size in enumerate(sizes)))
    for desk in desks:
        await desk.close()
    assert sum(sizes) > 1500
    assert 990 <= sum(taken) <= 1000


async def test_concurrent_repeats_are_recorded_once(where: str) -> None:
    """Under one key at four desks, valid or invalid."""
    desks = [await open_database(where) for _ in range(4)]
    told = Refused(Problem(CLUSTER_REFUSED, "no"))

    def fine(number: int) -> TransactionBody[SubmissionRecord]:
        return partial(
            accept_one, asked=new_submission(number, key="a"), proposed=rendered_workload(None, cores_footprint(1))
        )

    def wrong(number: int) -> TransactionBody[SubmissionRecord]:
        return lambda connection: record_refusals(connection, [new_submission(number, key="b")], {f"s-{number}": told})[
            0
        ]

    for work in (fine, wrong):
        first = 100 if work is wrong else 0
        kept = await asyncio.gather(*(desks[each % 4].transact(work(first + each)) for each in range(40)))
        assert len({each.id for each in kept}) == 1
    for desk in desks:
        await desk.close()


async def test_sets_and_usage_updates_of_several_tiers_do_not_deadlock(where: str) -> None:
    """Each updates sums of one project, in different orders."""
    desks = [await open_database(where) for _ in range(4)]
    tiers = ("on-demand", "preemptible")

    def asked(number: int) -> TransactionBody[object]:
        names = [
            (f"w{number}-{each}", cores_footprint(1, tier))
            for each, tier in enumerate(tiers[:: 1 if number % 2 else -1])
        ]
        proposals = [
            Proposal(new_submission(100 * number + each, name), rendered_workload(None, size, name))
            for each, (name, size) in enumerate(names)
        ]
        sight = [ObservedUsage(workload_key(name), size, 1) for name, size in reversed(names)]
        if number % 4 < 2:
            return lambda connection: record_acceptance(connection, *proposals)
        return lambda connection: ledger.apply_observed(connection, CLUSTER, sight)

    await asyncio.gather(*(desks[each % 4].transact(asked(each)) for each in range(80)))
    for desk in desks:
        await desk.close()
