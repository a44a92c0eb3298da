"""What our processes may do is what they do: granted and used, by the API server's own audit log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from person import Person, all_gone
from pincompute import engine
from pincompute.api.names import API_VERSION, DESK, ENGINE, GROUP, OPERATOR, WANTED, WORKLOAD
from pincompute.api.service import PinterestService
from pincompute.controller.resources import NATIVES, PINTEREST_SERVICES
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
    await person.pin("deploy", "rights", "--image", "hello:test", "--port", "8080")
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
    found = await client.get(PINTEREST_SERVICES, "rights", "me")
    owner = msgspec.convert(found, PinterestService)
    reference = owner_reference(API_VERSION, owner.kind, "rights", owner.metadata.uid)
    for resource in NATIVES.values():
        seen = await client.get(resource, "rights", "me")
        body = {"metadata": {"annotations": {WANTED: None}}}
        await client.patch(resource, "rights", "me", body, style="merge", manager=ENGINE)
        extra = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": "formerly",
                "namespace": "me",
                "labels": {WORKLOAD: "rights"},
                "ownerReferences": [reference],
            },
            "spec": {key: value for key, value in seen["spec"].items() if not key.startswith("clusterIP")},
        }
        await client.create(resource, extra, manager=ENGINE)
    async with asyncio.timeout(30):
        for resource in NATIVES.values():
            await all_gone(client, resource, "me", fields="metadata.name=formerly")
