"""Who may do what past the desk: what a project's members may by Kubernetes' own word, against the same table."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest
import yaml

from allowed import PROJECTS, TABLE, Asked, allowed
from control_plane import ControlPlane
from pincompute.api.identity import Sort
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION, ENGINE, GROUP, HAND, OPERATOR
from pincompute.api.project import Project
from pincompute.controller.resources import NOUNS
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.kube.client import Client
from pincompute.kube.resource import CLUSTER_ROLES, NAMESPACES, ROLE_BINDINGS, Object
from pincompute.planning.project import plan
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from workloads import cluster

pytestmark = pytest.mark.cluster

VERBS = {
    "look at": "get",
    "bring work into": "create",
    "change what runs in": "patch",
    "delete what runs in": "delete",
}
AT_ONCE = 16
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


async def test_members_may_past_the_desk_what_they_may_at_it(plane: ControlPlane) -> None:
    """And where only landed work runs, nothing but look."""
    asked = [each for each in TABLE if each.kind and each.verb in VERBS and _known(each)]
    assert len(asked) > 1_000
    async with cluster(plane) as client:
        for role in yaml.safe_load_all((MANIFESTS / "roles.yaml").read_text()):
            await client.apply(role, CLUSTER_ROLES, manager=ENGINE)
        for name, members in PROJECTS.items():
            if members is not None:
                await _made(client, name, members)
        # The API server hears of each right a moment after it is given, and here they only become more.
        waits = [each for each in asked if _wanted(each)]
        async with asyncio.timeout(180):
            while waits:
                waits = [each for each in waits if not await _may(client, each)]
        turns = asyncio.Semaphore(AT_ONCE)

        async def looked_at(each: Asked) -> bool:
            async with turns:
                return await _may(client, each)

        found = await asyncio.gather(*map(looked_at, asked))
        for name, members in PROJECTS.items():
            if members is not None:
                await client.delete(NOUNS["Project"], name)
                for binding in (await client.list(ROLE_BINDINGS, name)).items:
                    await client.delete(ROLE_BINDINGS, binding["metadata"]["name"], name)
    assert [each for each, may in zip(asked, found, strict=True) if may != _wanted(each)] == []


def _known(asked: Asked) -> bool:
    """A program is of some project, to Kubernetes too."""
    return asked.who.sort is Sort.PERSON or "/" in asked.who.name


def _wanted(asked: Asked) -> bool:
    by_the_desk_alone = asked.project == "landed" and asked.verb != "look at" and not asked.who.administers
    return allowed(asked) and not by_the_desk_alone


async def _made(client: Client, name: str, members: Object) -> None:
    spec = {"owner": "team-ads", "review": "landed" if name == "landed" else "open", "members": members}
    document = {"apiVersion": API_VERSION, "kind": "Project", "metadata": {"name": name}}
    written = await client.apply(
        {**document, "spec": {**spec, "quota": {"on-demand": {}}}}, NOUNS["Project"], manager=HAND
    )
    owner = msgspec.convert(written, Project)
    seen = Snapshot(owner, (), (), Cluster(name="test", domain="localhost", port=80), datetime.now(UTC))
    (namespace,) = plan(seen).wanted
    native = {**await client.apply(namespace, NAMESPACES, manager=OPERATOR), "kind": "Namespace"}
    for each in plan(seen._replace(natives=(msgspec.convert(native, Native),))).wanted:
        if each["kind"] == "RoleBinding":
            await client.apply(each, ROLE_BINDINGS, manager=OPERATOR)


async def _may(client: Client, asked: Asked) -> bool:
    who, kind = asked.who, WORKLOADS[asked.kind]
    account = who.name.replace("/", ":", 1)
    user = f"system:serviceaccount:{account}" if who.sort is Sort.PROGRAM else who.name
    groups = ["system:masters"] if who.administers else sorted(who.groups)
    about = {"namespace": asked.project, "verb": VERBS[asked.verb], "group": GROUP, "resource": kind.plural()}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": about},
    }
    reviewed = msgspec.json.decode(await client.raw("POST", REVIEWS, body=msgspec.json.encode(body)))
    return bool(reviewed["status"]["allowed"])
