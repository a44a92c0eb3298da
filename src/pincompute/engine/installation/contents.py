"""What the platform consists of on a cluster that exists: every object, without anybody being asked."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from string import Template
from typing import Any, NamedTuple

import yaml

import pincompute
from pincompute.api.manifests import crds
from pincompute.api.names import CLUSTER_FACTS, DESK, INSTALLED, LOG_STORE, OPERATOR, PREFIX, SIGNER, SYSTEM
from pincompute.engine.bootstrap import CONTROLLERS, MANIFESTS, WRITERS, held_by
from pincompute.engine.installation.desk import Desk
from pincompute.kube import resource as kinds
from pincompute.kube.resource import Object, Resource
from pincompute.objects.content import digest

VERSION = pincompute.__version__
POD_ITSELF = "system:serviceaccounts"
"""Who asks for certificates where no node does."""
REHEARSAL = f"{PREFIX}rehearsal"
"""What holds the desk, and nobody else."""
IMAGE = "pincompute"
"""Where nobody says otherwise, the platform's own, of the version that this program is."""

# In this order: what is named by the rest comes first, and what runs, which needs it all, last.
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
    kinds.CLAIMS,
    kinds.DISRUPTION_BUDGETS,
    kinds.SERVICES,
    kinds.DEPLOYMENTS,
    kinds.STATEFUL_SETS,
    kinds.DAEMON_SETS,
)
RESOURCES: dict[str, Resource] = {each.kind: each for each in ORDER}


class Words(NamedTuple):
    """What differs from one cluster to another."""

    image: str = f"{IMAGE}:{VERSION}"
    name: str = "cluster"
    domain: str = "localhost"
    """Under which its ingress answers: services are at `http://NAME.PROJECT.<domain>`."""
    port: int = 80
    pod_logs: str = "/var/log/pods"
    """The folder of every node in which its kubelet keeps what containers print."""
    support: bool = True
    """Whether it has what the parts of a runtime need: pods must be able to be given certificates there."""
    desk: Desk = Desk()

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


EVERYTHING = Words(desk=Desk("https://desk.example.com"))
"""All that there may be, with words that are for others to say."""


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
        *_rights(OPERATOR, *((DESK,) if words.desk.address else ())),
        *_read("guard", makers=_makers()),
        *_read("landing", writers=list(WRITERS)),
        *_read("operator", image=words.image, facts=digest(words.facts)),
        facts,
        *(support(words) if words.support else ()),
        *(_desk(words) if words.desk.address else ()),
    ]
    return sorted((_marked(each) for each in objects), key=lambda each: ORDER.index(RESOURCES[each["kind"]]))


def support(words: Words) -> list[Object]:
    """What the parts of a runtime need: who signs for pods, and who ships and keeps their logs."""
    return [
        *_read("support", image=words.image, pod_logs=words.pod_logs),
        *_rights(SIGNER, LOG_STORE, POD_ITSELF),
    ]


def _desk(words: Words) -> list[Object]:
    account = f"system:serviceaccount:{SYSTEM}:{DESK}"
    return [*_read("desk", image=words.image, **words.desk.filled()), *_read("rehearsal", desk=[account])]


@cache
def places() -> tuple[tuple[Resource, str], ...]:
    """Where what is ours lies: each kind, and the namespaces in which there is any; none for kinds that have none."""
    found = {(RESOURCES[each["kind"]], each["metadata"].get("namespace", "")) for each in contents(EVERYTHING)}
    return tuple(sorted(found, key=lambda each: (ORDER.index(each[0]), each[1])))


def stays(object_: Object, *, served: bool, recorded: bool = False) -> bool:
    """What running work and its people need when the platform is gone: kinds, priorities, and the roles of members.

    Work that has the parts of a runtime needs who signs for it, and that nobody takes its name: all but the operator
    and the desk. Where there was a desk, its record and what it was given stay in their namespace.
    """
    kind, name = object_["kind"], object_["metadata"]["name"]
    if kind in {"CustomResourceDefinition", "PriorityClass", "PersistentVolumeClaim"}:
        return True
    if served:
        return name not in {OPERATOR, DESK, REHEARSAL}
    return name.startswith(f"{PREFIX}project-") or (recorded and (kind, name) == ("Namespace", SYSTEM))


def _rights(*users: str) -> list[Object]:
    """As on every cluster, but held by accounts instead of certificates."""
    objects = held_by(_read("access"), *users)
    return [{**each, "subjects": _accounts(each, users)} if "subjects" in each else each for each in objects]


def _accounts(binding: Object, users: Collection[str]) -> list[Object]:
    """In place of those users; a group of accounts stays one."""
    named = [each for each in binding["subjects"] if each["name"] in users]
    return [
        each if each["kind"] == "Group" else {"kind": "ServiceAccount", "name": each["name"], "namespace": SYSTEM}
        for each in named
    ]


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
