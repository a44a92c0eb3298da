"""What is there beside a Deployment and belongs to it: found by labels and names, as Kubernetes finds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pincompute.objects.content import Object


class Found(NamedTuple):
    """All of one namespace, whole."""

    deployment: Object
    services: tuple[Object, ...] = ()
    """Those that lead to its pods."""
    ingresses: tuple[Object, ...] = ()
    """Those that lead to one of those."""
    budgets: tuple[Object, ...] = ()
    scalers: tuple[Object, ...] = ()
    """Who else says how many copies there are."""
    accounts: tuple[Object, ...] = ()
    files: tuple[Object, ...] = ()
    """The ConfigMaps that its pods name."""

    @classmethod
    def of(cls, deployment: Object, others: Iterable[Object]) -> Found:
        template = deployment["spec"]["template"]
        labels = template.get("metadata", {}).get("labels", {})
        named = set(files_of(template))
        there = sorted(others, key=lambda each: each["metadata"]["name"])
        services = tuple(each for each in _of("Service", there) if _leads(each["spec"].get("selector"), labels))
        names = {each["metadata"]["name"] for each in services}
        return cls(
            deployment,
            services,
            tuple(each for each in _of("Ingress", there) if names.intersection(_asked(each))),
            tuple(
                each
                for each in _of("PodDisruptionBudget", there)
                if _leads(each["spec"].get("selector", {}).get("matchLabels"), labels)
            ),
            tuple(each for each in _of("HorizontalPodAutoscaler", there) if _scales(each, deployment)),
            tuple(_of("ServiceAccount", there)),
            tuple(each for each in _of("ConfigMap", there) if each["metadata"]["name"] in named),
        )

    @property
    def name(self) -> str:
        return str(self.deployment["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.deployment["metadata"]["namespace"])

    @property
    def template(self) -> Object:
        template: Object = self.deployment["spec"]["template"]
        return template

    @property
    def all(self) -> tuple[Object, ...]:
        return (self.deployment, *self.services, *self.ingresses, *self.budgets, *self.accounts)


def files_of(template: Object) -> Iterator[str]:
    """The ConfigMaps that a template names as volumes."""
    for each in template["spec"].get("volumes") or ():
        if "configMap" in each:
            yield str(each["configMap"].get("name", ""))


def named(objects: Iterable[Object], name: str) -> Object | None:
    return next((each for each in objects if each["metadata"]["name"] == name), None)


def _of(kind: str, objects: Iterable[Object]) -> Iterator[Object]:
    return (each for each in objects if each["kind"] == kind)


def _leads(selector: Object | None, labels: Object) -> bool:
    return bool(selector) and selector.items() <= labels.items()  # type: ignore[union-attr]


def _asked(ingress: Object) -> Iterator[str]:
    spec = ingress["spec"]
    paths = [each for rule in spec.get("rules") or () for each in (rule.get("http") or {}).get("paths", ())]
    backends = [spec.get("defaultBackend") or {}, *(each["backend"] for each in paths)]
    return (str(each["service"]["name"]) for each in backends if "service" in each)


def _scales(scaler: Object, deployment: Object) -> bool:
    target = scaler["spec"]["scaleTargetRef"]
    return (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
