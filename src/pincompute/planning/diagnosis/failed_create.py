"""Pods that the API server rejects: by a quota, pod security, a policy or an admission webhook."""

from __future__ import annotations

import re
from datetime import datetime

from pincompute.api.names import PRIORITY_CLASS_PREFIX, REVISION_ANNOTATION
from pincompute.api.service import PinterestService
from pincompute.api.status import find_condition
from pincompute.api.training_job import PinterestTrainingJob
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    ADMISSION_DENIED,
    ADMISSION_UNREACHABLE,
    CLUSTER_REFUSED,
    CONTROLLER_NOT_RESPONDING,
    KUBEFLOW_NOT_RESPONDING,
    POD_NOT_CREATED,
    POD_REJECTED,
    PRIORITY_MISSING,
    QUOTA_USED_UP,
    ROLLOUT_STALLED,
)
from pincompute.objects.number_sets import scaled_value
from pincompute.planning.diagnosis import quotas
from pincompute.planning.diagnosis.cause import Cause, Causes, Rank, Recheck
from pincompute.planning.diagnosis.excerpts import excerpt_start, format_duration
from pincompute.planning.diagnosis.rejection_remedies import limit_range_remedy, limit_ratio_remedy
from pincompute.planning.edit_commands import edit_command, pod_path
from pincompute.planning.pods.security_level import level_problem
from pincompute.planning.revision_number import present_revision
from pincompute.planning.snapshot import Native, NativeCondition, Snapshot

FORMER_FAILURE_S = 10.0
"""Time after which a failure from before a revision counts as one of the revision, too: Kubernetes does not update the
time of a condition that stays as it was."""
FIRST_POD_GRACE_S = 60.0
"""Time in which the controller of an object should have created its first pod."""
_POD_CONTROLLERS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "PyTorchJob", "TFJob")
_RECORDS_GENERATION = ("Deployment", "StatefulSet", "DaemonSet")
_SECURITY = re.compile(r"violates PodSecurity \"(?P<level>[^:\"]+)[^\"]*\": (?P<rules>.+)")
_POLICY = re.compile(r"ValidatingAdmissionPolicy '(?P<name>[^']+)'[^:]*: (?P<rule>.+)", re.DOTALL)
_WEBHOOK = re.compile(r"admission webhook \"(?P<name>[^\"]+)\" denied the request:? ?(?P<rule>.+)", re.DOTALL)
_SILENT_WEBHOOK = re.compile(r"failed calling webhook \"(?P<name>[^\"]+)\"")
_LIMIT_RANGE = re.compile(
    r"(?P<end>maximum|minimum) (?P<resource>\S+) usage per (?P<of>Container|Pod) is (?P<amount>[^\s,.]+)"
)
_LIMIT_RATIO = re.compile(r"(?P<resource>[\w./-]+) max limit to request ratio per Container is (?P<most>\d+(?:\.\d+)?)")
_RUNTIME_CLASS = re.compile(r"RuntimeClass \"(?P<name>[^\"]+)\" not found")
_FIELD_OF_TEMPLATE = re.compile(
    r"^(?P<field>\w+) is not allowed in the project .*Remove it from spec.template", re.DOTALL
)
"""The platform's own policy about placement."""
_EXPLAINS_NO_PODS = ("ReplicaFailure", "Suspended", "Complete", "Succeeded", "Failed")
"""Conditions of an object that explain why it has no pods."""
_REPLICA_SET_REJECTED = "ReplicaSetCreateError"
"""Reason of a Deployment that may not even create its ReplicaSet, as policies apply to that as well."""
_TRANSIENT_REJECTIONS = ("error looking up service account", "already exists", "being terminated")
"""The service account is created at the same time as the pods, and a name is free only after the old pod is gone."""
REFUSED_WRITE_REASONS = frozenset({QUOTA_USED_UP, ADMISSION_DENIED, ADMISSION_UNREACHABLE})
"""Reasons of a refused object besides those of the operator's own writes."""
RETRYABLE_REASONS = frozenset({QUOTA_USED_UP, ADMISSION_UNREACHABLE})
"""Rejections that may have gone when the controller retries."""


