"""What whoever installs must be allowed, and what of it they are not: asked of the cluster itself, all at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from pincompute.api.names import NODES, SYSTEM
from pincompute.base.problem import Problem
from pincompute.base.reasons import INSTALLER_RIGHTS_MISSING
from pincompute.controller.resources import NOUNS
from pincompute.engine.installation.contents import ORDER, places
from pincompute.kube import resource as kinds
from pincompute.kube.client import Client
from pincompute.kube.resource import Object

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Right(NamedTuple):
    verb: str
    resource: str
    group: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        thing = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {thing}{f' in {self.namespace}' if self.namespace else ''}"


_WRITES = ("get", "list", "create", "patch", "delete")
_ROLES = tuple(each for each in ORDER if each in (kinds.CLUSTER_ROLES, kinds.ROLES))


def to_install() -> list[Right]:
    """Everything is read, written and, once it is wanted no more, removed; and then watched."""
    writes = [Right(verb, each.plural, each.group, place) for each, place in places() for verb in _WRITES]
    projects, leases = NOUNS["Project"], kinds.LEASES
    return [
        *writes,
        *(Right("list", "pods", namespace=each) for each in (SYSTEM, NODES)),
        Right("get", leases.plural, leases.group, SYSTEM),
        Right("watch", "namespaces"),
        *(Right(verb, projects.plural, projects.group) for verb in ("list", "create")),
    ]


def for_a_desk() -> list[Right]:
    """It is given its certificate."""
    return [Right(verb, kinds.SECRETS.plural, namespace=SYSTEM) for verb in ("get", "create", "patch")]


def to_remove(*, workloads: bool) -> list[Right]:
    removed = [Right(verb, each.plural, each.group, place) for each, place in places() for verb in ("list", "delete")]
    ours = [Right(verb, each.plural, each.group) for each in NOUNS.values() for verb in ("list", "delete")]
    pods = [Right("list", "pods", namespace=each) for each in (SYSTEM, NODES)]
    return [*removed, *pods, *(ours if workloads else ())]


async def missing(client: Client, wanted: Iterable[Right], roles: Iterable[Object] = ()) -> list[Problem]:
    """One problem with all that is missing. Whoever may not give every right may give those that they have."""
    lacking = await _denied(client, wanted)
    given = [each for each in roles if each["kind"] in {one.kind for one in _ROLES}]
    if given and await _denied(client, (Right("escalate", each.plural, each.group) for each in _ROLES)):
        lacking += await _denied(client, dict.fromkeys(right for each in given for right in _rules(each)))
    if not lacking:
        return []
    what = f"you lack {len(lacking)} of the rights that this takes"
    next_ = "ask an administrator of the cluster; --dry-run prints what they would apply"
    return [Problem(INSTALLER_RIGHTS_MISSING, what, note="\n".join(map(str, lacking)), next=next_)]


def _rules(role: Object) -> Iterator[Right]:
    namespace = role["metadata"].get("namespace", "")
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (Right(verb, resource, group, namespace) for verb in rule["verbs"])


async def _denied(client: Client, rights: Iterable[Right]) -> list[Right]:
    asked = list(rights)
    allowed = await asyncio.gather(*(_allowed(client, each) for each in asked))
    return [right for right, yes in zip(asked, allowed, strict=True) if not yes]


async def _allowed(client: Client, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**attributes, "namespace": right.namespace}},
    }
    answer = msgspec.json.decode(await client.raw("POST", _REVIEWS, body=msgspec.json.encode(review)))
    return bool(answer["status"]["allowed"])
