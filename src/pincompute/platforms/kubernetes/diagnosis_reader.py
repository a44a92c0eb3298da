"""Reads from a cluster what the answer of `pin why` asks for, and nothing else.

An answer begins with three requests: the workload, its pods, and the objects that create them. The first cause decides
what else is read: for a quota the pods of the project, for a crash the events, for a rollback the recorded revisions.
Natives that planning only compares, such as Services and ServiceAccounts, are never read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pincompute.api.names import WORKLOAD_LABEL
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import Diagnosis
from pincompute.controller.resources import WORKLOAD_NATIVES
from pincompute.kube.client import Client
from pincompute.kube.errors import Forbidden
from pincompute.kube.resource import INGRESSES, PODS, Resource
from pincompute.objects.content import Object
from pincompute.planning.diagnosis import explain
from pincompute.planning.diagnosis.evidence import NO_EVIDENCE
from pincompute.planning.diagnosis.questions import Question, open_questions
from pincompute.planning.training.diagnosis import KUBEFLOW_KINDS
from pincompute.planning.views.history import read_history
from pincompute.planning.views.plan_preview import PlanningInputs
from pincompute.platforms.kubernetes.callees import find_call_problem
from pincompute.platforms.kubernetes.cluster_reader import (
    LiveState,
    last_edit_time,
    list_events,
    list_natives,
    list_revision_records,
    read_evidence,
    read_planning_context,
)

InputsLookup = Callable[[], PlanningInputs | None]
"""Returns the cached projects and runtimes; None if there is no cache, or not yet."""


async def explain_workload(client: Client, found: Object, owner: Workload, cached: PlanningInputs | None) -> Diagnosis:
    """The diagnosis of a workload; `found` is the same in full. From its status alone, if reading more is forbidden."""
    try:
        return await _explain_live(client, found, owner, cached)
    except Forbidden:
        return explain.diagnose_from_status(owner)


async def _explain_live(client: Client, found: Object, owner: Workload, cached: PlanningInputs | None) -> Diagnosis:
    diagnosis = await _explain_replicas(client, found, owner, cached)
    problem = await find_call_problem(client, owner)
    return explain.add_call_problem(owner, diagnosis, problem) if problem else diagnosis


async def _explain_replicas(client: Client, found: Object, owner: Workload, cached: PlanningInputs | None) -> Diagnosis:
    project, labels = owner.metadata.namespace, f"{WORKLOAD_LABEL}={owner.metadata.name}"
    inputs = cached or await read_planning_context(client)
    pods, natives = await asyncio.gather(
        client.list(PODS, project, labels=labels),
        list_natives(client, _status_natives(owner), project, labels),
    )
    state, edited = LiveState(found, natives, tuple(pods.items)), last_edit_time(found)
    snapshot = state.snapshot(owner, inputs, client.clock.now())
    first = explain.diagnose(snapshot, (), edited)
    asked = open_questions(snapshot, first, edited)
    ingresses = await list_natives(client, (INGRESSES,) if Question.INGRESS in asked else (), project, labels)
    events = await list_events(client, project) if Question.EVENTS in asked else []
    records = await list_revision_records(client, owner) if Question.REVISIONS in asked else []
    snapshot = state._replace(natives=(*natives, *ingresses)).snapshot(owner, inputs, snapshot.now)
    past = read_history(owner, records)
    # Planning a large workload is the expensive part, so nothing is planned again without anything new.
    is_new = ingresses or events or records
    second = explain.diagnose(snapshot, events, edited, past) if is_new else first
    if Question.REVISIONS in open_questions(snapshot, second, edited) - asked:
        # Only an event has told of the problem, as it does of a restart by a probe.
        past = read_history(owner, await list_revision_records(client, owner))
        second = explain.diagnose(snapshot, events, edited, past)
    evidence = await read_evidence(client, snapshot, state.pods, second.reason)
    return second if evidence is NO_EVIDENCE else explain.diagnose(snapshot, events, edited, past, evidence)


def _status_natives(owner: Workload) -> list[Resource]:
    """An Ingress counts only once the replicas are ready."""
    kinds = owner.STATUS_NATIVES
    if isinstance(owner, PinterestTrainingJob):
        kinds = (KUBEFLOW_KINDS[owner.spec.framework],)
    return [WORKLOAD_NATIVES[each] for each in kinds]
