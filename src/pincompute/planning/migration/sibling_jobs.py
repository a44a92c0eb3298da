"""Jobs of one template: those that differ in names, command words, arguments and variables become one job set.

Each difference becomes an item of the task list. A group with a difference that no item can express is refused as a
whole, and its Jobs are imported one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pincompute.api.job_set import PinterestJobSet
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, content_hash
from pincompute.planning.migration.job_settings import (
    HOOK_ANNOTATION,
    KUBERNETES_BACKOFF_LIMIT,
    completions,
    without_generated_labels,
)
from pincompute.planning.migration.short_form import choose_main_container
from pincompute.planning.migration.sibling_program import common_start, program_key, with_task_values

MIN_SIBLINGS = 3
"""Two similar Jobs are often two steps, such as `migrate up` and `migrate down`; three follow a template."""
_REPLACED_FIELDS = frozenset({"selector", "manualSelector", "backoffLimit", "activeDeadlineSeconds"})
_WHOLE_JOB_FIELDS = frozenset({"maxFailedIndexes", "successPolicy"})
"""Fields with another meaning for a Job with many tasks."""
_METADATA_FIELDS = ("labels", "annotations")


class MergedJob(NamedTuple):
    """The Job that runs all siblings as its tasks."""

    native: Object
    items: tuple[str, ...]
    """The item of each task; empty if the number of the task suffices."""
    differences: tuple[str, ...]


def sibling_groups(jobs: Iterable[Object], key: Callable[[Object], str | None]) -> list[tuple[Object, ...]]:
    """Groups of Jobs with the same key, in the order of their names; numbers in names are compared as numbers."""
    groups: dict[str, list[Object]] = {}
    for job in jobs:
        if (job_key := key(job)) is not None:
            groups.setdefault(job_key, []).append(job)
    return [tuple(sorted(each, key=_name_order)) for each in groups.values() if len(each) >= MIN_SIBLINGS]


def sibling_key(job: Object) -> str | None:
    """Hash of the fields in which siblings are equal. None for a Job of several tasks, or with an owner."""
    metadata, spec = job["metadata"], job["spec"]
    belongs_to_another = (
        metadata.get("ownerReferences")
        or HOOK_ANNOTATION in (metadata.get("annotations") or {})
        or WORKLOAD_LABEL in (metadata.get("labels") or {})
    )
    if belongs_to_another or completions(spec) != 1 or spec.keys() & _WHOLE_JOB_FIELDS:
        return None
    template = _named_alike(job, "")
    main = _main_index(job)
    containers = template["spec"]["containers"]
    content = {
        "namespace": metadata["namespace"],
        "spec": {name: value for name, value in spec.items() if name not in {"template", "selector"}},
        "metadata": {field: sorted(template["metadata"].get(field) or {}) for field in _METADATA_FIELDS},
        "pod": {**template["spec"], "containers": [*containers[:main], *containers[main + 1 :]]},
        "main": program_key(containers[main]),
        "index": main,
    }
    return content_hash(content)


def sibling_name(jobs: Sequence[Object]) -> str:
    """The start or the end that all names share, else the name of the first: `resize-1`, `resize-2` are `resize`."""
    names = [str(each["metadata"]["name"]) for each in jobs]
    start = common_start(names).rpartition("-")[0]
    end = common_start([each[::-1] for each in names]).rpartition("-")[0][::-1]
    for name in (start, end):
        clean = re.sub(r"[^a-z0-9]+", "-", name)[: PinterestJobSet.MAX_NAME_LENGTH].strip("-")
        if re.fullmatch(PinterestJobSet.NAME_PATTERN, clean):
            return clean
    return names[0]


def merge_siblings(jobs: Sequence[Object], name: str) -> MergedJob:
    """Refused if a difference cannot be expressed by items."""
    first = jobs[0]
    spec = first["spec"]
    templates = [_named_alike(each, name) for each in jobs]
    template, differences = _without_differing_metadata(templates)
    main = _main_index(first)
    program = with_task_values(template, [each["spec"]["containers"][main] for each in templates])
    pod = {**template["spec"], "containers": list(template["spec"]["containers"])}
    pod["containers"][main] = program.container
    if choose_main_container(pod["containers"], name, "") is not program.container:
        raise Refused(Problem(CANNOT_IMPORT, f"one of their other containers has the name {name}"))
    deadline_s = spec.get("activeDeadlineSeconds")
    if deadline_s is not None:
        pod["activeDeadlineSeconds"] = min(deadline_s, pod.get("activeDeadlineSeconds") or deadline_s)
        differences.append(f"deadline: {deadline_s} s of a Job with its retries -> {deadline_s} s of each retry")
    merged = {field: value for field, value in spec.items() if field not in _REPLACED_FIELDS} | {
        "completions": len(jobs),
        "parallelism": len(jobs),
        "completionMode": "Indexed",
        "backoffLimitPerIndex": spec.get("backoffLimitPerIndex", spec.get("backoffLimit", KUBERNETES_BACKOFF_LIMIT)),
        "template": {**template, "spec": pod},
    }
    metadata = {"name": name, "namespace": first["metadata"]["namespace"]}
    native = {"apiVersion": first["apiVersion"], "kind": "Job", "metadata": metadata, "spec": merged}
    return MergedJob(native, program.items, (*program.differences, *differences))


def _name_order(job: Object) -> list[tuple[str, int]]:
    parts = re.findall(r"(\D*)(\d*)", job["metadata"]["name"])
    return [(text, int(number or -1)) for text, number in parts]


def _main_index(job: Object) -> int:
    """The container with the name of the Job, else the first."""
    names = [each["name"] for each in job["spec"]["template"]["spec"]["containers"]]
    name = job["metadata"]["name"]
    return names.index(name) if name in names else 0


def _named_alike(job: Object, name: str) -> Object:
    """The template with `name` in place of the Job's own name, in labels and as the name of a container."""
    own = job["metadata"]["name"]
    template = without_generated_labels(job["spec"]["template"])
    metadata = template["metadata"]
    labels = {label: name if value == own else value for label, value in metadata["labels"].items()}
    containers = [
        {**each, "name": name if each["name"] == own else each["name"]} for each in template["spec"]["containers"]
    ]
    return {
        **template,
        "metadata": {**metadata, "labels": labels},
        "spec": {**template["spec"], "containers": containers},
    }


def _without_differing_metadata(templates: Sequence[Object]) -> tuple[Object, list[str]]:
    """The first template without labels and annotations that differ: all tasks have the same."""
    first: Object = templates[0]
    kept: dict[str, Mapping[str, str]] = {}
    differences: list[str] = []
    for field in _METADATA_FIELDS:
        values = first["metadata"].get(field) or {}
        differing = sorted(
            label for label in values if any(each["metadata"][field][label] != values[label] for each in templates)
        )
        kept[field] = {label: value for label, value in values.items() if label not in differing}
        differences += [f"{field}.{label}: one of each Job -> none" for label in differing]
    return {**first, "metadata": {**first["metadata"], **kept}}, differences
