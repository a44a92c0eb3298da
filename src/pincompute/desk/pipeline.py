"""The way of a submission through the desk, from the request to its delivery, in the order in which it happens.

`Pipeline.submit` is the whole of it; the other methods here are its steps, and `request` has the first, parsing. Every
request goes this way: deploys of a file, of a set of files or of a published build, changes and deletions. They differ
in what is rendered and in what of that must have been reviewed, which is the one `match` in
`checks.ItemChecker`.

Guarantees:

- An accepted submission is on disk together with the command for its platform before it is acknowledged: nothing that
  was acknowledged is lost.
- A request that is repeated under its idempotency key is not executed twice, and is answered as it was the first time.
- Submissions to one workload are decided one after the other, each on top of those that are accepted and not delivered.
- A set is accepted as a whole or not at all. All problems of all its documents are reported at once.
- Refused submissions are recorded, too, except where the desk could not decide (a 5xx problem): such a request may be
  repeated under the same key, and is then decided.
- A submission is carried out even if its client disconnects.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

from pincompute.admission.authorization import Permission
from pincompute.admission.infrastructure import INFRASTRUCTURE_KINDS
from pincompute.api.custom_resource import CustomResource
from pincompute.api.identity import Identity
from pincompute.api.project import Project
from pincompute.base.clock import Clock
from pincompute.base.ids import Ids
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DESK_BUSY, SUBMISSION_UNKNOWN
from pincompute.desk.authorization import Authorizer
from pincompute.desk.checks import CheckedItem, ItemChecker
from pincompute.desk.dispatcher import Dispatcher
from pincompute.desk.limits.long_texts import LongTexts
from pincompute.desk.limits.request_queue import Busy
from pincompute.desk.request import (
    CallContext,
    DeployDocuments,
    DeployInfrastructure,
    DeployProject,
    Item,
    PreviewedAction,
    Request,
    RequestParser,
)
from pincompute.desk.store import outbox, record
from pincompute.desk.store.database import Connection, Database
from pincompute.desk.store.outbox import OutboxEntry
from pincompute.desk.store.record import (
    BREAK_GLASS,
    DELETE,
    DEPLOY,
    Submission,
    SubmissionRecord,
    SubmissionState,
)
from pincompute.desk.transaction import Proposal, find_repeated, quota_problem, record_acceptance, record_refusals
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.protocol import PlatformUnavailable

MAX_UNDELIVERED = 5_000
"""Accepted submissions that may wait for delivery. Accepted work is never dropped, so beyond that none is accepted."""
BACKLOG_RETRY_AFTER_S = 10
MAX_QUICK_SUBMISSIONS = 8
"""Larger sets are recorded beside the event loop."""
DELIVERY_TIMEOUT_S = 2.0
"""How long a response waits for delivery. After that the client gets a receipt (202); the work is on disk already."""


class _Lookup(NamedTuple):
    """State in the database that concerns the submissions of a request."""

    repeated: list[SubmissionRecord]
    """The same submissions, if they were sent before under the same idempotency key."""
    pending: list[CustomResource | None]
    """For each item: the resource as last accepted, if that is not delivered yet."""
    undelivered: int
    """Number of accepted submissions of all workloads that are not delivered yet."""


class _Outcome(NamedTuple):
    """Result of the checks: a proposal for each item, or the refusals of some."""

    proposals: list[Proposal]
    refusals: dict[str, Refused]
    """By the id of the submission."""


class Pipeline:
    """Takes requests to their platform."""

    def __init__(  # noqa: PLR0913  (each is a step's collaborator)
        self,
        database: Database,
        dispatcher: Dispatcher,
        authorizer: Authorizer,
        checker: ItemChecker,
        *,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._platform = dispatcher.platform
        self._authorizer = authorizer
        self._checker = checker
        self._parser = RequestParser(clock, ids, self._platform.name)
        self.long_texts = LongTexts()
        self.outcome_counts: Counter[tuple[str, str]] = Counter()
        """Submissions since the start by outcome and reason, which is empty unless they were refused."""
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self.delivery_timeout_s = DELIVERY_TIMEOUT_S

    async def submit(self, request: Request, context: CallContext) -> list[SubmissionRecord]:
        """Takes a request all the way; returns one record for each of its workloads.

        It runs to its end even if the caller is cancelled. HTTP responses are made of the records by
        `http.responses.submission_response` and `set_response`.
        """
        return await asyncio.shield(asyncio.ensure_future(self._submit_counted(request, context)))

    @property
    def undelivered_count(self) -> int:
        """Accepted submissions that this desk, if it is the leader, has not delivered yet."""
        return self._dispatcher.pending_count

    async def _submit_counted(self, request: Request, context: CallContext) -> list[SubmissionRecord]:
        try:
            records = await self._submit(request, context)
        except Refused as refused:
            self.outcome_counts[_UNRECORDED, refused.problems[0].reason.code] += 1
            raise
        self.outcome_counts.update(_outcome_of(each) for each in records)
        return records

    async def _submit(self, request: Request, context: CallContext) -> list[SubmissionRecord]:
        # 1. Parse. A text that cannot be parsed becomes an item that is refused, so that it is recorded like any other.
        items = await self._parse(request, context)
        submissions = [item.submission for item in items]

        # 2. Authorize. A document may name another project than the URL does, so the middleware's check is not enough.
        for submission in submissions:
            await self._authorize(submission, submission.workload_key, context)

        # One submission at a time for each workload: the next one must see what this one has accepted.
        async with self._lock_workloads(submission.workload_key for submission in submissions):
            # 3. Look up the idempotency key, and what is accepted for these workloads and not delivered yet.
            lookup = await self._look_up(submissions)
            records = lookup.repeated
            if not records:
                _check_backlog(lookup.undelivered)
                try:
                    # 4. to 6. Render for the platform, check reviews and break-glass, check policies.
                    outcome = await self._check_items(items, lookup.pending, context)
                except Refused:
                    # The desk cannot decide now. It need not if the request is a repeated one: that has its answer.
                    records = await self._database.transact(partial(find_repeated, submissions=submissions))
                    if not records:
                        raise
                else:
                    # 7. Reserve quota and record, in one transaction; or record the refusals.
                    records = await self._record(submissions, outcome)
                    # 8. Dispatch.
                    self._dispatch(records, outcome.proposals)

        # 9. Wait for delivery. That is the platform's work, so the next request may run meanwhile.
        if not context.wait_for_delivery:
            return records
        context.release_slot()
        return list(await asyncio.gather(*(self._wait_delivered(each) for each in records)))

    # 1. Parse

    async def _parse(self, request: Request, context: CallContext) -> list[Item]:
        parse = partial(self._parser.parse, request, context)
        has_text = isinstance(request, DeployDocuments | DeployProject | DeployInfrastructure)
        return await self.long_texts.parse(request.text, parse) if has_text else parse()

    # 2. Authorize

    async def _authorize(self, submission: Submission, key: WorkloadKey, context: CallContext) -> None:
        permission = _permission_for(submission.verb, key.kind)
        await self._authorizer.authorize(context.caller, permission, key.project, key.kind)

    @asynccontextmanager
    async def _lock_workloads(self, keys: Iterable[WorkloadKey]) -> AsyncGenerator[None]:
        """Locks workloads by project and name. Sorted, so that two sets never wait for each other."""
        async with AsyncExitStack() as stack:
            for name in sorted({(key.project, key.name) for key in keys}):
                await stack.enter_async_context(self._locks.setdefault(name, asyncio.Lock()))
            yield

    # 3. Look up

    async def _look_up(self, submissions: Sequence[Submission]) -> _Lookup:
        """Saves the query if the dispatcher knows that nothing is pending.

        The idempotency key is looked up again when the submission is recorded, so nothing is missed by that.
        """
        undelivered = self._dispatcher.pending_count
        keys = [submission.workload_key for submission in submissions]
        if undelivered < MAX_UNDELIVERED and self._dispatcher.nothing_pending_for(keys):
            return _Lookup([], [None] * len(submissions), undelivered)
        slow = len(submissions) > MAX_QUICK_SUBMISSIONS
        return await self._database.transact(partial(_read_lookup, submissions=submissions), slow=slow)

    # 4. to 6. Render, review, policies

    async def _check_items(
        self, items: Sequence[Item], pending: Sequence[CustomResource | None], context: CallContext
    ) -> _Outcome:
        """Checks every item, so that all problems of a set are reported at once.

        Raises Refused where the desk cannot decide now: the platform, the artifact store or the repository is
        unavailable. Nothing is recorded then.
        """
        proposals: list[Proposal] = []
        refusals: dict[str, Refused] = {}
        for item, pending_workload in zip(items, pending, strict=True):
            # Nothing below need suspend, and a set has hundreds of items.
            await asyncio.sleep(0)
            try:
                proposals.append(await self._check_item(item, pending_workload, context))
            except PlatformUnavailable as unavailable:
                raise Refused(unavailable.problem) from unavailable
            except Refused as refused:
                if refused.problems[0].reason.http_status >= 500:
                    raise
                refusals[item.submission.id] = refused
        return _Outcome(proposals, refusals)

    async def _check_item(self, item: Item, pending: CustomResource | None, context: CallContext) -> Proposal:
        checked = await self._checker.check(item, pending, context.caller)
        rendered = checked.rendered
        # Authorized again, as the kind is known only now: members may not deploy every kind.
        await self._authorize(item.submission, rendered.workload_key, context)
        if checked.problems:
            # With the quota's problem, so that all of them are fixed at once.
            shortage = partial(quota_problem, cluster=self._platform.name, rendered=rendered, caller=context.caller)
            raise Refused(*checked.problems, *filter(None, (await self._database.transact(shortage),)))
        reason = checked.audit_reason or item.submission.audit_reason
        submission = item.submission._replace(workload_key=rendered.workload_key, audit_reason=reason)
        return Proposal(submission, rendered, checked.verified_build, context.caller)

    async def preview(
        self,
        deploys: Sequence[tuple[WorkloadKey, PreviewedAction]],
        context: CallContext,
    ) -> list[CheckedItem | Refused]:
        """Checks deploys and changes as `submit` does, and records nothing: with all problems but those of the quota.

        Refused stands for what cannot be rendered. Raises Refused where the desk cannot decide now.
        """
        items = [self._parser.preview_item(key, action, context) for key, action in deploys]
        lookup = await self._look_up([item.submission for item in items]) if items else _Lookup([], [], 0)
        found: list[CheckedItem | Refused] = []
        for item, pending in zip(items, lookup.pending, strict=True):
            await asyncio.sleep(0)
            try:
                found.append(await self._preview_item(item, pending, context.caller))
            except PlatformUnavailable as unavailable:
                raise Refused(unavailable.problem) from unavailable
            except Refused as refused:
                if refused.problems[0].reason.http_status >= 500:
                    raise
                found.append(refused)
        return found

    async def _preview_item(self, item: Item, pending: CustomResource | None, caller: Identity) -> CheckedItem:
        checked = await self._checker.check(item, pending, caller)
        key = checked.rendered.workload_key
        permission = _permission_for(item.submission.verb, key.kind)
        denied = await self._authorizer.find_problem(caller, permission, key.project, key.kind)
        return checked._replace(problems=(denied, *checked.problems)) if denied else checked

    # 7. Record

    async def _record(self, submissions: Sequence[Submission], outcome: _Outcome) -> list[SubmissionRecord]:
        # Each submission takes a millisecond of statements.
        slow = len(submissions) > MAX_QUICK_SUBMISSIONS
        if outcome.refusals:
            refusals = partial(record_refusals, submissions=submissions, refused=outcome.refusals)
            return await self._database.transact(refusals, slow=slow)
        accept = partial(_record_acceptance, proposals=outcome.proposals)
        return await self._database.transact(accept, slow=slow)

    # 8. Dispatch

    def _dispatch(self, records: Sequence[SubmissionRecord], proposals: Sequence[Proposal]) -> None:
        """Hands what was accepted now to the dispatcher; a repeated submission has another id, and is under way."""
        accepted = {each.id for each in records if each.state is SubmissionState.ACCEPTED}
        for proposal in proposals:
            if proposal.submission.id in accepted:
                self._dispatcher.dispatch(OutboxEntry(proposal.submission, proposal.rendered.command))

    # 9. Wait for delivery

    async def _wait_delivered(self, submitted: SubmissionRecord) -> SubmissionRecord:
        """The record after its delivery, or after the timeout as it is by then."""
        if submitted.state is not SubmissionState.ACCEPTED:
            return submitted
        await self._dispatcher.wait_delivered(submitted.id, self.delivery_timeout_s)
        return await self.find_submission(submitted.workload_key.project, submitted.id)

    async def find_submission(self, project: str, id_: str) -> SubmissionRecord:
        found = await self._database.transact(lambda connection: record.find_by_id(connection, project, id_))
        if found is None:
            what = f"there is no submission '{id_}' in project {project}"
            raise Refused(Problem(SUBMISSION_UNKNOWN, what, Where(object=project)))
        return found


_PERMISSIONS = {DEPLOY: Permission.DEPLOY, BREAK_GLASS: Permission.BREAK_GLASS, DELETE: Permission.DELETE}
"""By verb. Every other verb is the name of a change."""
_UNRECORDED = "unrecorded"
"""Outcome of a request without permission, or that the desk could not decide."""
_PROJECT_PERMISSIONS = {DEPLOY: Permission.CONFIGURE, DELETE: Permission.ADMINISTER}


def _permission_for(verb: str, kind: str) -> Permission:
    if kind in INFRASTRUCTURE_KINDS:
        return Permission.ADMINISTER
    permissions = _PROJECT_PERMISSIONS if kind == Project.__name__ else _PERMISSIONS
    return permissions.get(verb, Permission.CHANGE)


def _outcome_of(record: SubmissionRecord) -> tuple[str, str]:
    return record.state, record.decisions[-1].rule if record.state is SubmissionState.REFUSED else ""


def _read_lookup(connection: Connection, submissions: Sequence[Submission]) -> _Lookup:
    pending = [outbox.pending_resource(connection, each.cluster, each.workload_key) for each in submissions]
    repeated = find_repeated(connection, submissions)
    return _Lookup(repeated, pending, outbox.count_undelivered(connection, submissions[0].cluster))


def _record_acceptance(connection: Connection, proposals: Sequence[Proposal]) -> list[SubmissionRecord]:
    return record_acceptance(connection, *proposals)


def _check_backlog(undelivered: int) -> None:
    if undelivered < MAX_UNDELIVERED:
        return
    what = f"{undelivered:,} accepted submissions wait for delivery, and the limit is {MAX_UNDELIVERED:,}"
    raise Busy(Problem(DESK_BUSY, what, next=f"try again in {BACKLOG_RETRY_AFTER_S} s"), BACKLOG_RETRY_AFTER_S)
