"""What our processes may do is what they do: granted and used, by the API server's own audit log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from person import Person, all_gone
from pincompute import engine
from pincompute.api.names import DESK, ENGINE, GROUP, OPERATOR, PROJECT, WANTED, WORKLOAD
from pincompute.controller.resources import NATIVES, NOUNS, PROJECT_LABELS, PROJECT_NATIVES
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import NAMESPACES, Object, Resource
from real_platform import until
from transcripts import ROOT

pytestmark = pytest.mark.cluster

PROJECT_NAME = "rights"
USERS = (OPERATOR, DESK, "pincompute-ingress")


class Right(NamedTuple):
    user: str
    group: str
    resource: str
    verb: str


NEEDED_BUT_NOT_AUDITED = {
    # An apply that makes something must be allowed to create, and is audited as a patch.
    Right(DESK, GROUP, "pinterestservices", "create"),
    # Only a stricter cluster than this one asks for it.
    *(Right(OPERATOR, GROUP, f"{each}/finalizers", "update") for each in ("pinterestservices", "projects")),
    # Asked of whoever writes a RoleBinding; nobody sends it.
    Right(OPERATOR, "rbac.authorization.k8s.io", "clusterroles", "bind"),
}


RIGHTS = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: rights}
spec: {image: "hello:test", port: 8080, configuration: {a.txt: b}}
"""


def granted() -> set[Right]:
    text = (Path(engine.__file__).parent / "manifests" / "access.yaml").read_text()
    objects = list(yaml.safe_load_all(text))
    roles = {(each["kind"], each["metadata"]["name"]): each for each in objects if "rules" in each}
    found = set()
    for binding in objects:
        for subject in binding.get("subjects", ()):
            role = roles.get((binding["roleRef"]["kind"], binding["roleRef"]["name"]))
            if subject["name"] in USERS and role:
                found |= set(_rights(subject["name"], role["rules"]))
    return found


def _rights(user: str, rules: list[dict[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (Right(user, group, resource, verb) for verb in rule["verbs"])


def audited(platform: Platform) -> list[dict[str, Any]]:
    lines = (platform.home.logs / "audit" / "audit.log").read_text().splitlines()
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return [event for event in events if event["user"]["username"] in USERS and "objectRef" in event]


def used(platform: Platform) -> set[Right]:
    found = set()
    for event in audited(platform):
        thing = event["objectRef"]
        resource = "/".join(part for part in (thing["resource"], thing.get("subresource")) if part)
        found.add(Right(event["user"]["username"], thing.get("apiGroup", ""), resource, event["verb"]))
    return found


def test_no_right_is_a_wildcard() -> None:
    assert not [right for right in granted() if "*" in "".join(right)]


async def test_what_is_granted_is_used_and_nothing_is_refused(real_platform: Platform, tmp_path: Path) -> None:
    person = Person(real_platform, tmp_path)
    await person.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:test")
    (tmp_path / "rights.yaml").write_text(RIGHTS)
    await person.pin("deploy", "rights.yaml")
    await person.pin("plan", "rights.yaml")
    await person.pin("logs", "rights")
    await person.pin("get")
    await person.pin("get", "--project", "nowhere", code=1)
    async with Client(load(real_platform.home.kubeconfig), agent="tests") as client:
        await _plan_by(client)
        await _disturb(client)
        for kind, name in (("Runtime", "1"), ("PinterestSidecar", "rights-1"), ("Project", PROJECT_NAME)):
            await client.delete(NOUNS[kind], name)
    await person.pin("delete", "rights")
    refused = [event for event in audited(real_platform) if event.get("responseStatus", {}).get("code") == 403]
    assert refused == []
    assert granted() - used(real_platform) == NEEDED_BUT_NOT_AUDITED


async def _plan_by(client: Client) -> None:
    """What workloads are planned by, each with all that it becomes."""
    members: Object = {"owner": {"people": ["ann"]}}
    quota: Object = {"reserved": {}}
    project = {
        "metadata": {"name": PROJECT_NAME},
        "spec": {"owner": "ann", "members": members, "quota": quota},
    }
    part = {"metadata": {"name": "rights-1"}, "spec": {"image": "hello:test"}}
    # Nobody has it: it is only prepared.
    runtime = {"metadata": {"name": "1"}, "spec": {"parts": ["rights-1"]}}
    for kind, body in (("Project", project), ("PinterestSidecar", part), ("Runtime", runtime)):
        await client.apply(body, NOUNS[kind], manager=ENGINE)
    for kind, name in (("Project", PROJECT_NAME), ("PinterestSidecar", "rights-1"), ("Runtime", "1")):
        await until(client, NOUNS[kind], "", _said, name)


def _said(seen: Object) -> bool:
    conditions = seen.get("status", {}).get("conditions", ())
    return any(each["reason"] != "Progressing" for each in conditions)


async def _disturb(client: Client) -> None:
    """Everything that makes the operator use its rights: natives that differ, and natives that are not wanted."""
    # Nobody removes a namespace by itself.
    lying = [each for each in PROJECT_NATIVES.values() if each.namespaced]
    for resource in NATIVES.values():
        await _disturb_native(client, resource, "me", f"{WORKLOAD}=rights")
    for resource in PROJECT_NATIVES.values():
        await _disturb_native(client, resource, PROJECT_NAME, f"{PROJECT}={PROJECT_NAME},{PROJECT_LABELS}")
    async with asyncio.timeout(30):
        for resource in NATIVES.values():
            await all_gone(client, resource, "me", fields="metadata.name=formerly")
        for resource in lying:
            await all_gone(client, resource, PROJECT_NAME, fields="metadata.name=formerly")
        await until(client, NAMESPACES, "", lambda seen: WANTED in seen["metadata"]["annotations"], PROJECT_NAME)


async def _disturb_native(client: Client, resource: Resource, namespace: str, labels: str) -> None:
    seen = (await client.list(resource, namespace, labels=labels)).items[0]
    body = {"metadata": {"annotations": {WANTED: None}}}
    await client.patch(resource, seen["metadata"]["name"], namespace, body, style="merge", manager=ENGINE)
    if not resource.namespaced:
        return
    extra: Object = {
        **{field: value for field, value in seen.items() if field not in {"metadata", "status"}},
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": "formerly",
            "namespace": namespace,
            "labels": seen["metadata"]["labels"],
            "ownerReferences": seen["metadata"]["ownerReferences"],
        },
    }
    for field in ("clusterIP", "clusterIPs"):
        extra.get("spec", {}).pop(field, None)
    await client.create(resource, extra, manager=ENGINE)
