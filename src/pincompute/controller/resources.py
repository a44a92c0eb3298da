"""Where each kind that planning speaks of lies on the wire."""

from __future__ import annotations

from pincompute.api.kinds import KINDS
from pincompute.api.names import GROUP, VERSION
from pincompute.api.noun import Noun
from pincompute.api.service import PinterestService
from pincompute.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    INGRESSES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)


def resource(noun: type[Noun]) -> Resource:
    return Resource(GROUP, VERSION, noun.plural(), noun.__name__, namespaced=not noun.CLUSTER_WIDE)


NOUNS = {name: resource(noun) for name, noun in KINDS.items()}
"""Ours."""

WORKLOADS = {noun.__name__: noun for noun in (PinterestService,)}
"""The kinds that the operator makes so; a new one joins here, with its natives."""

NATIVES = {
    each.kind: each
    for each in (
        SERVICE_ACCOUNTS,
        CONFIG_MAPS,
        SERVICES,
        DEPLOYMENTS,
        DISRUPTION_BUDGETS,
        INGRESSES,
    )
}
"""What they become."""
