"""Settings of Jobs beside their pod template, as the imports of Jobs and CronJobs compare them."""

from __future__ import annotations

from typing import Any

from pincompute.objects.content import Object

KUBERNETES_BACKOFF_LIMIT = 6
HOOK_ANNOTATION = "helm.sh/hook"
_MAX_RETRIES = 100
_IGNORED_CONDITION = "DisruptionTarget"
_GENERATED_LABELS = {"controller-uid", "job-name"}
"""Labels that Kubernetes adds to the pods of a Job, some of them with its domain in front."""


def retries(job: Object) -> int:
    """Retries of one task in a range that the field accepts; the comparison reports a larger number."""
    limit = job.get("backoffLimitPerIndex", job.get("backoffLimit", KUBERNETES_BACKOFF_LIMIT))
    return min(int(limit), _MAX_RETRIES)


def completions(job: Object) -> int:
    """Number of tasks. A Job without it ends with the first success, which the comparison reports."""
    return int(job.get("completions") or job.get("parallelism") or 1)


def job_view(job: Object) -> Object:
    """The spec of a Job without its template and what its controller adds."""
    count, parallelism = completions(job), int(job.get("parallelism", 1))
    each_task = "backoffLimitPerIndex" in job or count == 1
    limit = job.get("backoffLimitPerIndex", job.get("backoffLimit", KUBERNETES_BACKOFF_LIMIT))
    is_work_queue = not job.get("completions") and parallelism > 1
    return {
        "tasks": "until one succeeds" if is_work_queue else count,
        "parallelism": min(parallelism, count),
        "retries": f"{limit} of each task" if each_task else f"{limit} of all tasks together",
        "activeDeadlineSeconds": job.get("activeDeadlineSeconds"),
        "ttlSecondsAfterFinished": job.get("ttlSecondsAfterFinished"),
        "suspend": bool(job.get("suspend")),
        "maxFailedIndexes": job.get("maxFailedIndexes"),
        "successPolicy": job.get("successPolicy"),
        "managedBy": job.get("managedBy"),
        "podFailurePolicy": _failure_rules(job),
        **({"completionMode": "Indexed"} if job.get("completionMode") == "Indexed" else {}),
    }


def without_generated_labels(template: Object) -> Object:
    """The template without the labels by which its controller finds the pods."""
    metadata = template.get("metadata") or {}
    labels = {
        name: value
        for name, value in (metadata.get("labels") or {}).items()
        if name.rpartition("/")[2] not in _GENERATED_LABELS
    }
    return {**template, "metadata": {**metadata, "labels": labels}}


def suspension(native: Object) -> str:
    """Value of `suspended` for a suspended object."""
    return "import: it was suspended" if native["spec"].get("suspend") else ""


def _failure_rules(job: Object) -> list[Any]:
    """The rules beside the one of the platform, by which a disruption of a node counts as no retry."""
    return [
        rule
        for rule in (job.get("podFailurePolicy") or {}).get("rules", ())
        if rule.get("action") != "Ignore"
        or [each.get("type") for each in rule.get("onPodConditions") or ()] != [_IGNORED_CONDITION]
    ]
