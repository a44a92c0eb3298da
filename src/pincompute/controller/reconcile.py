"""One pass: snapshot, plan, diff, apply, status.

A pass plans from scratch. It reads no journal of steps and resumes nothing: everything that an interrupted pass has
done is part of the snapshot, and planning the same snapshot gives the same plan. So a crash before, during or after any
write needs no special case.

This holds only if the snapshot is not older than our own writes: a pass that does not see the Deployment that it
created would create it again. The loop waits until the cache includes the resourceVersion of the last write of each
kind (`_sees_own_writes`). The memory that this takes is an optimization of one process. A new process starts from a
fresh list, which includes every earlier write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import structlog

from pincompute.api.status import ResourceStatus
from pincompute.api.workload import Workload
from pincompute.base.aio import beside_loop
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import NAME_TAKEN, PROJECT_TERMINATING, SPEC_UNDECODABLE
from pincompute.controller import status_writer
from pincompute.controller.apply import apply_step
from pincompute.controller.cluster_cache import ClusterCache, UndecodableOwner
from pincompute.controller.drift import DriftDetector
from pincompute.controller.events import emit_event
from pincompute.controller.passes import Key, Outcome, PassResult
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Forbidden, NotFound, StorageFull, Unreachable
from pincompute.kube.resource import PODS
from pincompute.objects.content import Object, object_label
from pincompute.planning.diagnosis.failed_create import refused_write_problem
from pincompute.planning.diff import Difference, diff
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.notable_events import drift_event, status_events
from pincompute.planning.plan import Plan, soonest
from pincompute.planning.snapshot import Cluster, Snapshot
from pincompute.planning.status import refused_plan
from pincompute.planning.status_counts import report_interval_s
from pincompute.planning.steps import Adopt, Apply, Create, Delete, PatchImages, Step, step_text
from pincompute.planning.views.plan_preview import is_large

STALE_CACHE_RETRY_S = 1.0
"""Retry interval while the cache lags behind our own writes. Normally the missing event triggers the pass earlier. But
if the written object was deleted before a watch was restarted, no event for it ever arrives."""


log = structlog.get_logger()


class _ApplyResult(NamedTuple):
    """The result of applying the steps of one pass."""

    steps: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    conflict: str = ""
    """The API server's message, if an object was modified since the snapshot. The rest of the plan is then void."""


