"""Import of a CronJob."""

from __future__ import annotations

from collections.abc import Iterator

from pincompute.api.cron_job import PinterestCronJob
from pincompute.base.problem import refuse_all
from pincompute.objects.content import Object
from pincompute.planning.migration.effective_template import ConfigMapsByName, without_platform_names
from pincompute.planning.migration.job_settings import job_view, retries, suspension
from pincompute.planning.migration.related_objects import RelatedObjects
from pincompute.planning.migration.short_form import PodForm, short_form_spec
from pincompute.planning.migration.traffic import Traffic
from pincompute.planning.migration.workload_import import WorkloadImport, build_import, membership_problems

_OVERLAP = {"Allow": "allow", "Forbid": "", "Replace": "replace"}
_DEFAULT_RETRIES = 2
_KUBERNETES_HISTORY = {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
_PLATFORM_HISTORY = 3


def import_cron_job(found: RelatedObjects, name: str = "") -> WorkloadImport:
    """Refused if no file could represent the CronJob."""
    refuse_all(membership_problems(found))
    name = name or found.name
    files: ConfigMapsByName = {each["metadata"]["name"]: each for each in found.config_maps}
    native, job = found.native["spec"], found.native["spec"]["jobTemplate"]["spec"]
    zone = native.get("timeZone") or "UTC"
    limit = retries(job)
    spec = {
        **short_form_spec(found.template, name, Traffic(), files, PodForm()),
        "schedule": " ".join(str(native["schedule"]).split()),
        "timeZone": zone if zone != "UTC" else None,
        "overlap": _OVERLAP.get(native.get("concurrencyPolicy") or "Allow"),
        "startWithinSeconds": native.get("startingDeadlineSeconds") or None,
        "deadlineSeconds": job.get("activeDeadlineSeconds"),
        "retries": limit if limit != _DEFAULT_RETRIES else None,
        "keep": dict(_history(native)),
        "suspended": suspension(found.native),
    }
    return build_import(PinterestCronJob, found, name, spec, _cron_job_view)


def _history(native: Object) -> Iterator[tuple[str, int]]:
    """Numbers of finished runs to keep, unless they are a default of Kubernetes or of the platform."""
    for field, ours in (("successfulJobsHistoryLimit", "succeeded"), ("failedJobsHistoryLimit", "failed")):
        number = native.get(field, _KUBERNETES_HISTORY[field])
        if number not in {_KUBERNETES_HISTORY[field], _PLATFORM_HISTORY} and 1 <= number <= 100:
            yield ours, number


def _cron_job_view(cron_job: Object) -> Object:
    spec = cron_job["spec"]
    template = spec["jobTemplate"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {
        "schedule": " ".join(str(spec["schedule"]).split()),
        "timeZone": spec.get("timeZone") or "UTC",
        "concurrencyPolicy": spec.get("concurrencyPolicy") or "Allow",
        "suspend": bool(spec.get("suspend")),
        "startingDeadlineSeconds": spec.get("startingDeadlineSeconds"),
        "history": {field: spec.get(field, default) for field, default in _KUBERNETES_HISTORY.items()},
        "labels of its Jobs": without_platform_names(labels),
        "job": job_view(template["spec"]),
    }
