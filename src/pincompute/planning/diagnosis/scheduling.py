"""Pods that no node accepts: too few resources, labels and taints, or a claim without a volume."""

from __future__ import annotations

import re

from pincompute.api.names import GPU_TYPE_LABEL
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.base.reasons import CLAIM_NOT_BOUND, NO_NODE_MATCHES, UNSCHEDULABLE, Reason
from pincompute.objects.content import Object
from pincompute.planning.diagnosis.cause import Cause, Causes, PodContext, Rank, Recheck, template_container
from pincompute.planning.diagnosis.excerpts import excerpt_start, join_with_and
from pincompute.planning.diagnosis.scheduler_messages import (
    AFFINITY_OBSTACLE,
    SELECTOR_OBSTACLE,
    SchedulerVerdict,
    parse_scheduler_message,
    unschedulable_reasons,
)
from pincompute.planning.edit_commands import edit_command, pod_path, pod_spec
from pincompute.planning.pods.pod import GPU_RESOURCE

SCHEDULING_GRACE_S = 5.0
"""Time in which ending pods may free the capacity."""
BINDING_GRACE_S = 15.0
"""Time in which a new claim is bound, and the scheduler tries again."""
KUBELET_RESPONSE_GRACE_S = 10.0
"""Time in which the kubelet of a named node should have accepted the pod."""
ANTI_AFFINITY = "podAntiAffinity"
_SPREAD = "topologySpreadConstraints"
_CLAIM = re.compile(r"persistentvolumeclaim(?: \"(?P<name>[^\"]+)\")?", re.IGNORECASE)


def check_scheduling(context: PodContext) -> Causes:
    yield from _check_named_node(context)
    for condition in context.pod.status.conditions:
        if (condition.type, condition.status, condition.reason) != ("PodScheduled", "False", "Unschedulable"):
            continue
        problem = _unschedulable_problem(context, condition.message)
        grace_s = BINDING_GRACE_S if problem.reason is CLAIM_NOT_BOUND else SCHEDULING_GRACE_S
        started_at = context.pod_started_at()
        age_s = context.seconds_since(started_at)
        if started_at and age_s < grace_s:
            yield Recheck(grace_s - age_s)
        else:
            yield Cause(problem, Rank.TRANSIENT)


def _check_named_node(context: PodContext) -> Causes:
    """A pod with a nodeName bypasses the scheduler, and a node that does not exist reports nothing."""
    node = context.owner.spec.template.get("spec", {}).get("nodeName")
    if not node or context.pod.has_condition("PodScheduled") or not context.pod.is_active:
        return
    age_s = context.seconds_since(context.pod_started_at())
    if age_s < KUBELET_RESPONSE_GRACE_S:
        yield Recheck(KUBELET_RESPONSE_GRACE_S - age_s)
        return
    what = f"node {node}, which the file names, does not accept a {context.replica}"
    next_ = edit_command(context.owner, removals=[pod_path("nodeName")])
    yield Cause(Problem(NO_NODE_MATCHES, what, context.where, next=next_), Rank.TRANSIENT)


def _unschedulable_problem(context: PodContext, message: str) -> Problem:
    what = f"no node accepts a {context.replica}"
    verdict = parse_scheduler_message(message)
    if verdict:
        requests = _requests_text(context.owner, _scarce_resources(verdict))
        reason, next_ = _reason_and_remedy(context.owner, verdict, requests)
        note = f"{verdict}; a {context.replica} requests {requests}" if requests else str(verdict)
        if (labels := _required_pods(context.owner)) and any(
            AFFINITY_OBSTACLE in each.text for each in verdict.obstacles
        ):
            note = f"{note}; its affinity requires a pod with {labels}"
        return Problem(reason, what, context.where, note, next_)
    claim = _CLAIM.search(message)
    if claim:
        return _claim_problem(context, claim["name"] or "", message)
    return Problem(UNSCHEDULABLE, what, context.where, excerpt_start(message), "kubectl get nodes")


