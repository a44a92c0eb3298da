"""Jobs: pods that end, tried again as often as is allowed, each with its index or without."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from pincompute.kube.resource import JOBS, PODS, Object
from pincompute.objects.numbers import parse, spell
from pincompute.objects.times import stamp
from simulation.actors import pods
from simulation.store import Store

INDEX = "batch.kubernetes.io/job-completion-index"


class Tally(NamedTuple):
    """How far it has come, by index; a Job without indexes has the numbers all the same."""

    done: frozenset[int]
    failed: frozenset[int]
    """Will not be tried again."""
    running: dict[int, Object]
    failures: int
    ended: str = ""
    """Why it is over although not all is done."""


def keep(store: Store) -> float | None:
    waits = [_keep(store, each) for each in store.all(JOBS) if not each["metadata"].get("deletionTimestamp")]
    return min((each for each in waits if each is not None), default=None)


def _keep(store: Store, job: Object) -> float | None:
    if _over(job):
        return _forget(store, job)
    tally = _count(store, job)
    reason = tally.ended or _late(store, job)
    completions = _completions(job)
    complete = len(tally.done) >= _enough(job)
    if complete or reason or len(tally.done) + len(tally.failed) >= completions:
        for pod in tally.running.values():
            store.delete(PODS, pod)
        failed = not complete
        _tell(store, job, tally, "Failed" if failed else "Complete", reason or ("FailedIndexes" if failed else ""))
        return None
    if job["spec"].get("suspend"):
        for pod in tally.running.values():
            store.delete(PODS, pod)
    else:
        _start(store, job, tally)
    _tell(store, job, tally, "", "")
    deadline = job["spec"].get("activeDeadlineSeconds")
    return _left(store, job, deadline) if deadline else None


def _count(store: Store, job: Object) -> Tally:
    """What ended is counted once and for all: a pod that was removed has ended all the same."""
    status = job.get("status", {})
    done, failed = set(parse(status.get("completedIndexes", ""))), set(parse(status.get("failedIndexes", "")))
    tries: dict[str, int] = store.memory.setdefault(f"tries {job['metadata']['uid']}", {})
    counted: set[str] = store.memory.setdefault(f"counted {job['metadata']['uid']}", set())
    running: dict[int, Object] = {}
    ended = ""
    for pod in pods.of(store, job):
        number = int(pod["metadata"]["annotations"][INDEX])
        if pods.lives(pod):
            running[number] = pod
        if pods.lives(pod) or pod["metadata"]["uid"] in counted:
            continue
        counted.add(pod["metadata"]["uid"])
        if pods.phase(pod) == "Succeeded":
            done.add(number)
        elif pods.phase(pod) == "Failed":
            action = _action(job, pod)
            tries[str(number)] = tries.get(str(number), 0) + (action != "Ignore")
            ended = "PodFailurePolicy" if action == "FailJob" else ended
            if action == "FailIndex" or tries[str(number)] > _limit(job):
                failed.add(number)
    most = job["spec"].get("maxFailedIndexes")
    if most is not None and len(failed) > most:
        ended = "MaxFailedIndexesExceeded"
    if failed and "backoffLimitPerIndex" not in job["spec"]:
        ended = ended or "BackoffLimitExceeded"
    return Tally(frozenset(done), frozenset(failed), running, sum(tries.values()), ended)


def _start(store: Store, job: Object, tally: Tally) -> None:
    spec = job["spec"]
    completions = _completions(job)
    room = spec.get("parallelism", 1) - len(tally.running)
    waiting = [each for each in range(completions) if each not in tally.done | tally.failed | tally.running.keys()]
    for number in waiting[: max(0, room)]:
        labels = {"batch.kubernetes.io/job-name": job["metadata"]["name"], "job-name": job["metadata"]["name"]}
        if spec.get("completionMode") == "Indexed":
            labels[INDEX] = str(number)
        name = pods.numbered(store, f"{job['metadata']['name']}-{number}")
        pods.make(store, job, spec["template"], name, labels=labels, annotations={INDEX: str(number)})
    for number in sorted(tally.running, reverse=True)[: max(0, -room)]:
        store.delete(PODS, tally.running[number])


def _tell(store: Store, job: Object, tally: Tally, condition: str, reason: str) -> None:
    indexed = job["spec"].get("completionMode") == "Indexed"

    def change(each: Any) -> None:
        status = each.setdefault("status", {})
        if not each["spec"].get("suspend"):
            status.setdefault("startTime", stamp(store.now()))
        status |= {"active": 0 if condition else len(tally.running), "succeeded": len(tally.done),
                   "failed": tally.failures}  # fmt: skip
        if indexed:
            status |= {"completedIndexes": spell(tally.done), "failedIndexes": spell(tally.failed)}
        if condition:
            said = {"type": condition, "status": "True", "lastTransitionTime": stamp(store.now())}
            said |= {"reason": reason, "message": reason} if reason else {}
            status["conditions"] = [said]
        if condition == "Complete":
            status["completionTime"] = stamp(store.now())

    store.change(JOBS, job, change)


def _forget(store: Store, job: Object) -> float | None:
    keeps = job["spec"].get("ttlSecondsAfterFinished")
    if keeps is None:
        return None
    ended = datetime.fromisoformat(job["status"]["conditions"][0]["lastTransitionTime"])
    left = keeps - (store.now() - ended).total_seconds()
    if left <= 0:
        store.delete(JOBS, job)
        return None
    return float(left)


def _over(job: Object) -> bool:
    return any(each["type"] in {"Complete", "Failed"} for each in job.get("status", {}).get("conditions", ()))


def _completions(job: Object) -> int:
    return int(job["spec"].get("completions", 1))


def _enough(job: Object) -> int:
    rules = job["spec"].get("successPolicy", {}).get("rules", ())
    return int(rules[0]["succeededCount"]) if rules else _completions(job)


def _limit(job: Object) -> int:
    return int(job["spec"].get("backoffLimitPerIndex", job["spec"].get("backoffLimit", 6)))


def _action(job: Object, pod: Object) -> str:
    codes = {
        each["name"]: each["state"]["terminated"]["exitCode"]
        for each in pod["status"].get("containerStatuses", ())
        if "terminated" in each["state"]
    }
    for rule in job["spec"].get("podFailurePolicy", {}).get("rules", ()):
        said = rule.get("onExitCodes")
        if said is None:
            continue
        code = codes.get(said.get("containerName"), 0)
        if code and (code in said["values"]) == (said["operator"] == "In"):
            return str(rule["action"])
    return "Count"


def _late(store: Store, job: Object) -> str:
    deadline = job["spec"].get("activeDeadlineSeconds")
    return "DeadlineExceeded" if deadline and _left(store, job, deadline) <= 0 else ""


def _left(store: Store, job: Object, seconds: float) -> float:
    began = job.get("status", {}).get("startTime")
    if not began:
        return float(seconds)
    return float(seconds) - (store.now() - datetime.fromisoformat(began)).total_seconds()
