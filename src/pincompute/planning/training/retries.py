"""Retries of a training job: how often its replicas have failed, over all of its pods.

Kubeflow has a limit of its own, `backoffLimit`, which does not suffice: it counts restarts of containers in pods that
run, and neither pods that it replaces (`restart: by-exit-code`) nor, in some versions, any pod at all. The failures are
therefore counted here and recorded in the status by pod, so that those of deleted pods stay counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pincompute.api.training_job import PinterestTrainingJob
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.planning.observed_pods import ContainerStatus, Pod
from pincompute.planning.snapshot import Native, Snapshot


def count_failures(snapshot: Snapshot, job: Native | None) -> dict[str, int]:
    """Failures of each pod by its uid, recorded and observed ones. Pods without a failure are left out."""
    owner: PinterestTrainingJob = snapshot.owner
    recorded: Mapping[str, int] = owner.status.failures
    if job is None or owner.status.ended:
        return dict(recorded)
    pods = (each for each in snapshot.pods if each.metadata.controller_uid == job.metadata.uid)
    # The larger number for equal uids, so that the order of the pods does not matter.
    observed = dict(sorted((each.metadata.uid, _failures_of(each)) for each in pods))
    largest = {uid: max(recorded.get(uid, 0), observed.get(uid, 0)) for uid in sorted({*recorded, *observed})}
    return {uid: count for uid, count in largest.items() if count}


def retries_exhausted(owner: PinterestTrainingJob, failures: Mapping[str, int]) -> bool:
    return sum(failures.values()) > owner.spec.retries


def exhausted_problem(owner: PinterestTrainingJob, failures: Mapping[str, int], last: Problem | None) -> Problem:
    """Problem of a job without retries left. `last` is the failure of a replica, if one is known."""
    if last and not owner.spec.retries:
        return last
    count = sum(failures.values())
    times = "once" if count == 1 else f"{count} times"
    what = f"replicas failed {times} in total, and retries allows {owner.spec.retries}"
    if last:
        return last._replace(what=f"{last.what}; {what}")
    return Problem(
        reasons.REPLICA_FAILED, what, Where(object=owner.metadata.key), next=f"pin rerun {owner.metadata.name}"
    )


def _failures_of(pod: Pod) -> int:
    """Failed runs of the containers of a pod. A disruption by the node or the platform is no failure of the program.

    Of init containers only those count that keep the pod from starting: sidecars restart for a new runtime.
    """
    if pod.has_condition("DisruptionTarget"):
        return 0
    initial = () if pod.has_condition("Initialized") else pod.status.init_container_statuses
    return _failed_runs(pod.status.container_statuses) + _failed_runs(initial)


def _failed_runs(containers: Iterable[ContainerStatus]) -> int:
    """A container failed before each restart, and once more if it waits for the next one."""
    return sum(each.restart_count + _has_just_failed(each) for each in containers)


def _has_just_failed(container: ContainerStatus) -> bool:
    end = container.state.terminated or (container.last_state.terminated if container.state.waiting else None)
    return end is not None and end.exit_code != 0
