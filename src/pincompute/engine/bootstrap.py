"""Applies the base objects of a platform: our CRDs, roles and bindings, admission policies, storage class."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pincompute.api.manifests import crds
from pincompute.api.names import CLUSTER_FACTS_CONFIGMAP, DESK, ENGINE, OPERATOR, SIGNER, SYSTEM_NAMESPACE
from pincompute.engine.debian import find_program
from pincompute.engine.kubeflow import training_operator
from pincompute.engine.manifest_files import fill_manifest
from pincompute.engine.platform import Platform
from pincompute.engine.prometheus import server as prometheus
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import Invalid
from pincompute.kube.resource import Object
from pincompute.planning.snapshot import OWN_INGRESS


def account_user(name: str) -> str:
    """User name of a service account of the platform, on a cluster where it is installed."""
    return f"system:serviceaccount:{SYSTEM_NAMESPACE}:{name}"


_NATIVE = ("deployment", "replicaset", "statefulset", "daemon-set", "cronjob", "job")
CONTROLLERS = (
    *(f"system:serviceaccount:kube-system:{each}-controller" for each in _NATIVE),
    # All of them, on clusters whose controllers share the account of the controller manager.
    "system:kube-controller-manager",
)
POD_CREATORS = (
    *CONTROLLERS,
    "system:serviceaccount:kubeflow:training-operator",
    training_operator.USER,
    OPERATOR,
    account_user(OPERATOR),
)
"""Users that may create the pods of workloads, and the objects that create pods. The guard policy denies all others."""
_KUBERNETES = ("namespace-controller", "generic-garbage-collector", "horizontal-pod-autoscaler")
WORKLOAD_WRITERS = (
    *(f"system:serviceaccount:kube-system:{each}" for each in _KUBERNETES),
    "system:kube-controller-manager",
    *(user for each in (OPERATOR, DESK) for user in (each, account_user(each))),
)
"""Users that may write workloads of projects with `review: landed`: the desk, the operator, and Kubernetes' own
controllers that delete objects or set the number of replicas."""

DOMAIN = "localhost"
"""Domain of the services' hosts. Names below it lead to this machine without DNS."""

_VALUES: dict[str, str | list[str]] = {
    "pod_creators": list(POD_CREATORS),
    "writers": list(WORKLOAD_WRITERS),
    "desk": [DESK],
    "domain": DOMAIN,
    "operator": [OPERATOR],
    "signer": [SIGNER],
}

_PLAIN = ("pincompute-ingress", "pincompute-storage", "pincompute-kwok", "kube-apiserver")
"""Users with rights on a bare platform: the parts that every cluster has in some form."""

NAMESPACED_MANIFESTS = (
    "access",
    "roles",
    "tiers",
    "guard",
    "tenancy",
    "landing",
    "hosts",
    "rehearsal",
    "confinement",
    "confinement_local",
    "registrar",
)
"""Manifests that are applied after the base, as they need its namespaces."""

_RESOURCES = {
    each.kind: each
    for each in (
        kinds.NAMESPACES,
        kinds.CONFIG_MAPS,
        kinds.STORAGE_CLASSES,
        kinds.PRIORITY_CLASSES,
        kinds.ROLES,
        kinds.ROLE_BINDINGS,
        kinds.CLUSTER_ROLES,
        kinds.CLUSTER_ROLE_BINDINGS,
        kinds.CRDS,
        kinds.VALIDATING_ADMISSION_POLICIES,
        kinds.VALIDATING_ADMISSION_POLICY_BINDINGS,
    )
}


async def apply_base_objects(client: Client, platform: Platform) -> None:
    """Apply the base manifest first, because the others contain objects in its namespaces."""
    if platform.bare:
        storage = [each for each in read_manifest("base") if each["kind"] == kinds.STORAGE_CLASSES.kind]
        await _apply(client, [*storage, *roles_granted_to(read_manifest("access"), *_PLAIN)])
        return
    await _apply(client, read_manifest("base"))
    volumes = str(platform.home.volumes)
    read = [each for name in NAMESPACED_MANIFESTS for each in read_manifest(name, volumes=volumes)]
    added = read_manifest("metrics") if prometheus.NAME in platform.addons else []
    await _apply(client, [*read, *added, *crds(), _facts(platform)])


def roles_granted_to(objects: Iterable[Object], *users: str) -> list[Object]:
    """Select the bindings of these users and the roles that they refer to; roles come first."""
    there = list(objects)
    bound = [each for each in there if any(one["name"] in users for one in each.get("subjects", ()))]
    named = {(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bound}
    return [*(each for each in there if (each["kind"], each["metadata"]["name"]) in named), *bound]


async def _apply(client: Client, objects: Iterable[Object]) -> None:
    await asyncio.gather(*(_put(client, each) for each in objects))


async def _put(client: Client, wanted: Object) -> None:
    resource = _RESOURCES[wanted["kind"]]
    try:
        await client.apply(wanted, resource, manager=ENGINE)
    except Invalid:
        if resource is not kinds.STORAGE_CLASSES:
            raise
        # Every field of a StorageClass is immutable, so it is replaced; existing volumes are not affected.
        await client.delete(resource, wanted["metadata"]["name"])
        await client.apply(wanted, resource, manager=ENGINE)


def read_manifest(name: str, **variables: str) -> list[Object]:
    """Objects of a manifest, with the users and variables that it names filled in."""
    return fill_manifest(name, **{**_VALUES, **variables})


def _facts(platform: Platform) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CLUSTER_FACTS_CONFIGMAP, "namespace": SYSTEM_NAMESPACE},
        "data": {
            "name": platform.name,
            "trustDomain": platform.trust_domain,
            "domain": DOMAIN,
            "port": str(platform.ports["http"]),
            "nodes": "real" if platform.real else "simulated",
            "httpsPort": str(platform.ports["https"]),
            "ingress": OWN_INGRESS if find_program("nginx") else "",
            "serves": " ".join(_addon_kinds(platform)),
        },
    }


def _addon_kinds(platform: Platform) -> list[str]:
    """Names of the kinds that the add-ons of the platform serve."""
    return [each.kind for each in training_operator.KINDS] if training_operator.NAME in platform.addons else []