def check_failed_create(snapshot: Snapshot) -> Causes:
    for native in pod_controllers(snapshot):
        failure = native.find_condition("ReplicaFailure") or _failed_progress(native, _REPLICA_SET_REJECTED)
        if failure and (left_s := _former_failure_left_s(snapshot, failure)):
            yield Recheck(left_s)
        elif failure:
            yield from _rejection_cause(snapshot, native, failure.message)
    yield from _check_no_pods(snapshot)


def _former_failure_left_s(snapshot: Snapshot, failure: NativeCondition) -> float:
    """Seconds for which a failure is taken for one of the former revision, whose condition stays for a moment."""
    number, recorded = present_revision(snapshot).number, snapshot.owner.status.revision
    if recorded and number != recorded:
        return FORMER_FAILURE_S
    began = next((each.metadata.creation_timestamp for each in snapshot.natives if _is_record(each, number)), "")
    if not began or failure.last_transition_time is None:
        return 0.0
    age_s = (snapshot.now - datetime.fromisoformat(began)).total_seconds()
    is_former = failure.last_transition_time < datetime.fromisoformat(began)
    return max(0.0, FORMER_FAILURE_S - age_s) if is_former else 0.0


def _is_record(native: Native, number: int) -> bool:
    return native.kind == "ConfigMap" and native.int_annotation(REVISION_ANNOTATION) == number


def check_rollout_deadline(snapshot: Snapshot) -> Causes:
    """A rollout without progress. This says only that time has passed, so every other cause comes first."""
    for native in pod_controllers(snapshot):
        if progressing := _failed_progress(native, "ProgressDeadlineExceeded"):
            what = "the rollout made no progress within its deadline"
            note = excerpt_start(progressing.message)
            yield Cause(
                Problem(ROLLOUT_STALLED, what, _native_object(native), note, _show_command(snapshot)), Rank.SYMPTOM
            )


def _failed_progress(native: Native, reason: str) -> NativeCondition | None:
    progressing = native.find_condition("Progressing", "False")
    return progressing if progressing and progressing.reason == reason else None


def _rejection_cause(snapshot: Snapshot, native: Native, message: str) -> Causes:
    missing_s = _seconds_missing(snapshot, native)
    if is_transient_rejection(message) and missing_s < FIRST_POD_GRACE_S:
        yield Recheck(FIRST_POD_GRACE_S - missing_s)
        return
    problem = rejection_problem(snapshot, message)
    what = f"{problem.what}{_missing_text(snapshot)}"
    rank = Rank.TRANSIENT if problem.reason in RETRYABLE_REASONS else Rank.PERMANENT
    yield Cause(problem._replace(where=_native_object(native), what=what), rank)


def is_transient_rejection(message: str) -> bool:
    """True for a rejection that ends as soon as another object has been created or deleted."""
    return any(each in message for each in _TRANSIENT_REJECTIONS)


def missing_replicas(snapshot: Snapshot) -> int:
    wanted = getattr(snapshot.owner.spec, "replicas", 0)
    return int(wanted) - sum(pod.is_active and pod.workload == snapshot.owner.metadata.name for pod in snapshot.pods)


def rejection_problem(snapshot: Snapshot, message: str) -> Problem:
    """The problem behind the API server's message about a rejected pod."""
    if exceeded := quotas.quota_exceeded_problem(snapshot, message):
        return exceeded._replace(note="; ".join(filter(None, (exceeded.note, _rollout_note(snapshot)))))
    return quotas.quota_unspecified_problem(snapshot, message) or _admission_problem(snapshot, message)


def refused_write_problem(snapshot: Snapshot, refused: Problem) -> Problem:
    """The problem behind the API server's refusal of an object, if a quota or an admission policy refused it."""
    message = refused.what
    if refused.reason is not CLUSTER_REFUSED or not isinstance(snapshot.owner, Workload):
        return refused
    if "exceeded quota" in message and (found := quotas.quota_exceeded_problem(snapshot, message)):
        return found._replace(where=refused.where)
    if "denied the request" in message or "denied request" in message:
        what = str(refused.where) or "an object of the workload"
        return _denied_problem(snapshot.owner, message, what)._replace(where=refused.where)
    if silent := _SILENT_WEBHOOK.search(message):
        return _silent_webhook_problem(snapshot.owner, silent["name"], refused)
    return refused


