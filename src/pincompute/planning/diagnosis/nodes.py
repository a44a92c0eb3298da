"""Pods that their node lost, rejected, evicted or preempted."""

from __future__ import annotations

import re
from datetime import datetime
from fractions import Fraction

from pincompute.base.problem import Problem
from pincompute.base.reasons import (
    DEADLINE_EXCEEDED,
    DELETION_STUCK,
    EVICTED,
    NODE_LOST,
    NODE_REFUSED,
    PREEMPTED,
    Reason,
)
from pincompute.objects.quantity import parse_quantity
from pincompute.planning.diagnosis.cause import (
    Cause,
    Causes,
    PodContext,
    Rank,
    find_disruption,
    is_main_container,
    template_container,
)
from pincompute.planning.diagnosis.excerpts import excerpt_start, format_duration, join_with_and
from pincompute.planning.diagnosis.exits import in_memory_steps
from pincompute.planning.diagnosis.resource_edits import resource_settings
from pincompute.planning.edit_commands import edit_command
from pincompute.planning.observed_pods import Pod, PodCondition
from pincompute.planning.snapshot import Snapshot

DELETION_GRACE_S = 60.0
"""Time beyond a pod's own termination grace period after which its deletion counts as stuck."""
_MEMORY_RESERVE = Fraction(5, 4)
"""Part of the measured memory that is requested after an eviction for memory."""
_MEASURED_MEMORY = re.compile(r"Container (?P<container>\S+) was using (?P<amount>\d{1,15}[KMGT]?i?),")
_EVICTION_REASONS = ("Evicted", "NodeShutdown", "Terminated")
_NODE_LOST_REASONS = ("NodeLost", "DeletionByTaintManager", "DeletionByPodGC")


def reason_of_node(pod: Pod, otherwise: Reason) -> Reason:
    """The reason for which the node or the scheduler ended a pod as a whole; the other one if neither did."""
    disruption = find_disruption(pod)
    reasons = {pod.status.reason, disruption.reason if disruption else ""}
    if not reasons.isdisjoint(_NODE_LOST_REASONS):
        return NODE_LOST
    if "PreemptionByScheduler" in reasons:
        return PREEMPTED
    if disruption or not reasons.isdisjoint(_EVICTION_REASONS):
        return EVICTED
    return NODE_REFUSED if pod.status.reason else otherwise


def check_nodes(context: PodContext) -> Causes:
    status = context.pod.status
    disruption = context.disruption
    if status.reason == "DeadlineExceeded":
        yield _deadline_cause(context)
    elif (
        status.reason in _NODE_LOST_REASONS
        or status.phase == "Unknown"
        or _node_stopped_reporting(context)
        or (disruption and disruption.reason in _NODE_LOST_REASONS)
    ):
        yield _node_lost_cause(context)
    elif disruption and disruption.reason == "PreemptionByScheduler":
        yield _preempted_cause(context, disruption)
    elif disruption or status.reason in _EVICTION_REASONS:
        yield _evicted_cause(context, status.message or (disruption.message if disruption else ""))
    elif status.phase == "Failed" and status.reason and not any(each.state.terminated for each in context.containers):
        yield _rejected_cause(context)


def check_stuck_deletions(snapshot: Snapshot) -> Causes:
    """Pods that should be gone: a new pod may wait for their names or claims."""
    owner = snapshot.owner
    for pod in snapshot.pods:
        deletion = pod.metadata.deletion_timestamp
        if pod.workload != owner.metadata.name or not deletion or pod.status.phase in {"Failed", "Succeeded"}:
            continue
        overdue_s = (snapshot.now - datetime.fromisoformat(deletion)).total_seconds()
        if overdue_s > DELETION_GRACE_S:
            context = PodContext(owner, pod, snapshot.now, snapshot.runtimes)
            what = (
                f"a deleted {context.replica} is still terminating {format_duration(DELETION_GRACE_S)} after its time"
            )
            if holders := pod.metadata.holding_finalizers:
                yield _held_pod_cause(context, what, join_with_and(holders))
                continue
            on = pod.spec.node_name
            note = f"{f'its node {on}' if on else 'its node'} has not confirmed the deletion"
            yield Cause(Problem(NODE_LOST, what, context.where, note, _find_node(context)), Rank.SYMPTOM)


