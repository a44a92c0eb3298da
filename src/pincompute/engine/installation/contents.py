"""What the platform consists of on a cluster that exists: every object, without anybody being asked."""

from __future__ import annotations

from string import Template
from typing import Any, NamedTuple

import yaml

import pincompute
from pincompute.api.manifests import crds
from pincompute.api.names import CLUSTER_FACTS, INSTALLED, OPERATOR, SYSTEM
from pincompute.engine.bootstrap import CONTROLLERS, MANIFESTS, held_by
from pincompute.kube import resource as kinds
from pincompute.kube.resource import Object, Resource
from pincompute.objects.content import digest

VERSION = pincompute.__version__
IMAGE = "pincompute"
"""Where nobody says otherwise, the platform's own, of the version that this program is."""

# In this order: what is named by the rest comes first, and the operator, which needs it all, last.
ORDER = (
    kinds.NAMESPACES,
    kinds.CRDS,
    kinds.PRIORITY_CLASSES,
    kinds.CLUSTER_ROLES,
    kinds.ROLES,
    kinds.SERVICE_ACCOUNTS,
    kinds.CONFIG_MAPS,
    kinds.CLUSTER_ROLE_BINDINGS,
    kinds.ROLE_BINDINGS,
    kinds.ADMISSION_POLICIES,
    kinds.ADMISSION_BINDINGS,
    kinds.NETWORK_POLICIES,
    kinds.DISRUPTION_BUDGETS,
    kinds.DEPLOYMENTS,
)
RESOURCES: dict[str, Resource] = {each.kind: each for each in ORDER}


class Words(NamedTuple):
    """What differs from one cluster to another."""

    image: str = f"{IMAGE}:{VERSION}"
    name: str = "cluster"
    domain: str = "localhost"
    """Under which its ingress answers: services are at `http://NAME.PROJECT.<domain>`."""
    port: int = 80

    @property
    def facts(self) -> dict[str, str]:
        """What the cluster says of itself. Which neighbours it has is seen by whoever needs them."""
        return {
            "name": self.name,
            "trustDomain": f"{self.name}.pincompute.local",
            "domain": self.domain,
            "port": str(self.port),
            "nodes": "real",
        }


def contents(words: Words) -> list[Object]:
    """All of it, each object marked as the platform's and with the version that wrote it."""
    facts: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CLUSTER_FACTS, "namespace": SYSTEM},
        "data": words.facts,
    }
    objects = [
        *crds(),
        *_read("tiers"),
        *_read("roles"),
        *_rights(),
        *_read("guard", makers=_makers()),
        *_read("operator", image=words.image, facts=digest(words.facts)),
        facts,
    ]
    return sorted((_marked(each) for each in objects), key=lambda each: ORDER.index(RESOURCES[each["kind"]]))


def stays(object_: Object) -> bool:
    """What running work and its people need when the platform is gone: kinds, priorities, and the roles of members."""
    kind = object_["kind"]
    return kind in {"CustomResourceDefinition", "PriorityClass"} or (
        kind == "ClusterRole" and object_["metadata"]["name"] != OPERATOR
    )


def _rights() -> list[Object]:
    """The operator's, as on every cluster, but held by an account instead of a certificate."""
    account = {"kind": "ServiceAccount", "name": OPERATOR, "namespace": SYSTEM}
    objects = held_by(_read("access"), OPERATOR)
    return [{**each, "subjects": [account]} if "subjects" in each else each for each in objects]


def _makers() -> list[str]:
    """Who makes the pods of workloads there, and what makes them."""
    return [
        *CONTROLLERS,
        "system:serviceaccount:kubeflow:training-operator",
        f"system:serviceaccount:{SYSTEM}:{OPERATOR}",
    ]


def _read(name: str, **words: Any) -> list[Object]:
    return list(yaml.safe_load_all(Template((MANIFESTS / f"{name}.yaml").read_text()).substitute(words)))


def _marked(object_: Object) -> Object:
    metadata = object_["metadata"]
    return {**object_, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), INSTALLED: VERSION}}}
