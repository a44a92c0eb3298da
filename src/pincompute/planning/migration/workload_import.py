"""The frame of every import: a workload file, and each difference between what runs and what the file would run.

A module per kind maps the fields of its native to a spec. The frame plans the resulting workload and compares the
planned native with the imported one, so that a field which a mapping forgets is reported and never lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from pincompute.api.documents import Document
from pincompute.api.names import API_VERSION, WORKLOAD_LABEL
from pincompute.api.validation import parse_resource
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, object_label
from pincompute.objects.owners import controller_uid
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.migration.effective_template import (
    ConfigMapsByName,
    describe_differences,
    effective_template,
)
from pincompute.planning.migration.related_objects import RelatedObjects, config_map_names, find_by_name
from pincompute.planning.migration.short_form import is_platform_variable
from pincompute.planning.pods.templates import ROLES_FIELDS
from pincompute.planning.revision import SPEC_KEY
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, as_first_generation

FIELD_ORDER = (
    "framework",
    "image",
    "command",
    "arguments",
    "schedule",
    "timeZone",
    "overlap",
    "startWithinSeconds",
    "tasks",
    "items",
    "parallelism",
    "workers",
    "worker",
    "port",
    "ports",
    "replicas",
    "nodes",
    "everyNode",
    "environment",
    "configuration",
    "configurationPath",
    "cpu",
    "memory",
    "gpus",
    "gpuType",
    "tier",
    "storage",
    "storagePath",
    "claims",
    "retention",
    "ordinals",
    "loadBalancer",
    "healthCheck",
    "deadlineSeconds",
    "retries",
    "maxFailed",
    "keep",
    "keepSeconds",
    "cleanUp",
    "suspended",
    "rollout",
    "unavailable",
    "shutdown",
    "elastic",
    "roles",
    "template",
)
"""Order of the fields in the file: the program first, then its traffic, then the rest."""

View = Callable[[Object], Object]
"""Settings of a native beside its pod template, with the defaults of Kubernetes."""


class WorkloadImport(NamedTuple):
    """The workload file, and the consequences of an adoption."""

    document: Object
    workload: Workload
    differences: tuple[str, ...] = ()
    """Settings that change once the pods are recreated, with their old and new values."""
    blockers: tuple[Problem, ...] = ()
    """Differences that take effect immediately; an adoption is refused while there are any."""
    untouched: tuple[str, ...] = ()
    """Related objects that are not adopted: other routes to the pods, and ConfigMaps copied into the file."""
    adopted: tuple[Object, ...] = ()
    """Objects that become the workload's, the imported one first."""
    created: tuple[str, ...] = ()
    """Objects that the adoption creates."""


def parse_imported(kind: type[Workload], found: RelatedObjects, name: str, spec: Object) -> tuple[Object, Workload]:
    """The document without empty fields, and the workload that it is parsed to."""
    document: Object = {
        "apiVersion": API_VERSION,
        "kind": kind.__name__,
        "metadata": {"name": name, "project": found.namespace},
        "spec": {field: spec[field] for field in FIELD_ORDER if spec.get(field) not in (None, "", [], {})},
    }
    return document, cast("Workload", parse_resource(Document(document, "", {}), found.namespace))


def wanted_objects(workload: Workload) -> dict[str, Object]:
    """The objects that the workload would become, by kind; its ConfigMaps by label, without the revision record."""
    any_time = datetime(1970, 1, 1, tzinfo=UTC)
    plan = PLANNERS[workload.kind](Snapshot(as_first_generation(workload), (), (), LOCAL_CLUSTER, any_time))
    refuse_all(plan.problems)
    config_maps = [each for each in plan.wanted if each["kind"] == "ConfigMap"]
    return {each["kind"]: each for each in plan.wanted if each["kind"] != "ConfigMap"} | {
        object_label(each): each for each in config_maps if SPEC_KEY not in each["data"]
    }


