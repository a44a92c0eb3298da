"""Configuration bundles of a workload in its pod template, from which the parts of the runtime read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pincompute.api.config_bundle import BundleReference, parse_references
from pincompute.api.names import CONFIG_ANNOTATION, LIVE_CONFIG_ANNOTATION
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CONFIG_NOT_DELIVERED, CONFIG_UNRESOLVED

FIXED, LIVE = "config@fixed", "config@live"
"""Fields that parts of the runtime serve, as they name them."""


def config_references(owner: Workload) -> list[BundleReference]:
    return parse_references(owner.spec.config, owner.metadata.namespace)


def config_fields(owner: Workload) -> frozenset[str]:
    """Whether the workload has fixed bundles, live ones, or both."""
    return frozenset(LIVE if each.live else FIXED for each in config_references(owner))


def config_annotations(owner: Workload) -> dict[str, str]:
    """The bundles by digest, so that another version changes the template; live ones by name."""
    pins = {each.bundle: each for each in owner.spec.config_versions}
    references = config_references(owner)
    fixed = [pins[each.bundle] for each in references if not each.live and each.bundle in pins]
    annotations = {
        CONFIG_ANNOTATION: " ".join(f"{each.bundle}@{each.version}={each.digest}" for each in fixed),
        LIVE_CONFIG_ANNOTATION: " ".join(each.bundle for each in references if each.live),
    }
    return {name: value for name, value in annotations.items() if value}


def config_problems(owner: Workload, parts: Sequence[PinterestSidecar]) -> Iterator[Problem]:
    """Without these, an application would start and miss its files."""
    where = Where(object=owner.metadata.key, field="spec.config")
    pins = {(each.bundle, each.version) for each in owner.spec.config_versions}
    bundles = {bundle for bundle, _ in pins}
    for reference in config_references(owner):
        wanted = (reference.bundle, reference.version)
        if not reference.live and (wanted not in pins if reference.version else reference.bundle not in bundles):
            what = f"the version of bundle {reference.bundle} is not determined"
            yield Problem(CONFIG_UNRESOLVED, what, where, "only the desk does it", "pin deploy FILE")
    delivered = {field for each in parts for field in each.spec.serves.fields}
    for field in sorted(config_fields(owner) - delivered):
        names = [each.bundle for each in config_references(owner) if each.live == (field == LIVE)]
        type_ = field.partition("@")[2]
        what = f"no part of its runtime brings {type_} configuration bundles into pods: {', '.join(names)}"
        yield Problem(CONFIG_NOT_DELIVERED, what, where, next="infrastructure team: add it to the runtime")
