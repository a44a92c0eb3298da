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
from pincompute.api.names import API_VERSION, DESK, ENGINE, GROUP, OPERATOR, WANTED, WORKLOAD
from pincompute.controller.resources import NATIVES, NOUNS
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.objects.owners import owner_reference
from transcripts import ROOT

pytestmark = pytest.mark.cluster

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
    Right(OPERATOR, GROUP, "pinterestservices/finalizers", "update"),
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
        await _disturb(client)
    await person.pin("delete", "rights")
    refused = [event for event in audited(real_platform) if event.get("responseStatus", {}).get("code") == 403]
    assert refused == []
    assert granted() - used(real_platform) == NEEDED_BUT_NOT_AUDITED


async def _disturb(client: Client) -> None:
    """Everything that makes the operator use its rights: natives that differ, and natives that are not wanted."""
    found = await client.get(NOUNS["PinterestService"], "rights", "me")
    reference = owner_reference(API_VERSION, "PinterestService", "rights", found["metadata"]["uid"])
    for resource in NATIVES.values():
        seen = (await client.list(resource, "me", labels=f"{WORKLOAD}=rights")).items[0]
        body = {"metadata": {"annotations": {WANTED: None}}}
        await client.patch(resource, seen["metadata"]["name"], "me", body, style="merge", manager=ENGINE)
        extra: dict[str, Any] = {
            **{field: value for field, value in seen.items() if field not in {"metadata", "status"}},
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": "formerly",
                "namespace": "me",
                "labels": {WORKLOAD: "rights"},
                "ownerReferences": [reference],
            },
        }
        for field in ("clusterIP", "clusterIPs"):
            extra.get("spec", {}).pop(field, None)
        await client.create(resource, extra, manager=ENGINE)
    async with asyncio.timeout(30):
        for resource in NATIVES.values():
            await all_gone(client, resource, "me", fields="metadata.name=formerly")
