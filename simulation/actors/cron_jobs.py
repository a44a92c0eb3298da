"""CronJobs: a Job when it is due."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pincompute.kube.resource import CRON_JOBS, JOBS, Object
from pincompute.objects.occurrences import following, zone_of
from pincompute.objects.owners import controller_uid
from pincompute.objects.schedule import parse
from pincompute.objects.times import stamp
from simulation.actors import pods
from simulation.store import Store


def keep(store: Store) -> float | None:
    waits = [_keep(store, each) for each in store.all(CRON_JOBS) if not each["metadata"].get("deletionTimestamp")]
    return min((each for each in waits if each is not None), default=None)


def _keep(store: Store, cron_job: Object) -> float | None:
    spec = cron_job["spec"]
    theirs = [each for each in store.all(JOBS) if controller_uid(each) == cron_job["metadata"]["uid"]]
    going = [each for each in theirs if not _outcome(each)]
    for outcome, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        ended = sorted(
            (each for each in theirs if _outcome(each) == outcome), key=lambda each: each["metadata"]["name"]
        )
        for each in ended[: max(0, len(ended) - spec.get(field, 3))]:
            store.delete(JOBS, each)
    if spec.get("suspend"):
        return None
    last = cron_job.get("status", {}).get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"]
    since = datetime.fromisoformat(last)
    due = following(parse(spec["schedule"]), zone_of(spec.get("timeZone", "UTC")), since)
    if due is None:
        return None
    left = (due - store.now()).total_seconds()
    if left > 0:
        return left
    policy = spec.get("concurrencyPolicy", "Allow")
    if going and policy == "Forbid":
        return None
    for each in going if policy == "Replace" else ():
        store.delete(JOBS, each)
    _make(store, cron_job, due)

    def change(each: Any) -> None:
        each["status"] = {"lastScheduleTime": stamp(due)}

    store.change(CRON_JOBS, cron_job, change)
    return 0.0


def _make(store: Store, cron_job: Object, due: datetime) -> None:
    template = cron_job["spec"]["jobTemplate"]
    minutes = int(due.timestamp()) // 60
    metadata = {
        "name": f"{cron_job['metadata']['name']}-{minutes}",
        "namespace": cron_job["metadata"]["namespace"],
        "labels": dict(template.get("metadata", {}).get("labels", {})),
        "annotations": {
            **template.get("metadata", {}).get("annotations", {}),
            "batch.kubernetes.io/cronjob-scheduled-timestamp": stamp(due),
        },
        "ownerReferences": [pods.reference(cron_job)],
    }
    store.create(JOBS, {"metadata": metadata, "spec": template["spec"]})


def _outcome(job: Object) -> str:
    conditions = job.get("status", {}).get("conditions", ())
    return next((each["type"] for each in conditions if each["type"] in {"Complete", "Failed"}), "")
