"""The transaction that decides on a submission: quota, record, revision and outbox together, or none of them.

A single submission is a set of one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pincompute.admission import quota
from pincompute.admission.project_changes import check_project_empty
from pincompute.admission.quota import QuotaDecision, QuotaDemand, QuotaRequest
from pincompute.api.identity import Identity
from pincompute.api.project import Project
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import IDEMPOTENCY_KEY_REUSED
from pincompute.desk.document_sets import document_label, skipped_problem
from pincompute.desk.store import ledger, outbox, record
from pincompute.desk.store.database import Connection
from pincompute.desk.store.outbox import OutboxEntry
from pincompute.desk.store.record import DecidedBy, Decision, Submission, SubmissionRecord, VerifiedBuild
from pincompute.planning.footprint import WorkloadKey
from pincompute.platforms.protocol import DeleteProject, RenderedWorkload


class Proposal(NamedTuple):
    """A submission that is fit to be accepted, but for its quota."""

    submission: Submission
    rendered: RenderedWorkload
    verified_build: VerifiedBuild | None = None
    caller: Identity | None = None
    """Decides the advice of a refusal."""


def record_acceptance(connection: Connection, *proposals: Proposal) -> list[SubmissionRecord]:
    """Accepts all if all fit into their quotas, otherwise refuses all; returns the former records of a repeated set."""
    submissions = [each.submission for each in proposals]
    _lock_projects(connection, submissions)
    if repeated := find_repeated(connection, submissions):
        return repeated
    reserved: list[WorkloadKey] = []
    refused: dict[str, Refused] = {}
    for submission, rendered, _, caller in proposals:
        if problem := _undelivered_problem(connection, submission, rendered) or quota_problem(
            connection, submission.cluster, rendered, caller, reserved
        ):
            refused[submission.id] = Refused(problem)
            continue
        # Reserved one after the other, so that each is checked beside those before it.
        if rendered.footprint is not None:
            ledger.reserve(connection, submission.cluster, rendered.workload_key, submission.id, rendered.footprint)
        reserved.append(rendered.workload_key)
    if refused:
        for submission in submissions:
            ledger.release_reservation(connection, submission.cluster, submission.workload_key, submission.id)
        return _insert_refusals(connection, submissions, refused)
    return [_insert_acceptance(connection, each) for each in proposals]


def record_refusals(
    connection: Connection, submissions: Sequence[Submission], refused: Mapping[str, Refused]
) -> list[SubmissionRecord]:
    """Records a set in which some submissions are invalid by themselves; no quota is reserved."""
    # The same set may arrive twice at once: the lock lets only one of them be inserted.
    _lock_projects(connection, submissions)
    return find_repeated(connection, submissions) or _insert_refusals(connection, submissions, refused)


def find_repeated(connection: Connection, submissions: Sequence[Submission]) -> list[SubmissionRecord]:
    """The records of the same submissions under the same idempotency keys; empty if they are new.

    Raises Refused if a key was used for something else. The submissions of a set are recorded together, so either all
    of them are found or none.
    """
    return [found for each in submissions if (found := _find_repeated_one(connection, each))]


def quota_problem(
    connection: Connection,
    cluster: str,
    rendered: RenderedWorkload,
    caller: Identity | None = None,
    beside: Collection[WorkloadKey] = (),
) -> Problem | None:
    """Why a workload does not fit into its project's quota; `beside` names the others of its set in the message."""
    project, demand, key = rendered.project, rendered.footprint, rendered.workload_key
    if project is None or demand is None:
        return None
    # The sums suffice nearly always. Only a message needs what each workload of the project holds.
    own, others = ledger.own_and_other_usage(connection, cluster, key, demand.tier)
    asked = QuotaDemand(key.name, demand, own, others)
    if not quota.check_tier_open(project, asked) and not quota.find_shortages(project, asked):
        return None
    held = ledger.held_by_tier(connection, cluster, key.project)
    return quota.check_quota(_quota_request(rendered, caller), held, beside).problem


def _undelivered_problem(connection: Connection, submission: Submission, rendered: RenderedWorkload) -> Problem | None:
    """Why a project cannot be deleted: what is accepted for it, and not in the cluster yet."""
    if not isinstance(rendered.command, DeleteProject):
        return None
    name = rendered.workload_key.project
    pending = outbox.undelivered_of_project(connection, submission.cluster, name)
    return check_project_empty(name, [each.name for each in pending if each.kind != Project.__name__])


def preview_quota(
    connection: Connection, cluster: str, rendered: Sequence[RenderedWorkload | None], caller: Identity | None = None
) -> list[QuotaDecision]:
    """Whether each would fit if all of them were accepted, and what would be left then. Nothing is reserved."""
    projects = sorted({each.workload_key.project for each in rendered if each and each.footprint})
    held = {project: ledger.held_by_tier(connection, cluster, project) for project in projects}
    return quota.check_quota_together([_quota_request(each, caller) if each else None for each in rendered], held)


def _lock_projects(connection: Connection, submissions: Sequence[Submission]) -> None:
    """Sorted, so that two sets never wait for each other."""
    for cluster, project in sorted({(each.cluster, each.workload_key.project) for each in submissions}):
        ledger.lock_project(connection, cluster, project)


def _find_repeated_one(connection: Connection, submission: Submission) -> SubmissionRecord | None:
    key = submission.workload_key
    found = record.find_by_idempotency_key(
        connection, key.project, submission.caller, submission.idempotency_key
    )  # fmt: skip
    if found and found.digest not in submission.digests:
        what = f"the idempotency key of {found.id} was already used for a different request"
        where = Where(object=f"{found.workload_key.project}/{found.workload_key.name}")
        raise Refused(Problem(IDEMPOTENCY_KEY_REUSED, what, where, next="use a new key"))
    return found


def _insert_acceptance(connection: Connection, proposal: Proposal) -> SubmissionRecord:
    submission, rendered, verified_build, _ = proposal
    accepted = Decision(DecidedBy.DESK, submission.at, accepted=True, rule="", words="")
    inserted = _insert(connection, submission, accepted)
    if (stored := rendered.workload or rendered.document) is not None:
        record.insert_revision(connection, submission, stored)
    if verified_build is not None:
        record.insert_verified_build(connection, submission, verified_build)
    outbox.insert_entry(connection, OutboxEntry(submission, rendered.command))
    return inserted


def _insert_refusals(
    connection: Connection, submissions: Sequence[Submission], refused: Mapping[str, Refused]
) -> list[SubmissionRecord]:
    """Refuses a whole set: `refused` has the invalid ones by id, the others are refused because of them."""
    invalid = [
        document_label(each.workload_key, number) for number, each in enumerate(submissions, 1) if each.id in refused
    ]
    inserted: list[SubmissionRecord] = []
    for submission in submissions:
        why = refused.get(submission.id) or Refused(skipped_problem(submission.workload_key, invalid))
        inserted.append(_insert(connection, submission, Decision.refused(DecidedBy.DESK, submission.at, why)))
    return inserted


def _insert(connection: Connection, submission: Submission, decision: Decision) -> SubmissionRecord:
    record.insert_submission(connection, submission)
    record.insert_decision(connection, submission, decision)
    return record.record_of(submission, decision)


def _quota_request(rendered: RenderedWorkload, caller: Identity | None) -> QuotaRequest:
    return QuotaRequest(rendered.workload_key, rendered.project, rendered.footprint, rendered.surge, caller)