def _held_pod_cause(context: PodContext, what: str, holders: str) -> Cause:
    pod, namespace = context.pod.metadata.name, context.owner.metadata.namespace
    next_ = f"ask for the controller of {holders}: kubectl get pod {pod} -n {namespace} -o yaml"
    return Cause(Problem(DELETION_STUCK, what, context.where, f"held by {holders}", next_), Rank.TRANSIENT)


def _node_stopped_reporting(context: PodContext) -> bool:
    """True if the containers were last reported as ready and the pod is not: the node controller marks a pod this way
    when its node stops reporting."""
    ready = next((each for each in context.pod.status.conditions if each.type == "Ready"), None)
    is_silent = ready is not None and (ready.status == "Unknown" or (ready.status == "False" and not ready.reason))
    return is_silent and context.pod.has_condition("ContainersReady")


def _node_lost_cause(context: PodContext) -> Cause:
    on = context.pod.spec.node_name
    node = f"node {on}, which" if on else "a node that"
    what = f"a {context.replica} is on {node} does not report any more"
    note = excerpt_start(context.pod.status.message)
    return Cause(Problem(NODE_LOST, what, context.where, note, _find_node(context)), Rank.TRANSIENT)


def _preempted_cause(context: PodContext, condition: PodCondition) -> Cause:
    what = f"a {context.replica} was preempted by a higher tier"
    next_ = f"choose a higher tier than {context.owner.spec.tier}, or wait for capacity"
    return Cause(Problem(PREEMPTED, what, context.where, excerpt_start(condition.message), next_), Rank.TRANSIENT)


def _evicted_cause(context: PodContext, message: str) -> Cause:
    is_drain = context.disruption and context.disruption.reason == "EvictionByEvictionAPI"
    what = f"a {context.replica} was evicted {'while its node was drained' if is_drain else 'by its node'}"
    next_ = _more_memory_command(context, message) or "wait for a new one, or: kubectl get nodes"
    return Cause(Problem(EVICTED, what, context.where, excerpt_start(message), next_), Rank.TRANSIENT)


def _more_memory_command(context: PodContext, message: str) -> str:
    """The request that the kubelet measured before it evicted the pod; empty if it was short of something else."""
    if "memory" not in message:
        return ""
    found, owner = _MEASURED_MEMORY.search(message), context.owner
    name = found["container"] if found else ""
    if found is None or not (is_main_container(owner, name) or template_container(owner, name)):
        return "raise memory in the file to the actual usage, or wait for a new one"
    amount = in_memory_steps(parse_quantity(found["amount"]) * _MEMORY_RESERVE)
    return edit_command(owner, resource_settings(owner, name, "memory", amount))


def _rejected_cause(context: PodContext) -> Cause:
    what = f"a node rejected a {context.replica} ({context.pod.status.reason})"
    note = excerpt_start(context.pod.status.message)
    return Cause(Problem(NODE_REFUSED, what, context.where, note, "kubectl get nodes"), Rank.TRANSIENT)


def _deadline_cause(context: PodContext) -> Cause:
    what = f"a {context.replica} exceeded its deadline"
    note, next_ = excerpt_start(context.pod.status.message), "raise the deadline in the file"
    return Cause(Problem(DEADLINE_EXCEEDED, what, context.where, note, next_))


def _find_node(context: PodContext) -> str:
    pod, namespace = context.pod.metadata.name, context.owner.metadata.namespace
    return f"kubectl get nodes; kubectl get pod {pod} -o wide -n {namespace}"
