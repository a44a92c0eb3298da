"""Decide: what becomes of what is asked, one at a time for each workload, and of a set all or nothing.

What it answers "yes" to is on disk, with the order to the platform beside it: nothing that was acknowledged is lost,
and what is sent again under its key is not done twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from pincompute.api.identity import Identity
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DESK_BUSY, SUBMISSION_UNKNOWN
from pincompute.planning.quotas.footprint import Place
from pincompute.planning.rights import Verb
from pincompute.submission import outbox, record
from pincompute.submission.accept import Proposal, accept, known, refuse
from pincompute.submission.carrier import Carrier
from pincompute.submission.database import Connection, Database
from pincompute.submission.outbox import Parcel
from pincompute.submission.platform import Away, Rendered
from pincompute.submission.policies import Policies
from pincompute.submission.queue import Busy
from pincompute.submission.record import BREAK_GLASS, DEPLOY, Kept, State, Submission, Vouched
from pincompute.submission.rights import Rights

MOST_WAITING = 5_000
"""Accepted, and not at their platform: what is accepted is never dropped, so that no more is accepted."""
CATCH_UP = 10
"""Seconds after which it may be less."""

Proposed = tuple[Rendered, Vouched | None]
"""What is to become of a workload, and who vouches for that."""
Propose = Callable[[Workload | None], Awaitable[Proposed]]
"""Of what it was accepted as before, and is on its way."""


class Ask(NamedTuple):
    """One of a set; mostly there is no other."""

    submission: Submission
    propose: Propose


class Sender(NamedTuple):
    """Who asks, and under which key the same may be asked again."""

    who: Identity
    key: str = ""
    waits: bool = True
    """For the platform to have it; on record it is in any case."""
    rests: Callable[[], object] = object
    """Told when nothing remains but to wait for that."""


class Before(NamedTuple):
    known: list[Kept]
    """The same, when it was sent before."""
    pending: list[Workload | None]
    """What each workload was last accepted as, where that is on its way."""
    waiting: int
    """How many are."""


_VERBS = {DEPLOY: Verb.DEPLOY, BREAK_GLASS: Verb.BREAK_GLASS, "delete": Verb.DELETE}
"""Whatever else is done to a workload changes it."""


class Decider:
    """Decides, records, and hands over to the carrier."""

    def __init__(self, database: Database, carrier: Carrier, rights: Rights, policies: Policies) -> None:
        self._database = database
        self._carrier = carrier
        self._rights = rights
        self._policies = policies
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def decided(self, asks: Sequence[Ask], sender: Sender, patience: float) -> list[Kept]:
        """Decided and on their way, whether or not who asked still listens; they wait so long for what comes of it."""
        for each in asks:
            # A document says itself to which project it is to go.
            await self._may(sender, each.submission.verb, each.submission.place)
        kept = await asyncio.shield(asyncio.ensure_future(self._decide(asks, sender)))
        if not sender.waits:
            return kept
        sender.rests()
        return list(await asyncio.gather(*(self._arrived(each, patience) for each in kept)))

    async def _arrived(self, kept: Kept, patience: float) -> Kept:
        if kept.state is not State.ACCEPTED:
            return kept
        await self._carrier.arrival(kept.id, patience)
        return await self.submission(kept.place.project, kept.id)

    async def _may(self, sender: Sender, verb: str, place: Place) -> None:
        await self._rights.demand(sender.who, _VERBS.get(verb, Verb.CHANGE), place.project, place.kind)

    async def _decide(self, asks: Sequence[Ask], sender: Sender) -> list[Kept]:
        """What was decided now, or of the same when it was sent before."""
        submissions = [each.submission for each in asks]
        async with self._turn({(each.place.project, each.place.name) for each in submissions}):
            before = await self._before(submissions)
            if before.known:
                return before.known
            if before.waiting >= MOST_WAITING:
                what = f"{before.waiting:,} that were accepted have not reached their cluster yet, and that is as many"
                raise Busy(Problem(DESK_BUSY, f"{what} as may be"), CATCH_UP)
            try:
                proposals, refused = await self._proposals(asks, before.pending, sender)
            except Refused:
                # That says nothing of what was asked; what was said of it before does.
                if said := await self._database.do(partial(known, submissions=submissions)):
                    return said
                raise
            if refused:
                return await self._database.do(partial(refuse, submissions=submissions, refused=refused))
            kept = await self._database.do(lambda connection: accept(connection, *proposals))
            for each, proposal in zip(kept, proposals, strict=True):
                if each.id == proposal.submission.id and each.state is State.ACCEPTED:
                    self._carrier.take(Parcel(proposal.submission, proposal.rendered.order))
            return kept

    async def _before(self, submissions: Sequence[Submission]) -> Before:
        """What the carrier knows is not asked of the record; that a key was used is found when it is accepted, too."""
        waiting = self._carrier.in_hand
        if waiting < MOST_WAITING and self._carrier.is_free_of(each.place for each in submissions):
            return Before([], [None] * len(submissions), waiting)
        return await self._database.do(partial(_before, submissions=submissions))

    async def _proposals(
        self, asks: Sequence[Ask], pending: Sequence[Workload | None], sender: Sender
    ) -> tuple[list[Proposal], dict[str, Refused]]:
        """What is to become of each; or why nothing will, by its id."""
        proposals: list[Proposal] = []
        refused: dict[str, Refused] = {}
        for ask, former in zip(asks, pending, strict=True):
            try:
                proposals.append(await self._proposed(ask, former, sender))
            except Away as away:
                raise Refused(away.problem) from away
            except Refused as why:
                if why.problems[0].reason.http >= 500:
                    raise
                refused[ask.submission.id] = why
        return proposals, refused

    @asynccontextmanager
    async def _turn(self, places: set[tuple[str, str]]) -> AsyncGenerator[None]:
        """Of workloads, by project and name: whoever waits for several takes them in one order."""
        async with AsyncExitStack() as turns:
            for each in sorted(places):
                await turns.enter_async_context(self._turns.setdefault(each, asyncio.Lock()))
            yield

    async def _proposed(self, ask: Ask, pending: Workload | None, sender: Sender) -> Proposal:
        rendered, vouched = await ask.propose(pending)
        # Of what kind it is was not known before.
        await self._may(sender, ask.submission.verb, rendered.place)
        await self._policies.demand(ask.submission.verb, rendered, sender.who, vouched)
        return Proposal(ask.submission._replace(place=rendered.place), rendered, vouched)

    async def submission(self, project: str, id_: str) -> Kept:
        found = await self._database.do(lambda connection: record.named(connection, project, id_))
        if found is None:
            what = f"there is no submission '{id_}' in the project {project}"
            raise Refused(Problem(SUBMISSION_UNKNOWN, what, Where(object=project)))
        return found


def _before(connection: Connection, submissions: Sequence[Submission]) -> Before:
    pending = [outbox.pending(connection, each.cluster, each.place.project, each.place.name) for each in submissions]
    return Before(known(connection, submissions), pending, outbox.on_their_way(connection, submissions[0].cluster))
