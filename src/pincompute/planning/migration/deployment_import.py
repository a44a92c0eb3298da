"""Import of a Deployment as a workload file, with every difference between what runs and what the file would run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple, cast

from pincompute.api.documents import Document
from pincompute.api.names import API_VERSION, WORKLOAD_LABEL
from pincompute.api.service import PinterestService
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, object_label
from pincompute.objects.owners import controller_uid
from pincompute.planning.kinds import service
from pincompute.planning.migration import effective_template, traffic
from pincompute.planning.migration.effective_template import ConfigMapsByName
from pincompute.planning.migration.related_objects import RelatedObjects, config_map_names, find_by_name
from pincompute.planning.migration.short_form import is_platform_variable, short_form_spec
from pincompute.planning.migration.traffic import Traffic
from pincompute.planning.revision import SPEC_KEY
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, as_first_generation

FIELD_ORDER = (
    "image",
    "command",
    "arguments",
    "port",
    "ports",
    "replicas",
    "environment",
    "configuration",
    "configurationPath",
    "cpu",
    "memory",
    "gpus",
    "tier",
    "loadBalancer",
    "rollout",
    "unavailable",
    "shutdown",
    "template",
)
"""Order of the fields in the file: the program first, then its traffic, then the rest."""


class DeploymentImport(NamedTuple):
    """The workload file, and the consequences of an adoption."""

    document: Object
    workload: PinterestService
    differences: tuple[str, ...] = ()
    """Settings that change once the replicas are recreated, with their old and new values."""
    blockers: tuple[Problem, ...] = ()
    """Differences that take effect immediately; an adoption is refused while there are any."""
    untouched: tuple[str, ...] = ()
    """Related objects that are not adopted: other routes to the pods, and ConfigMaps copied into the file."""
    adopted: tuple[Object, ...] = ()
    """Objects that become the workload's, the Deployment first."""
    created: tuple[str, ...] = ()
    """Objects that the adoption creates."""


def import_deployment(found: RelatedObjects, name: str = "", port: int = 0) -> DeploymentImport:
    """Refused if no file could represent the Deployment. Lesser differences are reported in the result, all of them."""
    name = name or found.name
    traffic_settings = traffic.read_traffic(found, name, port)
    refuse_all(_import_problems(found, traffic_settings))
    files: ConfigMapsByName = {each["metadata"]["name"]: each for each in found.config_maps}
    spec = {**short_form_spec(found.template, name, traffic_settings, files), **_rollout_fields(found)}
    document: Object = {
        "apiVersion": API_VERSION,
        "kind": PinterestService.__name__,
        "metadata": {"name": name, "project": found.namespace},
        "spec": {field: spec[field] for field in FIELD_ORDER if spec.get(field) not in (None, "", [], {})},
    }
    workload = cast("PinterestService", parse_resource(Document(document, "", {}), found.namespace))
    wanted = _wanted_objects(workload)
    adopted = _adopted_objects(found, traffic_settings, name)
    adopted_labels = {object_label(each) for each in adopted}
    return DeploymentImport(
        document,
        workload,
        tuple(_find_differences(found, wanted, files)),
        tuple(_find_blockers(found, traffic_settings, wanted)),
        (
            *traffic.remaining_routes(found, traffic_settings),
            *_copied_config_maps(found, wanted["Deployment"]),
        ),
        adopted,
        tuple(object_label(each) for each in wanted.values() if object_label(each) not in adopted_labels),
    )


def _import_problems(found: RelatedObjects, settings: Traffic) -> Iterator[Problem]:
    where = Where(object=f"{found.namespace}/{found.name}")
    if WORKLOAD_LABEL in found.deployment["metadata"].get("labels", {}) and controller_uid(found.deployment):
        what = f"Deployment/{found.name} already belongs to a workload"
        yield Problem(CANNOT_IMPORT, what, where, next=f"pin show {found.name} --project {found.namespace}")
    elif not settings.port:
        what = f"the port of Deployment/{found.name} is unknown"
        note = "no Service selects its pods, and no container declares a port"
        yield Problem(CANNOT_IMPORT, what, where, note, f"pin import deployment/{found.name} --port 8080")


def _rollout_fields(found: RelatedObjects) -> Object:
    """Number of replicas and rollout settings. Kubernetes' defaults are left out: they were not chosen on purpose."""
    spec = found.deployment["spec"]
    rolling = spec.get("strategy", {}).get("rollingUpdate") or {}
    strategy = {
        "surge": rolling.get("maxSurge", _KUBERNETES_DEFAULT_SHARE),
        "unavailable": rolling.get("maxUnavailable", _KUBERNETES_DEFAULT_SHARE),
    }
    is_default = set(strategy.values()) == {_KUBERNETES_DEFAULT_SHARE}
    rollout: Object = {} if is_default else {k: v for k, v in strategy.items() if v != _PLATFORM_STRATEGY[k]}
    deadline_s = spec.get("progressDeadlineSeconds", _KUBERNETES_DEADLINE_S)
    if spec.get("minReadySeconds"):
        rollout["minReadySeconds"] = spec["minReadySeconds"]
    if deadline_s != _KUBERNETES_DEADLINE_S and 10 <= deadline_s <= 86_400:
        rollout["deadlineSeconds"] = deadline_s
    replicas = spec.get("replicas", 1)
    unavailable = next((each["spec"].get("maxUnavailable") for each in found.disruption_budgets), None)
    return {
        "replicas": replicas if replicas != 1 else None,
        "rollout": rollout,
        "unavailable": None if unavailable == _KUBERNETES_DEFAULT_SHARE else unavailable,
    }


