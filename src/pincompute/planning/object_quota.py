"""The quota of a project for its objects and its storage, over all tiers."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from pincompute.api.project import Quota
from pincompute.objects.quantity import parse_quantity

STORAGE = "storage"
_DEFAULT_SERVICES = 1000
"""Each one usually takes an address of a range that all projects share."""
_DEFAULT_OBJECTS = 10_000
_COUNTED_TYPES = {
    "configmaps": _DEFAULT_OBJECTS,
    "secrets": _DEFAULT_OBJECTS,
    "services": _DEFAULT_SERVICES,
    "serviceaccounts": _DEFAULT_OBJECTS,
    "persistentvolumeclaims": _DEFAULT_OBJECTS,
    "jobs.batch": _DEFAULT_OBJECTS,
    "cronjobs.batch": _DEFAULT_OBJECTS,
    "ingresses.networking.k8s.io": _DEFAULT_OBJECTS,
}
"""Types of objects with a quota, and the number without one in the project."""
RESOURCE_OF_TYPE = {
    "configmaps": "config_maps",
    "services": "services",
    "serviceaccounts": "service_accounts",
    "persistentvolumeclaims": "claims",
    "jobs.batch": "jobs",
    "cronjobs.batch": "cron_jobs",
    "ingresses.networking.k8s.io": "ingresses",
}
"""Names of the types in a footprint. No workload becomes a Secret."""
OBJECT_RESOURCES = (STORAGE, *RESOURCE_OF_TYPE.values())
_OF_NAMESPACE = {"configmaps": 1, "serviceaccounts": 1}
"""Objects that Kubernetes creates in every namespace, and counts: `kube-root-ca.crt` and `default`."""


def object_quota(quota: Quota) -> dict[str, int | str]:
    """The limits of the ResourceQuota, by the names of Kubernetes; an empty one is unlimited."""
    counts = {
        f"count/{name}": default if quota.objects is None else quota.objects for name, default in _COUNTED_TYPES.items()
    }
    return {"requests.storage": quota.storage, **counts}


def object_limits(quota: Quota) -> Iterator[tuple[str, int]]:
    """What workloads may use of it, in the units of a footprint."""
    limits = object_quota(quota)
    if quota.storage != "":
        yield STORAGE, floor(parse_quantity(quota.storage))
    for name, resource in RESOURCE_OF_TYPE.items():
        yield resource, max(0, int(limits[f"count/{name}"]) - _OF_NAMESPACE.get(name, 0))
