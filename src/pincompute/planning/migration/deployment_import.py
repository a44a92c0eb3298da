"""Import of a Deployment as a service, or as a worker if no port leads to it."""

from __future__ import annotations

from collections.abc import Iterator

from pincompute.api.service import PinterestService
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import CANNOT_IMPORT
from pincompute.objects.content import Object, object_label
from pincompute.planning.migration import traffic
from pincompute.planning.migration.effective_template import ConfigMapsByName, describe_differences
from pincompute.planning.migration.related_objects import RelatedObjects, find_by_name
from pincompute.planning.migration.short_form import SERVICE_FORM, short_form_spec
from pincompute.planning.migration.traffic import Traffic
from pincompute.planning.migration.workload_import import (
    WorkloadImport,
    copied_config_maps,
    membership_problems,
    native_differences,
    parse_imported,
    wanted_objects,
)


def import_deployment(found: RelatedObjects, name: str = "", port: int = 0) -> WorkloadImport:
    """Refused if no file could represent the Deployment. Lesser differences are reported in the result, all of them."""
    name = name or found.name
    traffic_settings = traffic.read_traffic(found, name, port)
    refuse_all((*membership_problems(found), *_port_problems(found, traffic_settings)))
    files: ConfigMapsByName = {each["metadata"]["name"]: each for each in found.config_maps}
    spec = {
        **short_form_spec(found.template, name, traffic_settings, files, SERVICE_FORM),
        **_rollout_fields(found),
        "worker": not traffic_settings.port or None,
    }
    document, workload = parse_imported(PinterestService, found, name, spec)
    wanted = wanted_objects(workload)
    adopted = _adopted_objects(found, traffic_settings, name)
    adopted_labels = {object_label(each) for each in adopted}
    return WorkloadImport(
        document,
        workload,
        (*native_differences(found, wanted, _rollout_view), *budget_differences(found, wanted)),
        tuple(_find_blockers(found, traffic_settings, wanted)),
        (
            *traffic.remaining_routes(found, traffic_settings),
            *copied_config_maps(found, wanted["Deployment"]["spec"]["template"]),
        ),
        adopted,
        tuple(object_label(each) for each in wanted.values() if object_label(each) not in adopted_labels),
    )


def _port_problems(found: RelatedObjects, settings: Traffic) -> Iterator[Problem]:
    """A Service leads to the pods, but not to a known port. Without any Service and port it is a worker."""
    if not settings.port and found.services:
        where = Where(object=f"{found.namespace}/{found.name}")
        what = f"the port of {object_label(found.native)} is unknown"
        note = f"{object_label(found.services[0])} selects its pods, and names a port that no container has"
        yield Problem(CANNOT_IMPORT, what, where, note, f"pin import deployment/{found.name} --port 8080")


def _rollout_fields(found: RelatedObjects) -> Object:
    """Number of replicas and rollout settings. Kubernetes' defaults are left out: they were not chosen on purpose."""
    spec = found.native["spec"]
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
    unavailable = budget_share(found)
    return {
        "replicas": replicas if replicas != 1 else None,
        "rollout": rollout,
        "unavailable": None if unavailable == _KUBERNETES_DEFAULT_SHARE else unavailable,
    }


_KUBERNETES_DEFAULT_SHARE = "25%"
_KUBERNETES_DEADLINE_S = 600
_PLATFORM_STRATEGY = {"surge": "25%", "unavailable": 0}


def budget_share(found: RelatedObjects) -> int | str | None:
    """Replicas that may be unavailable by the first budget of the pods; None without one."""
    return next((each["spec"].get("maxUnavailable") for each in found.disruption_budgets), None)


def budget_differences(found: RelatedObjects, wanted: dict[str, Object]) -> Iterator[str]:
    if found.disruption_budgets:
        before, after = (
            _budget_view(each) for each in (found.disruption_budgets[0], wanted.get("PodDisruptionBudget"))
        )
        yield from describe_differences(before, after)


def _adopted_objects(found: RelatedObjects, settings: Traffic, name: str) -> tuple[Object, ...]:
    account = find_by_name(found.service_accounts, name)
    candidates = (found.native, settings.service, settings.ingress, account, *found.disruption_budgets)
    return tuple(each for each in candidates if each)


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


def _budget_view(budget: Object | None) -> Object:
    spec = budget["spec"] if budget else {}
    limits = {name: value for name, value in spec.items() if name in {"maxUnavailable", "minAvailable"}}
    return {"budget": limits}


def _find_blockers(found: RelatedObjects, settings: Traffic, wanted: dict[str, Object]) -> Iterator[Problem]:
    where = Where(object=f"{found.namespace}/{found.name}")
    if found.native["spec"].get("strategy", {}).get("type") == "Recreate":
        what = "old and new pods would run at the same time, and strategy Recreate forbids that"
        yield Problem(CANNOT_IMPORT, what, where, "strategy: Recreate -> RollingUpdate", "change the Deployment first")
    yield from autoscaler_problems(found)
    if settings.service:
        label = object_label(settings.service)
        before = traffic.effective_service(settings.service, found.template)
        after = traffic.effective_service(wanted["Service"], wanted["Deployment"]["spec"]["template"])
        for difference in describe_differences(before, after):
            what = f"{label} has settings that cannot be represented"
            next_ = f"--as OTHER, which leaves {label} as it is"
            yield Problem(CANNOT_IMPORT, what, where, difference, next_)


def autoscaler_problems(found: RelatedObjects) -> Iterator[Problem]:
    """An autoscaler and the file would both set the number of replicas."""
    for autoscaler in found.autoscalers:
        what = f"{object_label(autoscaler)} sets the number of replicas, and would conflict with the file"
        next_ = f"kubectl delete hpa {autoscaler['metadata']['name']} --namespace {found.namespace}"
        yield Problem(CANNOT_IMPORT, what, Where(object=f"{found.namespace}/{found.name}"), next=next_)
