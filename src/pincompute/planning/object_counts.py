"""Counts the objects and the storage of a plan that a project's quota bounds, beside its pods.

Controllers create some of them from the planned objects: the claims of stateful replicas, the Jobs of a periodic job.
They are counted as if all of them existed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from pincompute.api.names import ATTEMPT_LABEL, CONTENT_ANNOTATION, TASKS_ANNOTATION
from pincompute.objects.content import Object
from pincompute.objects.number_sets import parse_numbers
from pincompute.objects.quantity import parse_quantity
from pincompute.planning.object_quota import OBJECT_RESOURCES, STORAGE
from pincompute.planning.revision import MAX_REVISIONS, SPEC_KEY

_RESOURCE_OF_KIND = {
    "ConfigMap": "config_maps",
    "Service": "services",
    "ServiceAccount": "service_accounts",
    "PersistentVolumeClaim": "claims",
    "Job": "jobs",
    "CronJob": "cron_jobs",
    "Ingress": "ingresses",
}


def count_objects(
    wanted: Iterable[Object], pod_counts: Iterable[tuple[int, Object]], revision: int, content: str
) -> Mapping[str, Fraction]:
    """Amounts by resource. `revision` and `content` are those of the status; `pod_counts` are pods of each template."""
    amounts = dict.fromkeys(OBJECT_RESOURCES, Fraction(0))
    jobs_by_attempt: dict[int, int] = {}
    for native in wanted:
        annotations = native["metadata"].get("annotations", {})
        if native["kind"] == "Job" and TASKS_ANNOTATION in annotations:
            jobs_by_attempt[int(annotations[ATTEMPT_LABEL])] = _jobs_of_attempt(native)
            continue
        for resource, amount in _amounts(native, revision, content):
            amounts[resource] += amount
    for attempt, jobs in jobs_by_attempt.items():
        # Those of former attempts are retained, and have their own files.
        amounts["jobs"] += attempt * jobs
        amounts["config_maps"] += attempt - 1
    for count, template in pod_counts:
        for volume in template["spec"].get("volumes", ()):
            if ephemeral := volume.get("ephemeral"):
                amounts["claims"] += count
                amounts[STORAGE] += count * _ephemeral_storage(ephemeral)
    return amounts


def _jobs_of_attempt(job: Object) -> int:
    """One with an index for each task, or a Job for each task, of which some come later."""
    is_indexed = "completionMode" in job["spec"]
    return 1 if is_indexed else len(parse_numbers(job["metadata"]["annotations"][TASKS_ANNOTATION]))


def _amounts(native: Object, revision: int, content: str) -> Iterator[tuple[str, int | Fraction]]:
    kind, spec = native["kind"], native.get("spec", {})
    if kind in _RESOURCE_OF_KIND:
        yield _RESOURCE_OF_KIND[kind], 1
    match kind:
        case "ConfigMap" if SPEC_KEY in native.get("data", {}):
            is_new = native["metadata"]["annotations"].get(CONTENT_ANNOTATION) != content
            yield "config_maps", min(revision + is_new, MAX_REVISIONS) - 1
        case "PersistentVolumeClaim":
            yield STORAGE, _storage(native)
        case "StatefulSet":
            for template in spec.get("volumeClaimTemplates", ()):
                yield "claims", spec["replicas"]
                yield STORAGE, spec["replicas"] * _storage(template)
        case "CronJob":
            yield "jobs", spec["successfulJobsHistoryLimit"] + spec["failedJobsHistoryLimit"]
        case "PyTorchJob":
            # Kubeflow creates a Service for the master alone.
            yield "services", 1
        case "TFJob":
            yield "services", sum(role["replicas"] for role in spec["tfReplicaSpecs"].values())


def _ephemeral_storage(volume: Any) -> Fraction:
    """The storage of a volume in a template, which may have any content: what the API server refuses counts as 0."""
    try:
        return max(Fraction(0), _storage(volume["volumeClaimTemplate"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return Fraction(0)


def _storage(claim: Object) -> Fraction:
    return parse_quantity(claim["spec"]["resources"]["requests"]["storage"])