_KUBERNETES_DEFAULT_SHARE = "25%"
_KUBERNETES_DEADLINE_S = 600
_PLATFORM_STRATEGY = {"surge": "25%", "unavailable": 0}


def _wanted_objects(workload: PinterestService) -> dict[str, Object]:
    """The objects that the workload would become, by kind; its ConfigMaps by label, without the revision record."""
    any_time = datetime(1970, 1, 1, tzinfo=UTC)
    plan = service.plan(Snapshot(as_first_generation(workload), (), (), LOCAL_CLUSTER, any_time))
    refuse_all(plan.problems)
    config_maps = [each for each in plan.wanted if each["kind"] == "ConfigMap"]
    return {each["kind"]: each for each in plan.wanted if each["kind"] != "ConfigMap"} | {
        object_label(each): each for each in config_maps if SPEC_KEY not in each["data"]
    }


def _copied_config_maps(found: RelatedObjects, deployment: Object) -> Iterator[str]:
    """ConfigMaps with files that are in the workload file now: they remain, and the workload does not use them."""
    still_mounted = set(config_map_names(deployment["spec"]["template"]))
    return (object_label(each) for each in found.config_maps if each["metadata"]["name"] not in still_mounted)


def _adopted_objects(found: RelatedObjects, settings: Traffic, name: str) -> tuple[Object, ...]:
    account = find_by_name(found.service_accounts, name)
    candidates = (found.deployment, settings.service, settings.ingress, account, *found.disruption_budgets)
    return tuple(each for each in candidates if each)


def _find_differences(found: RelatedObjects, wanted: dict[str, Object], files: ConfigMapsByName) -> Iterator[str]:
    deployment = wanted["Deployment"]
    generated = {each["metadata"]["name"]: each for each in wanted.values() if each["kind"] == "ConfigMap"}
    before = effective_template.effective_template(found.template, files)
    after = effective_template.effective_template(deployment["spec"]["template"], {**files, **generated})
    yield from effective_template.describe_differences(before, _without_platform_variables(before, after))
    yield from effective_template.describe_differences(_rollout_view(found.deployment), _rollout_view(deployment))
    labels = found.deployment["metadata"].get("labels", {})
    if labels:
        text = ", ".join(f"{name}={labels[name]}" for name in sorted(labels))
        yield f"labels of the Deployment itself: {text} -> none"
    if found.disruption_budgets:
        yield from effective_template.describe_differences(
            _budget_view(found.disruption_budgets[0]), _budget_view(wanted["PodDisruptionBudget"])
        )


def _without_platform_variables(before: Object, after: Object) -> Object:
    """The new template without the platform's variables, unless one replaces a variable of the container itself."""
    groups = ("containers", "initContainers")
    present = {
        (container["name"], variable["name"])
        for group in groups
        for container in before[group]
        for variable in container["env"]
    }
    filtered = {group: [_without_added_variables(each, present) for each in after[group]] for group in groups}
    return {**after, **filtered}


def _without_added_variables(container: Object, present: set[tuple[str, str]]) -> Object:
    env = [
        variable
        for variable in container["env"]
        if (container["name"], variable["name"]) in present or not is_platform_variable(variable["name"])
    ]
    return {**container, "env": env}


def _rollout_view(deployment: Object) -> Object:
    spec = deployment["spec"]
    strategy = spec.get("strategy", {})
    shares = {"maxSurge": _KUBERNETES_DEFAULT_SHARE, "maxUnavailable": _KUBERNETES_DEFAULT_SHARE}
    defaults = shares if strategy.get("type") != "Recreate" else {}
    return {
        "replicas": spec.get("replicas", 1),
        "rollout": {**defaults, **(strategy.get("rollingUpdate") or {})},
        "minReadySeconds": spec.get("minReadySeconds", 0),
        "progressDeadlineSeconds": spec.get("progressDeadlineSeconds", _KUBERNETES_DEADLINE_S),
    }


def _budget_view(budget: Object) -> Object:
    limits = {name: value for name, value in budget["spec"].items() if name in {"maxUnavailable", "minAvailable"}}
    return {"budget": limits}


def _find_blockers(found: RelatedObjects, settings: Traffic, wanted: dict[str, Object]) -> Iterator[Problem]:
    where = Where(object=f"{found.namespace}/{found.name}")
    if found.deployment["spec"].get("strategy", {}).get("type") == "Recreate":
        what = "old and new pods would run at the same time, and strategy Recreate forbids that"
        yield Problem(CANNOT_IMPORT, what, where, "strategy: Recreate -> RollingUpdate", "change the Deployment first")
    for autoscaler in found.autoscalers:
        what = f"{object_label(autoscaler)} sets the number of replicas, and would conflict with the file"
        next_ = f"kubectl delete hpa {autoscaler['metadata']['name']} --namespace {found.namespace}"
        yield Problem(CANNOT_IMPORT, what, where, next=next_)
    if settings.service:
        label = object_label(settings.service)
        before = traffic.effective_service(settings.service, found.template)
        after = traffic.effective_service(wanted["Service"], wanted["Deployment"]["spec"]["template"])
        for difference in effective_template.describe_differences(before, after):
            what = f"{label} has settings that cannot be represented"
            next_ = f"--as OTHER, which leaves {label} as it is"
            yield Problem(CANNOT_IMPORT, what, where, difference, next_)


__all__ = ["DeploymentImport", "RelatedObjects", "import_deployment"]