def build_import(kind: type[Workload], found: RelatedObjects, name: str, spec: Object, view: View) -> WorkloadImport:
    """The import of a kind without traffic of its own: only the native itself could be adopted."""
    document, workload = parse_imported(kind, found, name, spec)
    wanted = wanted_objects(workload)
    account = find_by_name(found.service_accounts, name)
    adopted = (found.native, *([account] if account else []))
    labels = {object_label(each) for each in adopted}
    return WorkloadImport(
        document,
        workload,
        tuple(native_differences(found, wanted, view)),
        untouched=tuple(object_label(each) for each in (*found.services, *found.ingresses)),
        adopted=adopted,
        created=tuple(object_label(each) for each in wanted.values() if object_label(each) not in labels),
    )


def native_differences(found: RelatedObjects, wanted: Mapping[str, Object], view: View) -> Iterator[str]:
    """Differences of the pod templates, of the settings beside them, and of the labels."""
    native = wanted[found.native["kind"]]
    files: ConfigMapsByName = {each["metadata"]["name"]: each for each in found.config_maps}
    generated = {each["metadata"]["name"]: each for each in wanted.values() if each["kind"] == "ConfigMap"}
    before, after = _templates(found.native), _templates(native)
    for role in sorted(before.keys() | after.keys()):
        prefix = f"{role}." if role else ""
        if role not in before or role not in after:
            yield f"{role}: {'none -> added' if role in after else 'removed'}"
            continue
        old = effective_template(before[role], files)
        new = effective_template(after[role], {**files, **generated})
        yield from (prefix + each for each in describe_differences(old, _without_platform_additions(old, new)))
    yield from describe_differences(view(found.native), view(native))
    labels = found.native["metadata"].get("labels", {})
    if labels:
        text = ", ".join(f"{name}={labels[name]}" for name in sorted(labels))
        yield f"labels of the {found.native['kind']} itself: {text} -> none"


def membership_problems(found: RelatedObjects) -> Iterator[Problem]:
    """The problem of an object that already belongs to a workload."""
    if WORKLOAD_LABEL in found.native["metadata"].get("labels", {}) and controller_uid(found.native):
        where = Where(object=f"{found.namespace}/{found.name}")
        what = f"{object_label(found.native)} already belongs to a workload"
        yield Problem(CANNOT_IMPORT, what, where, next=f"pin show {found.name} --project {found.namespace}")


def copied_config_maps(found: RelatedObjects, template: Object) -> Iterator[str]:
    """ConfigMaps with files that are in the workload file now: they remain, and the workload does not use them."""
    still_mounted = set(config_map_names(template))
    return (object_label(each) for each in found.config_maps if each["metadata"]["name"] not in still_mounted)


def _templates(native: Object) -> dict[str, Object]:
    """The pod templates by role; without a role in the kinds that have only one."""
    spec = native["spec"]
    if native["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    field = ROLES_FIELDS.get(native["kind"], "")
    if field:
        return {role: each["template"] for role, each in spec[field].items()}
    return {"": spec["template"]}


def _without_platform_additions(before: Object, after: Object) -> Object:
    """The new template without the platform's variables and the files of tasks.

    A variable that replaces one of the container itself stays, because the program notices it.
    """
    groups = ("containers", "initContainers")
    present = {
        (container["name"], variable["name"])
        for group in groups
        for container in before[group]
        for variable in container["env"]
    }
    filtered = {group: [_without_additions(each, present) for each in after[group]] for group in groups}
    return {**after, **filtered}


def _without_additions(container: Object, present: set[tuple[str, str]]) -> Object:
    env = [
        variable
        for variable in container["env"]
        if (container["name"], variable["name"]) in present or not is_platform_variable(variable["name"])
    ]
    return {**container, "env": env, "volumeMounts": [each for each in container["volumeMounts"] if not _is_task(each)]}


def _is_task(mount: Mapping[str, Any]) -> bool:
    """True for the files `number` and `item` of a job set's task."""
    return str(mount["mountPath"]).startswith("/etc/task/")
