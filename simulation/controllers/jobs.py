"""The Job controller: parallel pods, retries, completion indexes, failure and success policies."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from pincompute.kube.resource import JOBS, PODS, Object
from pincompute.objects.number_sets import format_numbers, parse_numbers
from pincompute.objects.times import format_time
from simulation.controllers import pods
from simulation.object_store import ObjectStore

INDEX_LABEL = "batch.kubernetes.io/job-completion-index"


class JobProgress(NamedTuple):
    """The progress of a Job by index. A Job without completion indexes gets numbers as well."""

    done: frozenset[int]
    failed: frozenset[int]
    """Indexes that will not be retried."""
    running: dict[int, Object]
    failures: int
    ended: str = ""
    """The reason of an early failure, or empty."""


def reconcile_jobs(store: ObjectStore) -> float | None:
    waits = [
        _reconcile_job(store, each) for each in store.list_all(JOBS) if not each["metadata"].get("deletionTimestamp")
    ]
    return min((each for each in waits if each is not None), default=None)


def _reconcile_job(store: ObjectStore, job: Object) -> float | None:
    if _is_finished(job):
        return _delete_after_ttl(store, job)
    progress = _count_pods(store, job)
    reason = progress.ended or _deadline_reason(store, job)
    completions = _completions(job)
    complete = len(progress.done) >= _required_successes(job)
    if complete or reason or len(progress.done) + len(progress.failed) >= completions:
        for pod in progress.running.values():
            store.delete(PODS, pod)
        failed = not complete
        _update_job_status(
            store, job, progress, "Failed" if failed else "Complete", reason or ("FailedIndexes" if failed else "")
        )
        return None
    if job["spec"].get("suspend"):
        for pod in progress.running.values():
            store.delete(PODS, pod)
    else:
        _start_pods(store, job, progress)
    _update_job_status(store, job, progress, "", "")
    deadline = job["spec"].get("activeDeadlineSeconds")
    return _seconds_left(store, job, deadline) if deadline else None


def _count_pods(store: ObjectStore, job: Object) -> JobProgress:
    """Counts each ended pod once, also if it is removed later."""
    status = job.get("status", {})
    done, failed = (
        set(parse_numbers(status.get("completedIndexes", ""))),
        set(parse_numbers(status.get("failedIndexes", ""))),
    )
    tries: dict[str, int] = store.controller_memory.setdefault(f"tries {job['metadata']['uid']}", {})
    counted: set[str] = store.controller_memory.setdefault(f"counted {job['metadata']['uid']}", set())
    running: dict[int, Object] = {}
    ended = ""
    for pod in pods.controlled_by(store, job):
        number = int(pod["metadata"]["annotations"][INDEX_LABEL])
        if pods.is_live(pod):
            running[number] = pod
        if pods.is_live(pod) or pod["metadata"]["uid"] in counted:
            continue
        counted.add(pod["metadata"]["uid"])
        if pods.pod_phase(pod) == "Succeeded":
            done.add(number)
        elif pods.pod_phase(pod) == "Failed":
            action = _failure_action(job, pod)
            tries[str(number)] = tries.get(str(number), 0) + (action != "Ignore")
            ended = "PodFailurePolicy" if action == "FailJob" else ended
            if action == "FailIndex" or tries[str(number)] > _backoff_limit(job):
                failed.add(number)
    max_failed = job["spec"].get("maxFailedIndexes")
    if max_failed is not None and len(failed) > max_failed:
        ended = "MaxFailedIndexesExceeded"
    if failed and "backoffLimitPerIndex" not in job["spec"]:
        ended = ended or "BackoffLimitExceeded"
    return JobProgress(frozenset(done), frozenset(failed), running, sum(tries.values()), ended)


def _start_pods(store: ObjectStore, job: Object, progress: JobProgress) -> None:
    spec = job["spec"]
    completions = _completions(job)
    free_slots = spec.get("parallelism", 1) - len(progress.running)
    waiting = [
        each for each in range(completions) if each not in progress.done | progress.failed | progress.running.keys()
    ]
    for number in waiting[: max(0, free_slots)]:
        labels = {"batch.kubernetes.io/job-name": job["metadata"]["name"], "job-name": job["metadata"]["name"]}
        if spec.get("completionMode") == "Indexed":
            labels[INDEX_LABEL] = str(number)
        name = pods.unique_name(store, f"{job['metadata']['name']}-{number}")
        pods.create_pod(store, job, spec["template"], name, labels=labels, annotations={INDEX_LABEL: str(number)})
    for number in sorted(progress.running, reverse=True)[: max(0, -free_slots)]:
        store.delete(PODS, progress.running[number])


def _update_job_status(store: ObjectStore, job: Object, progress: JobProgress, condition: str, reason: str) -> None:
    indexed = job["spec"].get("completionMode") == "Indexed"

    def change(each: Any) -> None:
        status = each.setdefault("status", {})
        if not each["spec"].get("suspend"):
            status.setdefault("startTime", format_time(store.now()))
        status |= {"active": 0 if condition else len(progress.running), "succeeded": len(progress.done),
                   "failed": progress.failures}  # fmt: skip
        if indexed:
            status |= {
                "completedIndexes": format_numbers(progress.done),
                "failedIndexes": format_numbers(progress.failed),
            }
        if not condition:
            is_suspended = bool(each["spec"].get("suspend"))
            status["conditions"] = [{"type": "Suspended", "status": "True"}] if is_suspended else []
        else:
            new_condition = {"type": condition, "status": "True", "lastTransitionTime": format_time(store.now())}
            new_condition |= {"reason": reason, "message": reason} if reason else {}
            status["conditions"] = [new_condition]
        if condition == "Complete":
            status["completionTime"] = format_time(store.now())

    store.change(JOBS, job, change)


def _delete_after_ttl(store: ObjectStore, job: Object) -> float | None:
    ttl_s = job["spec"].get("ttlSecondsAfterFinished")
    if ttl_s is None:
        return None
    ended = datetime.fromisoformat(job["status"]["conditions"][0]["lastTransitionTime"])
    left = ttl_s - (store.now() - ended).total_seconds()
    if left <= 0:
        store.delete(JOBS, job)
        return None
    return float(left)


def _is_finished(job: Object) -> bool:
    return any(each["type"] in {"Complete", "Failed"} for each in job.get("status", {}).get("conditions", ()))


def _completions(job: Object) -> int:
    return int(job["spec"].get("completions", 1))


def _required_successes(job: Object) -> int:
    rules = job["spec"].get("successPolicy", {}).get("rules", ())
    return int(rules[0]["succeededCount"]) if rules else _completions(job)


def _backoff_limit(job: Object) -> int:
    return int(job["spec"].get("backoffLimitPerIndex", job["spec"].get("backoffLimit", 6)))


def _failure_action(job: Object, pod: Object) -> str:
    codes = {
        each["name"]: each["state"]["terminated"]["exitCode"]
        for each in pod["status"].get("containerStatuses", ())
        if "terminated" in each["state"]
    }
    for rule in job["spec"].get("podFailurePolicy", {}).get("rules", ()):
        exit_codes = rule.get("onExitCodes")
        if exit_codes is None:
            continue
        code = codes.get(exit_codes.get("containerName"), 0)
        if code and (code in exit_codes["values"]) == (exit_codes["operator"] == "In"):
            return str(rule["action"])
    return "Count"


def _deadline_reason(store: ObjectStore, job: Object) -> str:
    deadline = job["spec"].get("activeDeadlineSeconds")
    return "DeadlineExceeded" if deadline and _seconds_left(store, job, deadline) <= 0 else ""


def _seconds_left(store: ObjectStore, job: Object, seconds: float) -> float:
    started_at = job.get("status", {}).get("startTime")
    if not started_at:
        return float(seconds)
    return float(seconds) - (store.now() - datetime.fromisoformat(started_at)).total_seconds()
