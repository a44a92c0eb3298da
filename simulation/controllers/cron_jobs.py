"""The CronJob controller: creates a Job at each scheduled time and keeps a limited history."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pincompute.kube.resource import CRON_JOBS, JOBS, Object
from pincompute.objects.cron_schedule import parse_schedule
from pincompute.objects.owners import controller_uid
from pincompute.objects.schedule_times import load_time_zone, next_time
from pincompute.objects.times import format_time
from simulation.controllers import pods
from simulation.object_store import ObjectStore


def reconcile_cron_jobs(store: ObjectStore) -> float | None:
    waits = [
        _reconcile_cron_job(store, each)
        for each in store.list_all(CRON_JOBS)
        if not each["metadata"].get("deletionTimestamp")
    ]
    return min((each for each in waits if each is not None), default=None)


def _reconcile_cron_job(store: ObjectStore, cron_job: Object) -> float | None:
    spec = cron_job["spec"]
    jobs = [each for each in store.list_all(JOBS) if controller_uid(each) == cron_job["metadata"]["uid"]]
    active = [each for each in jobs if not _job_outcome(each)]
    for outcome, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
        ended = sorted(
            (each for each in jobs if _job_outcome(each) == outcome), key=lambda each: each["metadata"]["name"]
        )
        for each in ended[: max(0, len(ended) - spec.get(field, 3))]:
            store.delete(JOBS, each)
    if spec.get("suspend"):
        return None
    last = cron_job.get("status", {}).get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"]
    since = datetime.fromisoformat(last)
    due = next_time(parse_schedule(spec["schedule"]), load_time_zone(spec.get("timeZone", "UTC")), since)
    if due is None:
        return None
    left = (due - store.now()).total_seconds()
    if left > 0:
        return left
    policy = spec.get("concurrencyPolicy", "Allow")
    if active and policy == "Forbid":
        return None
    for each in active if policy == "Replace" else ():
        store.delete(JOBS, each)
    _create_job(store, cron_job, due)

    def change(each: Any) -> None:
        each["status"] = {"lastScheduleTime": format_time(due)}

    store.change(CRON_JOBS, cron_job, change)
    return 0.0


def _create_job(store: ObjectStore, cron_job: Object, due: datetime) -> None:
    template = cron_job["spec"]["jobTemplate"]
    minutes = int(due.timestamp()) // 60
    metadata = {
        "name": f"{cron_job['metadata']['name']}-{minutes}",
        "namespace": cron_job["metadata"]["namespace"],
        "labels": dict(template.get("metadata", {}).get("labels", {})),
        "annotations": {
            **template.get("metadata", {}).get("annotations", {}),
            "batch.kubernetes.io/cronjob-scheduled-timestamp": format_time(due),
        },
        "ownerReferences": [pods.owner_reference_to(cron_job)],
    }
    store.create(JOBS, {"metadata": metadata, "spec": template["spec"]})


def _job_outcome(job: Object) -> str:
    conditions = job.get("status", {}).get("conditions", ())
    return next((each["type"] for each in conditions if each["type"] in {"Complete", "Failed"}), "")
