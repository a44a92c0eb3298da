"""Evidence that is read only when a user asks: events, capacity figures, claims, and nodes that do not respond.

All refine a cause that the checks have found. None replaces it: events are kept for an hour only and may be of an
earlier state, so they must not contradict the present one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    CLAIM_NOT_BOUND,
    GANG_PARTIALLY_SCHEDULED,
    IMAGE_SLOW,
    INIT_CONTAINER_SLOW,
    NO_NODE_MATCHES,
    NODE_LOST,
    NODE_NOT_RESPONDING,
    POD_NOT_CREATED,
    POD_SETUP_SLOW,
    QUOTA_USED_UP,
    ROLLOUT_STALLED,
    UNSCHEDULABLE,
    Actor,
    Reason,
)
from pincompute.objects.times import parse_time_ns
from pincompute.planning.diagnosis import container_start, failed_create, free_capacity, quota_usage
from pincompute.planning.diagnosis.capacity import Node, PodRequirements, eligible_nodes, exceeds_node, format_amount
from pincompute.planning.diagnosis.claim_edits import create_claim_command, replace_claim_command
from pincompute.planning.diagnosis.claims import StorageEvidence, absent_claim, explain_claims, unbound_claim
from pincompute.planning.diagnosis.excerpts import excerpt_end, excerpt_start
from pincompute.planning.diagnosis.free_capacity import ClusterCapacity
from pincompute.planning.diagnosis.placement_edits import gpu_type_edit, placement_edit
from pincompute.planning.diagnosis.resource_edits import resource_removals, resource_settings
from pincompute.planning.edit_commands import edit_command
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.events import Event

_VOLUME_EVENTS = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume")
_REFINING_EVENTS: dict[Reason, tuple[str, ...]] = {
    POD_NOT_CREATED: ("FailedCreate",),
    ROLLOUT_STALLED: ("FailedCreate", "FailedScheduling", "FailedMount", "FailedCreatePodSandBox"),
    POD_SETUP_SLOW: (*_VOLUME_EVENTS, "NetworkNotReady"),
    INIT_CONTAINER_SLOW: _VOLUME_EVENTS,
    CLAIM_NOT_BOUND: ("ProvisioningFailed", "FailedBinding"),
}
"""Causes for which the status of the objects is vague, and the events that give the detail."""

MIN_REJECTIONS = 3
"""Rejections after which one that may resolve by itself is reported."""
CAPACITY_REASONS = frozenset({UNSCHEDULABLE, NO_NODE_MATCHES, GANG_PARTIALLY_SCHEDULED})
"""Causes for which the capacity of the nodes is the evidence."""


_WAITS_ON_NODE = frozenset({POD_SETUP_SLOW, IMAGE_SLOW})
"""Causes that a node which is not ready explains: its kubelet or its container runtime has stopped."""
NODE_REASONS = frozenset({NODE_LOST, NODE_NOT_RESPONDING}) | _WAITS_ON_NODE
"""Causes for which the state of a node is the evidence."""


class Evidence(NamedTuple):
    """Nodes, pods, claims and volumes, as far as the cause needs them."""

    pending_pod: PodRequirements | None = None
    """A pod that no node accepts."""
    capacity: ClusterCapacity = ClusterCapacity()
    project_pods: Sequence[PodRequirements] = ()
    """All pods of the project."""
    storage: StorageEvidence = StorageEvidence()
    node: Node | None = None
    """The node that does not respond."""


NO_EVIDENCE = Evidence()


def add_evidence(snapshot: Snapshot, problem: Problem, evidence: Evidence) -> Problem:
    """The problem with what the nodes, the quota's users or the claims say about it, and a cure computed from that."""
    owner: Workload = snapshot.owner
    if problem.reason is QUOTA_USED_UP:
        current = quota_usage.with_current_usage(problem.note, owner.spec.tier, evidence.project_pods)
        return problem._replace(note=current)
    found = ""
    if problem.reason in CAPACITY_REASONS and evidence.pending_pod:
        pod, capacity = evidence.pending_pod, evidence.capacity
        found = free_capacity.explain_unschedulable(pod, capacity, owner.REPLICA_NOUN[0])
        if remedy := _capacity_remedy(owner, problem.reason, pod, capacity):
            found = "\n".join(each for each in (found, "otherwise: ask for such nodes, or for more of them") if each)
            problem = problem._replace(next=remedy)
    elif problem.reason is CLAIM_NOT_BOUND and (found := explain_claims(evidence.storage)):
        problem = problem._replace(next=_claim_remedy(owner, evidence.storage))
    elif problem.reason in _WAITS_ON_NODE:
        return _waiting_on_node(owner, problem, evidence.node)
    elif problem.reason in NODE_REASONS and evidence.node:
        found = _node_state(evidence.node)
    return problem._replace(note="\n".join(each for each in (problem.note, found) if each))


