"""The replicas of a StatefulSet: which are up to date, what blocks the rollout, and which to evict.

In: the pods, the template they should have, and the StatefulSet as last seen. Out: the replicas by revision, the first
problem of the rollout, and at most one eviction.

Kubernetes rolls out a StatefulSet from the last replica to the first, and goes on only while all of them are ready. It
therefore stops forever at a replica of a former revision that can never become ready, although the newest revision
would repair it. This module evicts such a replica, one at a time, so that Kubernetes recreates it from the newest
template. It never does so while a replica of the newest revision fails: a broken revision must not spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pincompute.api.names import CLAIMS_ANNOTATION, IMMUTABLE_HASH_ANNOTATION
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.objects.content import Object
from pincompute.planning import names
from pincompute.planning.diagnosis import Finding, first_cause, pod_startup, probes
from pincompute.planning.diagnosis.cause import Cause, PodContext, Recheck
from pincompute.planning.observed_pods import Pod
from pincompute.planning.plan import soonest
from pincompute.planning.pods.pod import BuiltTemplate
from pincompute.planning.pods.unrecoverable import unrecoverable_problem
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.status import paused_problem
from pincompute.planning.steps import Evict

_PROBE_REASONS = frozenset({reasons.HEALTH_CHECK_FAILED, reasons.PORT_NOT_LISTENING, reasons.PROBE_FAILED})


class StatefulReplicas(NamedTuple):
    """Pods of the wanted replicas, the last one first, which is the order of a rollout."""

    current: tuple[Pod, ...]
    """Pods of the newest revision, and those held back by the partition."""
    former: tuple[Pod, ...]

    @property
    def ready_count(self) -> int:
        return sum(each.ready for each in (*self.current, *self.former))


def find_replicas(owner: PinterestStatefulSet, built: BuiltTemplate, pods: Sequence[Pod]) -> StatefulReplicas:
    """Sort the pods by revision. Pods beyond the number of replicas are about to be deleted and left out."""
    indexed = sorted(((_replica_index(owner, each), each) for each in pods), key=lambda each: -each[0])
    wanted = [pod for index, pod in indexed if 0 <= index < owner.spec.replicas]
    current = tuple(each for each in wanted if each.template_hash == built.template_hash or _is_held_back(owner, each))
    return StatefulReplicas(current, tuple(each for each in wanted if each not in current))


def rollout_partition(owner: PinterestStatefulSet) -> int:
    """Number of replicas, from the first, that keep the former revision; all of them while the rollout is paused."""
    return owner.spec.replicas if owner.spec.rollout.paused else owner.spec.rollout.partition


def rollout_finding(snapshot: Snapshot, replicas: StatefulReplicas) -> Finding:
    """First problem of the rollout: a pause, a failing replica of the newest revision, or one that blocks it."""
    paused = paused_problem(snapshot.owner)
    if paused:
        return Finding(paused)
    newest = first_cause(snapshot, replicas.current)
    if newest.problem:
        return newest
    checks = (_startup_check(snapshot, pod) for pod in replicas.former)
    rechecks = [check.after_s for check in checks if isinstance(check, Recheck)]
    return _blocking_finding(snapshot, replicas) or newest._replace(
        recheck_after_s=soonest(newest.recheck_after_s, *rechecks)
    )


def partition_problems(snapshot: Snapshot, wanted: Object) -> tuple[Problem, ...]:
    """Refuses a change of immutable fields while replicas are held back.

    The StatefulSet would be recreated, and a new one does not know the former revision of its replicas.
    """
    owner, existing = snapshot.owner, snapshot.owned_native("StatefulSet")
    wanted_hash = wanted["metadata"]["annotations"][IMMUTABLE_HASH_ANNOTATION]
    if (
        existing is None
        or not rollout_partition(owner)
        or existing.metadata.annotations.get(IMMUTABLE_HASH_ANNOTATION, wanted_hash) == wanted_hash
    ):
        return ()
    return (
        Problem(
            reasons.CANNOT_CHANGE,
            "claims and order cannot change while replicas are held back on a former revision",
            Where(object=owner.metadata.key),
            next="remove rollout.paused and rollout.partition first",
        ),
    )


def evictions_of_stuck_replicas(snapshot: Snapshot, wanted: Object, replicas: StatefulReplicas) -> tuple[Evict, ...]:
    """At most one eviction, of a replica for which Kubernetes alone would wait forever.

    Kubernetes waits for all replicas to be ready before it replaces one, even if a former one can never be ready, and
    it does not give existing replicas a claim that was added later.
    """
    owner: PinterestStatefulSet = snapshot.owner
    failing = any(unrecoverable_problem(snapshot, each) for each in replicas.current)
    if owner.spec.rollout.paused or failing or not _is_observed(snapshot, wanted):
        return ()
    not_ready = (each for each in replicas.former if not each.ready)
    stuck = [
        each
        for each in not_ready
        if _lacks_claim(owner, each) or not each.has_condition("PodScheduled") or _blocking_problem(snapshot, each)
    ]
    all_ready = replicas.ready_count == owner.spec.replicas
    lacking_claim = [each for each in replicas.former if all_ready and _lacks_claim(owner, each)]
    return tuple(Evict(each.metadata.name, each.metadata.uid) for each in (*stuck, *lacking_claim)[:1])


def _blocking_finding(snapshot: Snapshot, replicas: StatefulReplicas) -> Finding | None:
    for pod in replicas.former:
        problem = _blocking_problem(snapshot, pod)
        if problem:
            what = f"{pod.metadata.name}, of a former revision, blocks the rollout"
            return Finding(Problem(reasons.ROLLOUT_BLOCKED, what, problem.where, problem.message(), problem.next))
    return None


def _blocking_problem(snapshot: Snapshot, pod: Pod) -> Problem | None:
    """Problem of a former replica, including slowness: there is no need to wait for it to start."""
    check = _startup_check(snapshot, pod)
    return unrecoverable_problem(snapshot, pod) or (check.problem if isinstance(check, Cause) else None)


def _startup_check(snapshot: Snapshot, pod: Pod) -> Cause | Recheck | None:
    if pod.ready:
        return None
    context = PodContext(snapshot.owner, pod, snapshot.now, snapshot.runtimes)
    checks = (pod_startup.check_pod_startup, probes.check_probes)
    found = next((each for check in checks for each in check(context)), None)
    if isinstance(found, Cause) and found.problem.reason in _PROBE_REASONS:
        # The message names the probe of the newest revision; that of a former revision is not known any more.
        found = found._replace(problem=found.problem._replace(what="the program runs but is not ready", next=""))
    return found


def _is_observed(snapshot: Snapshot, wanted: Object) -> bool:
    """True if Kubernetes has observed the wanted StatefulSet, so that it recreates an evicted replica from that."""
    existing = snapshot.owned_native("StatefulSet")
    return existing is not None and existing.generation_observed and existing.has_content(wanted)


def _replica_index(owner: PinterestStatefulSet, pod: Pod) -> int:
    """Index counted from the first ordinal; -1 for other pods."""
    number = names.ordinal(owner, pod.metadata.name)
    return -1 if number is None else number - owner.spec.ordinals.start


def _is_held_back(owner: PinterestStatefulSet, pod: Pod) -> bool:
    return _replica_index(owner, pod) < owner.spec.rollout.partition


def _lacks_claim(owner: PinterestStatefulSet, pod: Pod) -> bool:
    """True if the pod was created before one of the claims was added to the spec."""
    return not owner.spec.all_claims.keys() <= set(pod.metadata.annotations.get(CLAIMS_ANNOTATION, "").split())
