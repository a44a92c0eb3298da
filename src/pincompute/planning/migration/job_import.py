"""Import of a Job as a job set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pincompute.api.job_set import PinterestJobSet
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, object_label
from pincompute.planning.migration.effective_template import ConfigMapsByName
from pincompute.planning.migration.job_settings import (
    HOOK_ANNOTATION,
    completions,
    job_view,
    retries,
    suspension,
    without_generated_labels,
)
from pincompute.planning.migration.related_objects import RelatedObjects
from pincompute.planning.migration.short_form import PodForm, short_form_spec
from pincompute.planning.migration.traffic import Traffic
from pincompute.planning.migration.workload_import import WorkloadImport, build_import, membership_problems

_DEFAULT_RETRIES = 2
_MIN_KEEP_S, _DEFAULT_KEEP_S = 60, 86_400


def import_job(found: RelatedObjects, name: str = "", items: Sequence[str] = ()) -> WorkloadImport:
    """Refused if no file could represent the Job. `items` are those of its tasks."""
    refuse_all((*membership_problems(found), *_owner_problems(found)))
    name = name or found.name
    template = without_generated_labels(found.template)
    found = found._replace(native={**found.native, "spec": {**found.native["spec"], "template": template}})
    files: ConfigMapsByName = {each["metadata"]["name"]: each for each in found.config_maps}
    job = found.native["spec"]
    count, limit = completions(job), retries(job)
    parallelism = min(int(job.get("parallelism", 1)), count)
    keep_s = job.get("ttlSecondsAfterFinished")
    spec = {
        **short_form_spec(template, name, Traffic(), files, PodForm()),
        "tasks": None if items else count,
        "items": list(items),
        "parallelism": parallelism if parallelism != count else None,
        "retries": limit if limit != _DEFAULT_RETRIES else None,
        "deadlineSeconds": job.get("activeDeadlineSeconds"),
        "maxFailed": job.get("maxFailedIndexes"),
        "keepSeconds": keep_s if keep_s and keep_s >= _MIN_KEEP_S and keep_s != _DEFAULT_KEEP_S else None,
        "suspended": suspension(found.native),
    }
    imported = build_import(PinterestJobSet, found, name, spec, _job_set_view)
    kept = (
        f"ttlSecondsAfterFinished: {'none' if keep_s is None else keep_s} -> {spec['keepSeconds'] or _DEFAULT_KEEP_S}"
    )
    is_kept = keep_s == (spec["keepSeconds"] or _DEFAULT_KEEP_S)
    return imported._replace(differences=(*imported.differences, *(() if is_kept else (kept,))))


def _owner_problems(found: RelatedObjects) -> Iterator[Problem]:
    """A Job of a CronJob comes over with it, and a hook of Helm belongs to an installation."""
    where, metadata = Where(object=f"{found.namespace}/{found.name}"), found.native["metadata"]
    owner = next((each for each in metadata.get("ownerReferences") or () if each.get("controller")), None)
    if owner:
        what = f"{object_label(found.native)} is a run of {owner['kind']}/{owner['name']}"
        yield Problem(CANNOT_IMPORT, what, where, next=f"pin import {owner['kind'].lower()}/{owner['name']}")
    elif hook := (metadata.get("annotations") or {}).get(HOOK_ANNOTATION):
        what = f"{object_label(found.native)} is a Helm hook: it runs at {hook} only"
        yield Problem(CANNOT_IMPORT, what, where, next="run its command in the build, or in an init container")


def _job_set_view(job: Object) -> Object:
    """The time to live is compared apart: the platform removes finished Jobs itself."""
    return {name: value for name, value in job_view(job["spec"]).items() if name != "ttlSecondsAfterFinished"} | {
        "completionMode": "Indexed"
    }
