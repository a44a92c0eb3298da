"""Permissions that installing and removing need, and a check by the API server which of them the user lacks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from pincompute.api.names import NODES_NAMESPACE, SYSTEM_NAMESPACE
from pincompute.base.problem import Problem
from pincompute.base.reasons import INSTALLER_RIGHTS_MISSING
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.installation.objects import APPLY_ORDER, resource_locations
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.resource import Object

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Permission(NamedTuple):
    """One verb on one resource."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        thing = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {thing}{f' in {self.namespace}' if self.namespace else ''}"


_WRITES = ("get", "list", "create", "patch", "delete")
_ROLES = tuple(each for each in APPLY_ORDER if each in (kinds.CLUSTER_ROLES, kinds.ROLES))


def install_permissions() -> list[Permission]:
    """Read, write and delete every object of the platform; then watch its pods and create a project."""
    writes = [
        Permission(verb, each.plural, each.group, place) for each, place in resource_locations() for verb in _WRITES
    ]
    projects, leases = CUSTOM_RESOURCES["Project"], kinds.LEASES
    return [
        *writes,
        *(Permission("list", "pods", namespace=each) for each in (SYSTEM_NAMESPACE, NODES_NAMESPACE)),
        Permission("get", leases.plural, leases.group, SYSTEM_NAMESPACE),
        Permission("watch", "namespaces"),
        *(Permission(verb, projects.plural, projects.group) for verb in ("list", "create")),
    ]


def desk_permissions() -> list[Permission]:
    """Write the Secret with the desk's certificate."""
    return [Permission(verb, kinds.SECRETS.plural, namespace=SYSTEM_NAMESPACE) for verb in ("get", "create", "patch")]


def uninstall_permissions(*, workloads: bool) -> list[Permission]:
    removed = [
        Permission(verb, each.plural, each.group, place)
        for each, place in resource_locations()
        for verb in ("list", "delete")
    ]
    ours = [
        Permission(verb, each.plural, each.group) for each in CUSTOM_RESOURCES.values() for verb in ("list", "delete")
    ]
    pods = [Permission("list", "pods", namespace=each) for each in (SYSTEM_NAMESPACE, NODES_NAMESPACE)]
    return [*removed, *pods, *(ours if workloads else ())]


async def missing_permissions(
    client: Client, wanted: Iterable[Permission], roles: Iterable[Object] = ()
) -> list[Problem]:
    """One problem that lists all missing permissions.

    A user without `escalate` must have every permission of the roles that are created, as RBAC lets users grant only
    permissions that they have.
    """
    lacking = await _denied_permissions(client, wanted)
    given = [each for each in roles if each["kind"] in {one.kind for one in _ROLES}]
    if given and await _denied_permissions(
        client, (Permission("escalate", each.plural, each.group) for each in _ROLES)
    ):
        lacking += await _denied_permissions(
            client, dict.fromkeys(permission for each in given for permission in _permissions_of(each))
        )
    if not lacking:
        return []
    what = f"you lack {len(lacking)} permissions that this command needs"
    next_ = "ask an administrator of the cluster; --dry-run prints the objects to apply"
    return [Problem(INSTALLER_RIGHTS_MISSING, what, note="\n".join(map(str, lacking)), next=next_)]


def _permissions_of(role: Object) -> Iterator[Permission]:
    namespace = role["metadata"].get("namespace", "")
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (Permission(verb, resource, group, namespace) for verb in rule["verbs"])


async def _denied_permissions(client: Client, permissions: Iterable[Permission]) -> list[Permission]:
    asked = list(permissions)
    allowed = await asyncio.gather(*(_is_allowed(client, each) for each in asked))
    return [permission for permission, yes in zip(asked, allowed, strict=True) if not yes]


async def _is_allowed(client: Client, permission: Permission) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {"verb": permission.verb, "group": permission.group, "resource": resource, "subresource": subresource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**attributes, "namespace": permission.namespace}},
    }
    answer = msgspec.json.decode(await client.raw("POST", _REVIEWS, body=msgspec.json.encode(review)))
    return bool(answer["status"]["allowed"])