def _silent_webhook_problem(owner: Workload, name: str, refused: Problem) -> Problem:
    """A webhook that does not respond; that of training jobs is part of Kubeflow's training operator."""
    next_ = f"tell the infrastructure team that admission webhook {name} does not respond"
    if owner.kind == PinterestTrainingJob.__name__ and "training-operator" in name:
        what = "Kubeflow's training operator does not respond"
        return Problem(KUBEFLOW_NOT_RESPONDING, what, refused.where, f"admission webhook {name} is a part of it", next_)
    what = f"admission webhook {name} does not respond"
    return Problem(ADMISSION_UNREACHABLE, what, refused.where, excerpt_start(refused.what), next_)


def _rollout_note(snapshot: Snapshot) -> str:
    """Explains a rejected pod beyond all replicas: a rollout starts it before it ends a former one."""
    owner = snapshot.owner
    if not isinstance(owner, PinterestService) or not owner.spec.replicas or missing_replicas(snapshot) > 0:
        return ""
    replicas, more = owner.spec.replicas, scaled_value(owner.spec.rollout.surge, owner.spec.replicas, up=True)
    return f"a rollout needs {more} more than {replicas} replica{'s' if replicas > 1 else ''}" if more else ""


def _admission_problem(snapshot: Snapshot, message: str) -> Problem:
    excerpt = excerpt_start(message)
    if security := _SECURITY.search(message):
        return level_problem(snapshot.owner, security["level"])._replace(note=excerpt_start(security["rules"]))
    if "PriorityClass" in message:
        what = f"priority class {PRIORITY_CLASS_PREFIX}{snapshot.owner.spec.tier} does not exist"
        next_ = "tell the infrastructure team: the cluster lacks the priority classes of its tiers"
        return Problem(PRIORITY_MISSING, what, note=excerpt, next=next_)
    if "failed calling webhook" in message:
        name = f"admission webhook {found['name']}" if (found := _SILENT_WEBHOOK.search(message)) else "a webhook"
        next_ = f"tell the infrastructure team that {name} does not respond"
        return Problem(ADMISSION_UNREACHABLE, f"{name} for pods does not respond", note=excerpt, next=next_)
    if "denied the request" in message or "denied request" in message:
        return _denied_problem(snapshot.owner, message, "the pods")
    if of_range := _limit_range_problem(snapshot, message):
        return of_range
    next_ = "change what the note names"
    if found := _RUNTIME_CLASS.search(message):
        name = excerpt_start(found["name"])
        excerpt = f"{excerpt}; otherwise ask the infrastructure team for RuntimeClass {name}"
        next_ = edit_command(snapshot.owner, removals=[pod_path("runtimeClassName")])
    return Problem(POD_REJECTED, "Kubernetes rejects the pods", note=excerpt, next=next_)


def _denied_problem(owner: Workload, message: str, what: str) -> Problem:
    """A denial, with the name of the policy or webhook and its own words."""
    found = _POLICY.search(message) or _WEBHOOK.search(message)
    kind = "policy" if found and found.re is _POLICY else "webhook"
    name = f"admission {kind} {found['name']}" if found else "an admission policy of this cluster"
    next_ = f"change what the note names, or ask the infrastructure team for an exception from {name}"
    note = excerpt_start(found["rule"] if found else message)
    if field := _FIELD_OF_TEMPLATE.search(note):
        next_ = edit_command(owner, removals=[pod_path(field[1])])
    return Problem(ADMISSION_DENIED, f"{name} denies {what}", note=note, next=next_)


def _limit_range_problem(snapshot: Snapshot, message: str) -> Problem | None:
    """A pod outside of the bounds of a LimitRange."""
    excerpt = excerpt_start(message)
    if ratio := _LIMIT_RATIO.search(message):
        return _limit_ratio_problem(snapshot, ratio, excerpt)
    if (bound := _LIMIT_RANGE.search(message)) is None:
        return None
    project, most = snapshot.owner.metadata.namespace, "at most" if bound["end"] == "maximum" else "at least"
    amount = f"{most} {bound['amount']} {bound['resource']}"
    what = f"a LimitRange of project {project} requires {amount} for each {bound['of'].lower()}"
    note = f"{excerpt}; otherwise ask for other bounds: kubectl describe limitrange -n {project}"
    return Problem(
        POD_REJECTED, what, note=note, next=limit_range_remedy(snapshot.owner, bound["resource"], bound["amount"])
    )


