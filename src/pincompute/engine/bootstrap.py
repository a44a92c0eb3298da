"""What a platform holds before the first workload comes: our kinds, who may do what, storage."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from string import Template

import yaml

from pincompute.api.manifests import crds
from pincompute.api.names import CLUSTER_FACTS, DESK, ENGINE, OPERATOR, SYSTEM
from pincompute.engine.kubeflow import training_operator
from pincompute.engine.platform import Platform
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.errors import Invalid
from pincompute.kube.resource import Object

MANIFESTS = Path(__file__).parent / "manifests"

_NATIVE = ("deployment", "replicaset", "statefulset", "daemon-set", "cronjob", "job")
CONTROLLERS = (
    *(f"system:serviceaccount:kube-system:{each}-controller" for each in _NATIVE),
    # All of those, where they have no accounts of their own.
    "system:kube-controller-manager",
)
MAKERS = (
    *CONTROLLERS,
    "system:serviceaccount:kubeflow:training-operator",
    training_operator.USER,
    OPERATOR,
    f"system:serviceaccount:{SYSTEM}:{OPERATOR}",
)
"""Who makes the pods of workloads, and what makes them; nobody else may."""
_KUBERNETES = ("namespace-controller", "generic-garbage-collector", "horizontal-pod-autoscaler")
WRITERS = (
    *(f"system:serviceaccount:kube-system:{each}" for each in _KUBERNETES),
    "system:kube-controller-manager",
    *(f"{of}{each}" for each in (OPERATOR, DESK) for of in ("", f"system:serviceaccount:{SYSTEM}:")),
)
"""Who writes workloads where only what has landed runs: the desk, the operator, and those of Kubernetes' own who clear
away or choose how many copies there are."""

_USERS = {"makers": list(MAKERS), "writers": list(WRITERS), "desk": [DESK]}

_PLAIN = ("pincompute-ingress", "pincompute-storage", "pincompute-kwok", "kube-apiserver")
"""Who stands on a cluster that has nothing of ours: what any cluster has in some way."""

FURNITURE = ("access", "roles", "tiers", "guard", "landing", "rehearsal")
"""What lies in the namespaces of the base."""

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
        kinds.ADMISSION_POLICIES,
        kinds.ADMISSION_BINDINGS,
    )
}


async def furnish(client: Client, platform: Platform) -> None:
    """Namespaces come first, for some of the rest lie in them."""
    if platform.bare:
        storage = [each for each in _read("base") if each["kind"] == kinds.STORAGE_CLASSES.kind]
        await _apply(client, [*storage, *held_by(_read("access"), *_PLAIN)])
        return
    await _apply(client, _read("base"))
    read = [each for name in FURNITURE for each in _read(name)]
    await _apply(client, [*read, *crds(), _facts(platform)])


def held_by(objects: Iterable[Object], *users: str) -> list[Object]:
    """Of roles and bindings those that give these users their rights; the roles come first."""
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
        # Nothing in a class ever changes; those who have a volume of the former one keep it.
        await client.delete(resource, wanted["metadata"]["name"])
        await client.apply(wanted, resource, manager=ENGINE)


def _read(name: str) -> list[Object]:
    text = (MANIFESTS / f"{name}.yaml").read_text()
    return list(yaml.safe_load_all(Template(text).substitute(_USERS)))


def _facts(platform: Platform) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CLUSTER_FACTS, "namespace": SYSTEM},
        "data": {
            "name": platform.name,
            "trustDomain": platform.trust_domain,
            "domain": "localhost",
            "port": str(platform.ports["http"]),
            "nodes": "real" if platform.real else "simulated",
            "serves": " ".join(_served(platform)),
        },
    }


def _served(platform: Platform) -> list[str]:
    """The kinds of its neighbours."""
    return [each.kind for each in training_operator.KINDS] if training_operator.NAME in platform.neighbours else []
