"""All objects of the platform on an existing cluster, as a pure function of its configuration."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

import pincompute
from pincompute.api.manifests import crds
from pincompute.api.names import (
    CLUSTER_FACTS_CONFIGMAP,
    DESK,
    INSTALLED_LABEL,
    LOG_STORE,
    NAME_PREFIX,
    NODE_STATS_ACCOUNT,
    OPERATOR,
    SIGNER,
    SYSTEM_NAMESPACE,
)
from pincompute.engine.bootstrap import CONTROLLERS, WORKLOAD_WRITERS, account_user, roles_granted_to
from pincompute.engine.installation.desk import DeskConfig
from pincompute.engine.manifest_files import fill_manifest
from pincompute.kube import resource as kinds
from pincompute.kube.resource import Object, Resource
from pincompute.objects.content import content_hash

VERSION = pincompute.__version__
POD_ACCOUNTS = "system:serviceaccounts"
"""Group that may create certificate requests: pods of training jobs request their certificates themselves."""
REHEARSAL_POLICY = f"{NAME_PREFIX}rehearsal"
"""Admission policy that restricts the desk to dry-run creation of native objects."""
_CONFINED = {"operator": OPERATOR, "desk": DESK, "signer": SIGNER}
"""Variables of the manifest with limits for the users of the platform, and their names."""
DEFAULT_IMAGE = "pincompute"
"""Default image name of the platform; its tag is the version of this program."""

# Objects that others refer to come first; workload controllers, which need all of them, come last.
APPLY_ORDER = (
    kinds.NAMESPACES,
    kinds.CRDS,
    kinds.PRIORITY_CLASSES,
    kinds.CLUSTER_ROLES,
    kinds.ROLES,
    kinds.SERVICE_ACCOUNTS,
    kinds.CONFIG_MAPS,
    kinds.CLUSTER_ROLE_BINDINGS,
    kinds.ROLE_BINDINGS,
    kinds.VALIDATING_ADMISSION_POLICIES,
    kinds.VALIDATING_ADMISSION_POLICY_BINDINGS,
    kinds.NETWORK_POLICIES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.SERVICES,
    kinds.DEPLOYMENTS,
    kinds.STATEFUL_SETS,
    kinds.DAEMON_SETS,
)
RESOURCES: dict[str, Resource] = {each.kind: each for each in APPLY_ORDER}


class InstallConfig(NamedTuple):
    """Settings of an installation that differ between clusters."""

    image: str = f"{DEFAULT_IMAGE}:{VERSION}"
    name: str = "cluster"
    domain: str = "localhost"
    """Domain of the ingress: services answer at `http://NAME.PROJECT.<domain>`."""
    port: int = 80
    pod_logs: str = "/var/log/pods"
    """Folder in which the kubelets keep container logs."""
    runtime_support: bool = True
    """Whether the signer and the log services are installed. They need pod certificates."""
    desk: DeskConfig = DeskConfig()

    @property
    def cluster_facts(self) -> dict[str, str]:
        """Content of the facts ConfigMap. Add-ons are not listed, as their readers discover them."""
        return {
            "name": self.name,
            "trustDomain": f"{self.name}.pincompute.local",
            "domain": self.domain,
            "port": str(self.port),
            "nodes": "real",
        }


MAXIMAL_CONFIG = InstallConfig(desk=DeskConfig("https://desk.example.com"))
"""Configuration with every optional object, for listing all that may be installed."""


def platform_objects(config: InstallConfig) -> list[Object]:
    """All objects in the order in which they are applied, each labelled with this version."""
    facts: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CLUSTER_FACTS_CONFIGMAP, "namespace": SYSTEM_NAMESPACE},
        "data": config.cluster_facts,
    }
    objects = [
        *crds(),
        *fill_manifest("tiers"),
        *fill_manifest("roles"),
        *_granted_to(OPERATOR, *((DESK,) if config.desk.address else ())),
        *fill_manifest("guard", pod_creators=_pod_creators()),
        *fill_manifest("tenancy", pod_creators=_pod_creators(), writers=list(WORKLOAD_WRITERS)),
        *fill_manifest("landing", writers=list(WORKLOAD_WRITERS)),
        *fill_manifest("hosts", writers=list(WORKLOAD_WRITERS), domain=config.domain),
        *fill_manifest("confinement", **{name: [account_user(user)] for name, user in _CONFINED.items()}),
        *fill_manifest("operator", image=config.image, facts=content_hash(config.cluster_facts)),
        facts,
        *(support_objects(config) if config.runtime_support else ()),
        *(_desk_objects(config) if config.desk.address else ()),
    ]
    return sorted((_labelled(each) for each in objects), key=lambda each: APPLY_ORDER.index(RESOURCES[each["kind"]]))


def support_objects(config: InstallConfig) -> list[Object]:
    """Signer, log store and log shipper, which the bundled runtimes need."""
    return [
        *fill_manifest("support", image=config.image, pod_logs=config.pod_logs),
        *_granted_to(SIGNER, LOG_STORE, POD_ACCOUNTS),
    ]


def _desk_objects(config: InstallConfig) -> list[Object]:
    return [
        *fill_manifest("desk", image=config.image, **config.desk.manifest_values()),
        *fill_manifest("desk_host", host=urlsplit(config.desk.address).hostname),
        *fill_manifest("rehearsal", desk=[account_user(DESK)]),
    ]


@cache
def resource_locations() -> tuple[tuple[Resource, str], ...]:
    """Kinds and namespaces that may contain objects of the platform; the namespace is empty for cluster-wide kinds."""
    found = {
        (RESOURCES[each["kind"]], each["metadata"].get("namespace", "")) for each in platform_objects(MAXIMAL_CONFIG)
    }
    return tuple(sorted(found, key=lambda each: (APPLY_ORDER.index(each[0]), each[1])))


def survives_uninstall(object_: Object, *, uses_runtime: bool, recorded: bool = False) -> bool:
    """Whether running workloads and their users need an object after the platform has been removed.

    CRDs, priority classes and the roles of members always stay. Pods that use a runtime also need the signer, the log
    services and the policies that protect their identities: everything but the operator and the desk. The desk's
    database and Secrets stay in their namespace.
    """
    kind, name = object_["kind"], object_["metadata"]["name"]
    if kind in {"CustomResourceDefinition", "PriorityClass", "PersistentVolumeClaim"}:
        return True
    if uses_runtime:
        return name not in {OPERATOR, DESK, NODE_STATS_ACCOUNT, REHEARSAL_POLICY}
    return name.startswith(f"{NAME_PREFIX}project-") or (recorded and (kind, name) == ("Namespace", SYSTEM_NAMESPACE))


def _granted_to(*users: str) -> list[Object]:
    """Roles and bindings of these users, granted to service accounts instead of certificate users."""
    objects = roles_granted_to(fill_manifest("access"), *users)
    return [{**each, "subjects": _accounts(each, users)} if "subjects" in each else each for each in objects]


def _accounts(binding: Object, users: Collection[str]) -> list[Object]:
    """Service accounts in place of users; groups are kept."""
    named = [each for each in binding["subjects"] if each["name"] in users]
    return [
        each
        if each["kind"] == "Group"
        else {"kind": "ServiceAccount", "name": each["name"], "namespace": SYSTEM_NAMESPACE}
        for each in named
    ]


def _pod_creators() -> list[str]:
    """Users that may create the pods of workloads on that cluster; see bootstrap.POD_CREATORS."""
    return [
        *CONTROLLERS,
        "system:serviceaccount:kubeflow:training-operator",
        account_user(OPERATOR),
    ]


def _labelled(object_: Object) -> Object:
    metadata = object_["metadata"]
    return {**object_, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), INSTALLED_LABEL: VERSION}}}