def _reason_and_remedy(owner: Workload, verdict: SchedulerVerdict, requests: str) -> tuple[Reason, str]:
    """Scarce resources can be requested in smaller amounts; all else is a mismatch of the file and the nodes."""
    if any(each.storage for each in verdict.obstacles):
        return CLAIM_NOT_BOUND, f"kubectl describe pvc -n {owner.metadata.namespace}"
    scarce = _scarce_resources(verdict)
    if scarce == ["pods"]:
        return UNSCHEDULABLE, "reduce replicas in the file, or ask for more nodes: kubectl get nodes"
    if scarce:
        less = f"less than {requests}" if requests else f"less {join_with_and(scarce)}"
        return UNSCHEDULABLE, f"request {less} in the file, or ask for more nodes: kubectl get nodes"
    return NO_NODE_MATCHES, _mismatch_remedy(owner, verdict)


def _mismatch_remedy(owner: Workload, verdict: SchedulerVerdict) -> str:
    """The edit that drops the one rule between pods which all nodes break, or else where to look."""
    if path := _broken_pod_rule(owner, verdict):
        if path == _SPREAD:
            keys = [str(each["topologyKey"]) for each in pod_spec(owner)[_SPREAD] if _is_hard_spread(each)]
            return edit_command(
                owner, {pod_path(_SPREAD, each, "whenUnsatisfiable"): "ScheduleAnyway" for each in keys}
            )
        return edit_command(owner, removals=[pod_path("affinity", path)])
    if owner.spec.whole_node:
        return edit_command(owner, removals=["wholeNode"])
    if owner.spec.gpu_types and any(SELECTOR_OBSTACLE in each.text for each in verdict.obstacles):
        wanted = f"gpuType: {join_with_and(owner.spec.gpu_types)}"
        return f"correct {wanted} in the file, or ask for such nodes: kubectl get nodes -L {GPU_TYPE_LABEL}"
    return "kubectl describe nodes, or correct nodeSelector, affinity or tolerations in spec.template"


def _broken_pod_rule(owner: Workload, verdict: SchedulerVerdict) -> str:
    """The field of the file with the rule about other pods that keeps the pod off every node that it could have."""
    spec, texts = pod_spec(owner), [each.text for each in verdict.obstacles]
    affinity = spec.get("affinity", {})
    if affinity.get("podAffinity") and any(AFFINITY_OBSTACLE in each for each in texts):
        return "podAffinity"
    if affinity.get(ANTI_AFFINITY) and any("anti-affinity" in each for each in texts):
        return ANTI_AFFINITY
    has_spread = any(_is_hard_spread(each) for each in spec.get(_SPREAD, ()))
    return _SPREAD if has_spread and any("topology spread" in each for each in texts) else ""


def _is_hard_spread(constraint: Object) -> bool:
    return constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"


def _required_pods(owner: Workload) -> str:
    """The labels of the pods that the file requires nearby; empty if it requires none by labels."""
    affinity = owner.spec.template.get("spec", {}).get("affinity", {}).get("podAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ())
    selectors = [each.get("labelSelector", {}).get("matchLabels", {}) for each in terms]
    labels = [f"{key}={value}" for each in selectors for key, value in each.items()]
    return join_with_and(labels) if labels else ""


def _scarce_resources(verdict: SchedulerVerdict) -> list[str]:
    """Resources that are scarce on every node; if there are none, those that are scarce on any."""
    scarce = [each for each in verdict.obstacles if each.scarce_resource]
    everywhere = [each for each in scarce if each.count == verdict.node_count]
    return sorted(each.scarce_resource for each in everywhere or scarce)


def _requests_text(owner: Workload, resources: list[str]) -> str:
    """Requests of these resources according to the file; empty for kinds that request per role."""
    spec = owner.spec
    template = template_container(owner, owner.main_container_name).get("resources", {}).get("requests", {})
    short_form = {"cpu": spec.cpu, "memory": spec.memory, "gpus": spec.gpus}
    requests = [
        (short_form.get(each) or template.get(GPU_RESOURCE if each == "gpus" else each), each) for each in resources
    ]
    known = [f"{amount} {name}" for amount, name in requests if amount]
    return join_with_and(known) if known else ""


def _claim_problem(context: PodContext, name: str, message: str) -> Problem:
    what = f"a {context.replica} waits for its storage: {f'claim {name}' if name else 'a claim'} is not bound"
    next_ = f"kubectl describe pvc {name} -n {context.owner.metadata.namespace}".replace("  ", " ")
    return Problem(CLAIM_NOT_BOUND, what, context.where, excerpt_start(unschedulable_reasons(message)), next_)