def _limit_ratio_problem(snapshot: Snapshot, ratio: re.Match[str], excerpt: str) -> Problem:
    """A container whose limit is a larger multiple of its request than a LimitRange allows."""
    project, most, resource = snapshot.owner.metadata.namespace, ratio["most"], ratio["resource"]
    what = f"a LimitRange of project {project} allows a {resource} limit of at most {most} times the request"
    next_ = limit_ratio_remedy(snapshot.owner, resource, most) or f"raise the request of {resource} in the file"
    return Problem(POD_REJECTED, what, note=excerpt, next=next_)


def _check_no_pods(snapshot: Snapshot) -> Causes:
    """An object without any pod. Only a Deployment reports a rejection in its status; the others use events."""
    owner = snapshot.owner
    if any(pod.workload == owner.metadata.name for pod in snapshot.pods):
        return
    for native in pod_controllers(snapshot):
        if any(native.find_condition(each) for each in _EXPLAINS_NO_PODS) or not native.metadata.creation_timestamp:
            continue
        missing_s = _seconds_missing(snapshot, native)
        if missing_s < FIRST_POD_GRACE_S:
            yield Recheck(FIRST_POD_GRACE_S - missing_s)
            continue
        problem = _silent_controller_problem(native) or _no_pods_problem(snapshot)
        yield Cause(problem._replace(where=_native_object(native)), Rank.TRANSIENT)


def _silent_controller_problem(native: Native) -> Problem | None:
    """An object that its controller has not even seen: it records the generation, or the start of a Job, at once."""
    status, generation = native.status, native.metadata.generation
    if native.kind not in _RECORDS_GENERATION and native.kind != "Job":
        return None
    if status.start_time if native.kind == "Job" else generation <= status.observed_generation:
        return None
    what = f"no controller has acted on {native.kind} {native.metadata.name} for {format_duration(FIRST_POD_GRACE_S)}"
    return Problem(CONTROLLER_NOT_RESPONDING, what, note="kube-controller-manager is down", next="pin status")


def _no_pods_problem(snapshot: Snapshot) -> Problem:
    what = f"no {snapshot.owner.REPLICA_NOUN[0]} was created within {format_duration(FIRST_POD_GRACE_S)}"
    note = "a quota or a policy rejects them, or their controller is down: the events tell which"
    return Problem(POD_NOT_CREATED, what, note=note, next=_show_command(snapshot))


def _seconds_missing(snapshot: Snapshot, native: Native) -> float:
    """Time for which pods have been missing: 0 while the goal is reached, and counted from the moment it was lost."""
    owner = snapshot.owner
    goal = find_condition(owner.status.conditions, owner.GOAL)
    if (goal and goal.status == "True") or not native.metadata.creation_timestamp:
        return 0.0
    created = datetime.fromisoformat(native.metadata.creation_timestamp)
    lost = datetime.fromisoformat(goal.last_transition_time) if goal else created
    return (snapshot.now - max(created, lost)).total_seconds()


def pod_controllers(snapshot: Snapshot) -> list[Native]:
    """The objects that create pods, in a stable order."""
    natives = (each for each in snapshot.natives if each.kind in _POD_CONTROLLERS)
    return sorted(natives, key=lambda each: (each.kind, each.metadata.name))


def _missing_text(snapshot: Snapshot) -> str:
    wanted, missing = getattr(snapshot.owner.spec, "replicas", 0), missing_replicas(snapshot)
    return f" ({missing} of {wanted} {snapshot.owner.REPLICA_NOUN[1]} missing)" if wanted > 1 and missing > 0 else ""


def _native_object(native: Native) -> Where:
    return Where(object=f"{native.kind.lower()} {native.metadata.name}")


def _show_command(snapshot: Snapshot) -> str:
    return f"pin show {snapshot.owner.metadata.name}"
