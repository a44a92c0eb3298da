"""Pods for which nothing happens: a gate is closed, no scheduler acts on them, or their node's kubelet does not."""

from __future__ import annotations

from datetime import datetime

from pincompute.api.names import GANG_GATE
from pincompute.base.problem import Problem
from pincompute.base.reasons import NODE_NOT_RESPONDING, SCHEDULER_NOT_RESPONDING, SCHEDULER_UNKNOWN, SCHEDULING_GATED
from pincompute.planning.diagnosis.cause import Cause, Causes, PodContext, Rank, Recheck
from pincompute.planning.diagnosis.excerpts import format_duration, join_with_and
from pincompute.planning.edit_commands import edit_command, pod_path

RESPONSE_GRACE_S = 30.0
"""Time in which a scheduler and a kubelet act on a new pod, also on a machine that is short of CPU."""


def check_waiting(context: PodContext) -> Causes:
    pod = context.pod
    if not pod.is_active or context.kubelet_has_acted or (problem := _waiting_problem(context)) is None:
        return
    age_s = context.seconds_since(_turn_began_at(context))
    if age_s < RESPONSE_GRACE_S:
        yield Recheck(RESPONSE_GRACE_S - age_s)
    else:
        yield Cause(problem, Rank.TRANSIENT)


def _turn_began_at(context: PodContext) -> datetime | None:
    """When the pod got its node, or its creation before that: a kubelet is not late for what the scheduler took."""
    scheduled = (each for each in context.pod.status.conditions if (each.type, each.status) == ("PodScheduled", "True"))
    return next((each.last_transition_time for each in scheduled), None) or context.pod_started_at()


def _waiting_problem(context: PodContext) -> Problem | None:
    """The problem of the one that has to act next, and that the kubelet does not wait for."""
    pod = context.pod
    gates = [each.name for each in pod.spec.scheduling_gates]
    if gates:
        # The gate of a gang is the operator's, and opens when all members exist.
        foreign = [each for each in gates if each != GANG_GATE]
        return _gated_problem(context, foreign) if foreign else None
    if pod.has_condition("PodScheduled"):
        return _silent_kubelet_problem(context)
    has_verdict = any(each.type == "PodScheduled" for each in pod.status.conditions)
    # A pod that names its node needs no scheduler.
    named = pod.spec.node_name or context.owner.spec.template.get("spec", {}).get("nodeName")
    return None if has_verdict or named else _silent_scheduler_problem(context)


def _gated_problem(context: PodContext, gates: list[str]) -> Problem:
    what = f"a {context.replica} waits for {'its gate' if len(gates) == 1 else 'its gates'} {join_with_and(gates)}"
    of_file = {str(each.get("name")) for each in context.owner.spec.template.get("spec", {}).get("schedulingGates", ())}
    if of_file.issuperset(gates):
        note = "the file sets it in spec.template; no scheduler considers the pod before it is removed there"
        next_ = edit_command(context.owner, removals=[pod_path("schedulingGates")])
        return Problem(SCHEDULING_GATED, what, context.where, note, next_)
    note = "another controller of the cluster set it; no scheduler considers the pod before that removes it"
    pod, namespace = context.pod.metadata.name, context.owner.metadata.namespace
    return Problem(SCHEDULING_GATED, what, context.where, note, f"kubectl get pod {pod} -n {namespace} -o yaml")


def _silent_scheduler_problem(context: PodContext) -> Problem:
    scheduler = context.owner.spec.template.get("spec", {}).get("schedulerName", "")
    grace = format_duration(RESPONSE_GRACE_S)
    if scheduler:
        what = f"no scheduler '{scheduler}', which the file names, has acted on a {context.replica} for {grace}"
        next_ = edit_command(context.owner, removals=[pod_path("schedulerName")])
        return Problem(SCHEDULER_UNKNOWN, what, context.where, next=next_)
    what = f"no scheduler has acted on a {context.replica} for {grace}"
    return Problem(SCHEDULER_NOT_RESPONDING, what, context.where, "the cluster's scheduler is down", "pin status")


def _silent_kubelet_problem(context: PodContext) -> Problem:
    pod = context.pod
    node = pod.spec.node_name or "its node"
    what = f"{node} has not acted on a {context.replica} for {format_duration(RESPONSE_GRACE_S)}"
    return Problem(NODE_NOT_RESPONDING, what, context.where, next=f"kubectl describe node {pod.spec.node_name}".strip())