class Reconciler:
    """Runs one pass for a key. All its memory may be lost at any time without harm."""

    def __init__(self, client: Client, cache: ClusterCache, cluster: Cluster) -> None:
        self._client = client
        self._cache = cache
        self._cluster = cluster
        self._drift = DriftDetector(client)
        self._last_writes: defaultdict[Key, dict[str, int]] = defaultdict(dict)
        """The resourceVersion of our last write of each kind that the cache does not include yet."""
        self._deleting: defaultdict[Key, set[str]] = defaultdict(set)
        """Uids of natives with a requested deletion. A deleted object has no resourceVersion to wait for."""
        self._reported_at: dict[Key, float] = {}
        """When the status was last written, to limit how often mere counts are."""
        self._deleted_owners: defaultdict[Key, set[str]] = defaultdict(set)
        """Uids of owners that the cache still shows although the API server no longer has them."""

    async def __call__(self, key: Key) -> PassResult:
        undecodable = self._cache.undecodable(key)
        owners = self._cache.owners(key)
        live_owners = [
            owner
            for owner in owners
            if not owner.metadata.deletion_timestamp and owner.metadata.uid not in self._deleted_owners.get(key, ())
        ]
        if not live_owners and not undecodable:
            # Kubernetes' garbage collector removes the natives by their owner references.
            self._last_writes.pop(key, None)
            self._deleting.pop(key, None)
            self._reported_at.pop(key, None)
            self._drift.forget(key)
            if not owners:
                self._deleted_owners.pop(key, None)
            return PassResult(Outcome.DELETED)
        if not self._sees_own_writes(key):
            return PassResult(Outcome.STALE_CACHE, STALE_CACHE_RETRY_S)
        try:
            if undecodable:
                return await self._report_undecodable(key, undecodable)
            return await self._reconcile(key, self._cache.snapshot(live_owners[0], self._cluster), live_owners[1:])
        except Conflict as error:
            return PassResult(Outcome.CONFLICT, why=error.message)

    async def _reconcile(self, key: Key, snapshot: Snapshot, duplicates: list[Workload]) -> PassResult:
        for duplicate in duplicates:
            await self._reject_duplicate(key, snapshot._replace(owner=duplicate), snapshot.owner)
        # A tenant may write a custom resource of a megabyte: no other one should wait for its plan.
        plan, difference = await beside_loop(partial(_plan_steps, snapshot), large=is_large(snapshot.owner))
        if plan.delete_owner:
            return await self._delete_owner(key, snapshot.owner)
        difference = self._limit_to_visible_kinds(snapshot, plan, difference)
        difference = difference._replace(steps=tuple(self._skip_deleting(key, snapshot, difference)))
        if _recreates_natives(snapshot.owner, difference) and not await self._owner_exists(snapshot.owner):
            self._deleted_owners[key].add(snapshot.owner.metadata.uid)
            return PassResult(Outcome.DELETED)
        self._drift.forget_absent(key, snapshot)
        applied = await self._apply_steps(key, snapshot, difference)
        if not applied.conflict and not applied.problems:
            applied = await self._revert_drift(key, snapshot, plan, difference, applied)
        if applied.conflict:
            return PassResult(Outcome.CONFLICT, steps=applied.steps, why=applied.conflict)
        problems = (*difference.problems, *applied.problems)
        status = status_writer.blocked_status(snapshot.owner, plan.status, problems[0]) if problems else plan.status
        report_after_s = self._report_delay_s(key, snapshot.owner.status, status)
        reported = () if report_after_s else await self._report(key, snapshot.owner, status)
        steps, requeue_after_s = (*applied.steps, *reported), soonest(plan.wake_after_s, report_after_s)
        if problems:
            return PassResult(Outcome.FAILED, requeue_after_s, steps, Refused(*problems).text())
        outcome = Outcome.CHANGED if steps else Outcome.UNCHANGED
        return PassResult(outcome, requeue_after_s, steps, plan.why.text() if plan.why else "")

    def _limit_to_visible_kinds(self, snapshot: Snapshot, plan: Plan, difference: Difference) -> Difference:
        """Drops the steps for kinds that we may not watch, and reports those kinds as problems.

        What cannot be seen looks absent, so planning would create it again. Without a view of pods nothing is done at
        all, as any step might depend on them.
        """
        unwatchable = self._cache.unwatchable_kinds
        if not unwatchable:
            return difference
        wanted_kinds = {native["kind"] for native in plan.wanted}
        if isinstance(snapshot.owner, Workload):
            wanted_kinds.add(PODS.kind)
        problems = tuple(problem for kind, problem in unwatchable.items() if kind in wanted_kinds)
        if PODS.kind in unwatchable:
            return Difference((), (*difference.problems, *problems))
        steps = tuple(step for step in difference.steps if _target_kind(step) not in unwatchable)
        return Difference(steps, (*difference.problems, *problems))

    async def _delete_owner(self, key: Key, owner: Workload) -> PassResult:
        """Deletes an expired workload as the pass saw it: a later edit, such as another `expires`, is a conflict."""
        metadata = owner.metadata
        with suppress(NotFound):
            await self._client.delete(
                CUSTOM_RESOURCES[owner.kind],
                metadata.name,
                metadata.namespace,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
            )
        self._deleted_owners[key].add(metadata.uid)
        log.info("expired workload deleted", kind=owner.kind, workload=metadata.key, expires=owner.spec.expires)
        return PassResult(Outcome.CHANGED, steps=(f"Delete {owner.kind}/{metadata.name}",))

    async def _owner_exists(self, owner: Any) -> bool:
        """Asks the API server: the cache may show the deletion of natives before that of their owner."""
        metadata = owner.metadata
        found = await self._client.list(
            CUSTOM_RESOURCES[owner.kind], metadata.namespace, fields=f"metadata.name={metadata.name}"
        )
        return any(each["metadata"]["uid"] == metadata.uid for each in found.items)

    async def _reject_duplicate(self, key: Key, snapshot: Snapshot, first: Workload) -> None:
        """Reports NameTaken on a workload that has the name of an older one. Nothing else is done for it."""
        metadata = snapshot.owner.metadata
        problem = Problem(
            NAME_TAKEN,
            f"{metadata.namespace} has a {first.kind} '{metadata.name}' already",
            Where(object=metadata.key),
            next=f"kubectl delete {snapshot.owner.kind.lower()} {metadata.name}, and choose another name",
        )
        # The pods of this name belong to the older workload.
        refused = refused_plan(snapshot._replace(pods=()), (problem,))
        await self._report(key, snapshot.owner, refused.status)

    async def _report_undecodable(self, key: Key, undecodable: dict[str, UndecodableOwner]) -> PassResult:
        """Leaves an owner that cannot be decoded, and all its natives, as they are, and says so in its status."""
        problems = []
        for kind, owner in list(undecodable.items()):
            problem = Problem(
                SPEC_UNDECODABLE,
                f"{kind} {key.name} cannot be read: {owner.why}",
                Where(object=str(key)),
                note="running pods are not affected",
                next="submit its file again",
            )
            problems.append(problem)
            generation = owner.metadata.generation
            status = status_writer.undecodable_status(kind, generation, owner.status, problem, self._client.clock.now())
            if status != owner.status:
                after = await status_writer.write_status(self._client, kind, owner.metadata, status)
                self._note_write(key, after)
                if after is None:
                    self._cache.forget_undecodable(key, kind)
        return PassResult(Outcome.FAILED, why=Refused(*problems).text())

    async def _apply_steps(self, key: Key, snapshot: Snapshot, difference: Difference) -> _ApplyResult:
        """Tries every step: one native that is refused does not keep the others from being applied."""
        steps: list[str] = []
        problems: list[Problem] = []
        # A project is cluster-scoped; its natives are in the namespace of the same name.
        namespace = key.project or key.name
        for step in difference.steps:
            try:
                after = await apply_step(self._client, namespace, step)
            except Conflict as error:
                return _ApplyResult(tuple(steps), conflict=error.message)
            except Refused as refused:
                if _namespace_terminating(refused):
                    problems.append(Problem(PROJECT_TERMINATING, f"namespace {namespace} is being deleted"))
                    break
                problems += (refused_write_problem(snapshot, each) for each in refused.problems)
                if isinstance(refused, Unreachable | StorageFull):
                    # The server would refuse the other steps as well, each perhaps only after a timeout.
                    break
                continue
            steps.append(step_text(step))
            if isinstance(step, Delete):
                self._deleting[key].add(step.uid)
            self._note_write(key, after)
            if after is not None and isinstance(step, Create | Apply | Adopt):
                self._drift.note_own_write(key, after)
        return _ApplyResult(tuple(steps), tuple(problems))

    async def _revert_drift(
        self, key: Key, snapshot: Snapshot, plan: Plan, difference: Difference, applied: _ApplyResult
    ) -> _ApplyResult:
        """Undoes foreign edits of our natives and emits an event that names the editor."""
        for candidate in self._drift.candidates(key, snapshot, plan.wanted, difference):
            try:
                revision, edits, after = await self._drift.revert(key, candidate)
            except Conflict as error:
                return applied._replace(conflict=error.message)
            except Refused as refused:
                return applied._replace(problems=refused.problems)
            self._note_write(key, after)
            if edits:
                applied = applied._replace(steps=(*applied.steps, f"RevertDrift {object_label(candidate.wanted)}"))
                event = drift_event(snapshot.owner, candidate.wanted, revision, edits)
                await emit_event(self._client, snapshot.owner, event)
        return applied

    def _report_delay_s(self, key: Key, before: ResourceStatus, after: ResourceStatus) -> float | None:
        """Seconds until the status may be written; None if it may be written now.

        A rollout of a thousand pods changes a count a thousand times. A change of mere counts is therefore delayed.
        """
        if key not in self._reported_at:
            return None
        left = self._reported_at[key] + report_interval_s(before, after) - self._client.clock.monotonic()
        return left if left > 0 else None

    async def _report(self, key: Key, owner: Any, status: ResourceStatus) -> tuple[str, ...]:
        """Writes the status if it differs from the stored one; returns the executed step, if any."""
        if status == owner.status:
            return ()
        # Events come first. If the status cannot be written, a later pass emits the same events under the same names,
        # which the server has already; in the other order a crash in between would lose them.
        for message in status_events(owner, status):
            await emit_event(self._client, owner, message)
        after = await status_writer.write_status(self._client, owner.kind, owner.metadata, status)
        self._note_write(key, after)
        self._reported_at[key] = self._client.clock.monotonic()
        # "Not found" alone does not prove that the owner was deleted: an API server that has just started answers so
        # for custom resources before it has loaded their definitions.
        if after is None and not await self._owner_exists(owner):
            self._deleted_owners[key].add(owner.metadata.uid)
        return (f"Report {owner.kind}/{owner.metadata.name}",)

    def _skip_deleting(self, key: Key, snapshot: Snapshot, difference: Difference) -> Iterator[Step]:
        """Drops deletions that were requested before, while their objects are still visible."""
        if deleting := self._deleting.get(key):
            deleting &= {each.metadata.uid for each in snapshot.natives}
        for step in difference.steps:
            if not (isinstance(step, Delete) and deleting and step.uid in deleting):
                yield step

    def _note_write(self, key: Key, after: Object | None) -> None:
        if after is not None:
            self._last_writes[key][after["kind"]] = int(after["metadata"]["resourceVersion"])

    def _sees_own_writes(self, key: Key) -> bool:
        last_writes = self._last_writes.get(key, {})
        for kind in [kind for kind, version in last_writes.items() if self._cache.includes(kind, version)]:
            del last_writes[kind]
        return not last_writes


def _plan_steps(snapshot: Snapshot) -> tuple[Plan, Difference]:
    plan = PLANNERS[snapshot.owner.kind](snapshot)
    return plan, diff(snapshot.owner.metadata.uid, snapshot.natives, plan)


def _recreates_natives(owner: Any, difference: Difference) -> bool:
    """Whether natives are missing although the spec has not changed since the last report.

    Either they were deleted by hand, or the owner was deleted and the garbage collector is at work.
    """
    reported = owner.status.observed_generation == owner.metadata.generation
    return reported and any(isinstance(each, Create) for each in difference.steps)


def _target_kind(step: Step) -> str:
    match step:
        case Create(native) | Apply(native) | Adopt(native):
            return str(native["kind"])
        case Delete(kind) | PatchImages(kind):
            return kind
        case _:
            return PODS.kind


def _namespace_terminating(refused: Refused) -> bool:
    """Whether an object was refused because its namespace is being deleted."""
    if not isinstance(refused, Forbidden):
        return False
    return any(each.get("reason") == "NamespaceTerminating" for each in refused.details.get("causes") or ())
