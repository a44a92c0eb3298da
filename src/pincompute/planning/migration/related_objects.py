"""Objects that belong to one with pods, found by labels and names as Kubernetes itself relates them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pincompute.objects.content import Object
from pincompute.planning.pods.templates import ROLES_FIELDS


class RelatedObjects(NamedTuple):
    """A Deployment or another object with pods, and its related objects of the same namespace, as complete JSON."""

    native: Object
    services: tuple[Object, ...] = ()
    """Services that select its pods."""
    ingresses: tuple[Object, ...] = ()
    """Ingresses that route to one of these Services."""
    disruption_budgets: tuple[Object, ...] = ()
    autoscalers: tuple[Object, ...] = ()
    """HorizontalPodAutoscalers that scale it."""
    service_accounts: tuple[Object, ...] = ()
    config_maps: tuple[Object, ...] = ()
    """ConfigMaps that its pods mount."""

    @classmethod
    def of(cls, native: Object, others: Iterable[Object]) -> RelatedObjects:
        """Selects the related objects among all others of the namespace."""
        template = pod_template_of(native)
        labels = template.get("metadata", {}).get("labels", {})
        mounted = set(config_map_names(template))
        by_name = sorted(others, key=lambda each: each["metadata"]["name"])
        services = tuple(
            each for each in _of_kind("Service", by_name) if _selects(each["spec"].get("selector"), labels)
        )
        service_names = {each["metadata"]["name"] for each in services}
        return cls(
            native,
            services,
            tuple(each for each in _of_kind("Ingress", by_name) if service_names.intersection(_backend_names(each))),
            tuple(
                each
                for each in _of_kind("PodDisruptionBudget", by_name)
                if _selects(each["spec"].get("selector", {}).get("matchLabels"), labels)
            ),
            tuple(each for each in _of_kind("HorizontalPodAutoscaler", by_name) if _scales(each, native)),
            tuple(_of_kind("ServiceAccount", by_name)),
            tuple(each for each in _of_kind("ConfigMap", by_name) if each["metadata"]["name"] in mounted),
        )

    @property
    def name(self) -> str:
        return str(self.native["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.native["metadata"]["namespace"])

    @property
    def template(self) -> Object:
        return pod_template_of(self.native)

    @property
    def all_objects(self) -> tuple[Object, ...]:
        """All objects that could be adopted."""
        return (self.native, *self.services, *self.ingresses, *self.disruption_budgets, *self.service_accounts)


def pod_template_of(native: Object) -> Object:
    """The pod template; of a training job that of its first role."""
    spec: Object = native["spec"]
    if native["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    roles = next((spec[field] for field in ROLES_FIELDS.values() if field in spec), None)
    if roles:
        spec = next(iter(roles.values()))
    template: Object = spec["template"]
    return template


def replace_pod_templates(native: Object, change: Callable[[Object], Object]) -> Object:
    """A copy of the object with other pod templates: of a training job those of all roles."""
    spec: Object = native["spec"]
    if native["kind"] == "CronJob":
        job = {**spec["jobTemplate"]["spec"], "template": change(spec["jobTemplate"]["spec"]["template"])}
        return {**native, "spec": {**spec, "jobTemplate": {**spec["jobTemplate"], "spec": job}}}
    field = ROLES_FIELDS.get(native["kind"])
    if field:
        roles = {role: {**each, "template": change(each["template"])} for role, each in spec[field].items()}
        return {**native, "spec": {**spec, field: roles}}
    return {**native, "spec": {**spec, "template": change(spec["template"])}}


def config_map_names(template: Object) -> Iterator[str]:
    """Names of the ConfigMaps that a template mounts as volumes."""
    for volume in template["spec"].get("volumes") or ():
        if "configMap" in volume:
            yield str(volume["configMap"].get("name", ""))


def find_by_name(objects: Iterable[Object], name: str) -> Object | None:
    return next((each for each in objects if each["metadata"]["name"] == name), None)


def _of_kind(kind: str, objects: Iterable[Object]) -> Iterator[Object]:
    return (each for each in objects if each["kind"] == kind)


def _selects(selector: Object | None, labels: Object) -> bool:
    """An empty selector selects nothing."""
    return bool(selector) and selector.items() <= labels.items()  # type: ignore[union-attr]


def _backend_names(ingress: Object) -> Iterator[str]:
    spec = ingress["spec"]
    paths = [path for rule in spec.get("rules") or () for path in (rule.get("http") or {}).get("paths", ())]
    backends = [spec.get("defaultBackend") or {}, *(path["backend"] for path in paths)]
    return (str(each["service"]["name"]) for each in backends if "service" in each)


def _scales(autoscaler: Object, native: Object) -> bool:
    target = autoscaler["spec"]["scaleTargetRef"]
    return (target["kind"], target["name"]) == (native["kind"], native["metadata"]["name"])