def _capacity_remedy(owner: Workload, reason: Reason, pod: PodRequirements, capacity: ClusterCapacity) -> str:
    """The edit of the file after which a node has room for the pod, or accepts it; empty if there is none."""
    if edit := gpu_type_edit(owner, capacity.nodes) or placement_edit(owner, pod, capacity.nodes):
        return edit
    if reason is not UNSCHEDULABLE:
        return ""
    if absent := free_capacity.absent_resource(pod, capacity.nodes):
        return edit_command(owner, removals=resource_removals(owner, absent))
    settings: dict[str, str | int] = {}
    for resource, amount in free_capacity.largest_request_that_fits(pod, capacity, owner.main_container_name).items():
        settings |= resource_settings(owner, owner.main_container_name, resource, format_amount(resource, amount))
    return edit_command(owner, settings)


def who_acts(owner: Workload, problem: Problem, evidence: Evidence) -> Actor:
    """The author of the file if it demands what no node has, and otherwise the actor of the reason."""
    pod, nodes = evidence.pending_pod, evidence.capacity.nodes
    eligible = eligible_nodes(pod, nodes) if pod else []
    if problem.reason is UNSCHEDULABLE and eligible and all(exceeds_node(pod, each) for each in eligible if pod):
        return Actor.USER
    if problem.reason is NO_NODE_MATCHES and pod and pod.selects_nodes and not eligible:
        return Actor.USER
    if problem.reason is CLAIM_NOT_BOUND and absent_claim(evidence.storage):
        return Actor.USER
    if problem.reason is CLAIM_NOT_BOUND and getattr(owner.spec, "claims", ()) and explain_claims(evidence.storage):
        return Actor.USER
    return problem.reason.actor


def _claim_remedy(owner: Workload, storage: StorageEvidence) -> str:
    if getattr(owner.spec, "claims", ()):
        return "correct claims in the file, and: pin deploy FILE"
    absent, unbound = absent_claim(storage), unbound_claim(storage)
    if absent and (command := create_claim_command(owner.metadata.namespace, absent, storage)):
        return command
    if unbound and (command := replace_claim_command(unbound, storage)):
        return command
    for volume in owner.spec.template.get("spec", {}).get("volumes", ()):
        if absent and volume.get("persistentVolumeClaim", {}).get("claimName") == absent:
            return f"create claim {absent}, or remove volume {volume.get('name')} from spec.template"
    return (
        f"create a claim that can be bound, and name it in the file: kubectl get pvc,pv -n {owner.metadata.namespace}"
    )


def _waiting_on_node(owner: Workload, problem: Problem, node: Node | None) -> Problem:
    """The node that is not ready, instead of what a pod waits for there."""
    if node is None or node.lost is None:
        return problem
    name = node.metadata.name
    what = f"node {name} is not ready, and a {owner.REPLICA_NOUN[0]} on it cannot start"
    return Problem(NODE_NOT_RESPONDING, what, problem.where, _node_state(node), f"kubectl describe node {name}")


def _node_state(node: Node) -> str:
    if node.lost is None:
        return f"node {node.metadata.name} is ready, and its kubelet reports to the API server"
    message = f": {excerpt_start(node.lost.message)}" if node.lost.message else ""
    return f"node {node.metadata.name} has not been ready since {node.lost.last_transition_time}{message}"


def failed_create_problem(snapshot: Snapshot, events: Sequence[Event]) -> Problem | None:
    """The reason for which some pods are missing, if the newest event about that is a rejection.

    Controllers other than the Deployment's report a rejected pod by events only.
    """
    created = [each.last_seen for each in events if each.reason == "SuccessfulCreate"]
    created += [pod.metadata.creation_timestamp for pod in snapshot.pods]
    last_created_ns = max(map(parse_time_ns, filter(None, created)), default=0)
    rejections = [
        each
        for each in events
        if each.reason == "FailedCreate"
        and parse_time_ns(each.last_seen) > last_created_ns
        and not failed_create.is_transient_rejection(each.note)
    ]
    if not rejections or failed_create.missing_replicas(snapshot) <= 0:
        return None
    newest = _newest_event(rejections)
    problem = failed_create.rejection_problem(snapshot, newest.note)
    if problem.reason in failed_create.RETRYABLE_REASONS and newest.occurrences < MIN_REJECTIONS:
        return None
    next_ = problem.next or f"pin show {snapshot.owner.metadata.name}"
    return problem._replace(where=_event_object(newest), next=next_)


def refine_with_events(snapshot: Snapshot, problem: Problem, events: Iterable[Event]) -> Problem:
    """The problem with the detail of the newest warning about it."""
    reasons = _REFINING_EVENTS.get(problem.reason, ())
    warnings = [each for each in events if each.type == "Warning" and each.reason in reasons]
    if not warnings:
        return problem
    newest = _newest_event(warnings)
    refined = _refined_problem(snapshot, newest)
    return refined._replace(where=_event_object(newest)) if refined else problem._replace(note=excerpt_end(newest.note))


def _refined_problem(snapshot: Snapshot, event: Event) -> Problem | None:
    if event.reason == "FailedCreate":
        return failed_create.rejection_problem(snapshot, event.note)
    if event.reason in {"FailedMount", "FailedMapVolume"}:
        return container_start.missing_configuration_problem(snapshot.owner, event.note)
    return None


def _newest_event(events: Iterable[Event]) -> Event:
    return max(events, key=lambda each: (each.last_seen, each.metadata.name))


def _event_object(event: Event) -> Where:
    return Where(object=f"{event.regarding.kind.lower()} {event.regarding.name}")
