"""Whether the ready replicas of a workload are registered in its serverset."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pincompute.api.names import REGISTERED
from pincompute.api.service import PinterestService
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import ENSEMBLE_UNREACHABLE, REGISTRAR_NOT_RESPONDING
from pincompute.objects.times import format_time
from pincompute.planning.diagnosis.address import SERVED, AddressFinding
from pincompute.planning.observed_pods import Pod, PodCondition
from pincompute.planning.snapshot import Snapshot

REGISTRATION_GRACE_S = 30.0
"""Time in which a ready replica should have been registered, also on a machine that is short of CPU."""


def check_registration(snapshot: Snapshot, pods: Sequence[Pod]) -> AddressFinding:
    """Check a workload with ready replicas. Simulated replicas have no address that could be registered."""
    owner: PinterestService | PinterestStatefulSet = snapshot.owner
    if owner.spec.serverset is None or snapshot.cluster.simulated or owner.spec.simulated:
        return SERVED
    missing = [each for each in pods if each.ready and not each.has_condition(REGISTERED)]
    if not missing:
        return SERVED
    first = min(missing, key=lambda each: (_since(each, snapshot.now), each.metadata.name))
    left_s = REGISTRATION_GRACE_S - (snapshot.now - _since(first, snapshot.now)).total_seconds()
    if left_s > 0:
        awaited = f"waiting for the registration of {len(missing)} in the serverset {owner.metadata.key}"
        return AddressFinding(awaited=awaited, recheck_after_s=left_s)
    return AddressFinding(_unregistered_problem(snapshot, first, len(missing)))


def _unregistered_problem(snapshot: Snapshot, pod: Pod, count: int) -> Problem:
    owner: PinterestService | PinterestStatefulSet = snapshot.owner
    where = Where(object=owner.metadata.key, field="spec.serverset")
    since = format_time(_since(pod, snapshot.now))
    verb = "replica is" if count == 1 else "replicas are"
    what = f"{count} ready {verb} not registered in the serverset {owner.metadata.key}"
    reported = _condition(pod, REGISTERED)
    if reported is None:
        note = f"{pod.metadata.name} is ready since {since}; no registrar of node {pod.spec.node_name} has reported"
        return Problem(REGISTRAR_NOT_RESPONDING, what, where, note, "pin status, or pin up --with zookeeper")
    note = f"{pod.metadata.name} is missing since {since}; its registrar: {reported.message}"
    return Problem(ENSEMBLE_UNREACHABLE, what, where, note, "pin status")


def _since(pod: Pod, now: datetime) -> datetime:
    """Time since which the pod is ready, or no longer registered."""
    times = [each.last_transition_time for each in (_condition(pod, "Ready"), _condition(pod, REGISTERED)) if each]
    return max((each for each in times if each), default=now)


def _condition(pod: Pod, name: str) -> PodCondition | None:
    return next((each for each in pod.status.conditions if each.type == name), None)
