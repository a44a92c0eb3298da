"""A node that lost, refused or ended a copy."""

from __future__ import annotations

from datetime import datetime

from pincompute.base.problem import Problem
from pincompute.base.reasons import DEADLINE_EXCEEDED, EVICTED, NODE_LOST, NODE_REFUSED, PREEMPTED
from pincompute.planning.snapshot import PodCondition, Snapshot
from pincompute.planning.why.cause import Cause, Copy, Rank, Seen
from pincompute.planning.why.words import beginning, lasting

GOING = 60.0
"""Seconds beyond its own grace that a copy may take to be gone."""
_ENDED_BY_NODE = ("Evicted", "NodeShutdown", "Terminated")
_LOST = ("NodeLost", "DeletionByTaintManager", "DeletionByPodGC")


def look(copy: Copy) -> Seen:
    status = copy.pod.status
    disrupted = copy.disruption
    if status.reason == "DeadlineExceeded":
        yield _too_long(copy)
    elif (
        status.reason in _LOST
        or status.phase == "Unknown"
        or _unheard(copy)
        or (disrupted and disrupted.reason in _LOST)
    ):
        yield _lost(copy)
    elif disrupted and disrupted.reason == "PreemptionByScheduler":
        yield _preempted(copy, disrupted)
    elif disrupted or status.reason in _ENDED_BY_NODE:
        yield _evicted(copy, status.message or (disrupted.message if disrupted else ""))
    elif status.phase == "Failed" and status.reason and not any(each.state.terminated for each in copy.containers):
        yield _refused(copy)


def stuck(snapshot: Snapshot) -> Seen:
    """Copies that were to be gone: their names and claims may be what a new one waits for."""
    owner = snapshot.owner
    for pod in snapshot.pods:
        when = pod.metadata.deletion_timestamp
        if pod.workload != owner.metadata.name or not when or pod.status.phase in {"Failed", "Succeeded"}:
            continue
        late = (snapshot.now - datetime.fromisoformat(when)).total_seconds()
        if late > GOING:
            copy = Copy(owner, pod, snapshot.now, snapshot.runtimes)
            what = f"a former {owner.COPY[0]} is not gone, {lasting(GOING)} and more after its time"
            yield Cause(Problem(NODE_LOST, what, copy.where, "its node has not said so", _find(copy)), Rank.LAST)


def _unheard(copy: Copy) -> bool:
    """Its containers were last seen well, and then its node was heard of no more."""
    ready = next((each for each in copy.pod.status.conditions if each.type == "Ready"), None)
    silent = ready is not None and (ready.status == "Unknown" or (ready.status == "False" and not ready.reason))
    return silent and copy.pod.says("ContainersReady")


def _lost(copy: Copy) -> Cause:
    what = f"a {copy.owner.COPY[0]} runs on a node that is not heard of any more"
    return Cause(Problem(NODE_LOST, what, copy.where, beginning(copy.pod.status.message), _find(copy)), Rank.SLOW)


def _preempted(copy: Copy, condition: PodCondition) -> Cause:
    what = f"a {copy.owner.COPY[0]} was ended to make room for work of a higher tier"
    next_ = f"take a higher tier than tier: {copy.owner.spec.tier}, or wait for room"
    return Cause(Problem(PREEMPTED, what, copy.where, beginning(condition.message), next_), Rank.SLOW)


def _evicted(copy: Copy, words: str) -> Cause:
    emptied = copy.disruption and copy.disruption.reason == "EvictionByEvictionAPI"
    what = f"a {copy.owner.COPY[0]} was ended {'while its node was emptied' if emptied else 'by its node'}"
    memory = "raise memory in the file to what it uses, or wait for a new one"
    next_ = memory if "memory" in words else "wait for a new one, or: kubectl get nodes"
    return Cause(Problem(EVICTED, what, copy.where, beginning(words), next_), Rank.SLOW)


def _refused(copy: Copy) -> Cause:
    what = f"a node refused a {copy.owner.COPY[0]} ({copy.pod.status.reason})"
    return Cause(
        Problem(NODE_REFUSED, what, copy.where, beginning(copy.pod.status.message), "kubectl get nodes"), Rank.SLOW
    )


def _too_long(copy: Copy) -> Cause:
    what = f"a {copy.owner.COPY[0]} ran longer than it may"
    next_ = "raise the deadline in the file"
    return Cause(Problem(DEADLINE_EXCEEDED, what, copy.where, beginning(copy.pod.status.message), next_))


def _find(copy: Copy) -> str:
    return f"kubectl get nodes; kubectl get pod {copy.pod.metadata.name} -o wide -n {copy.owner.metadata.namespace}"
