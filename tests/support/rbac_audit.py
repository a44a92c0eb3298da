"""Permissions granted by the manifests, and permissions used according to the API server's audit log."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pincompute import engine
from pincompute.engine.platform import Platform


class ApiPermission(NamedTuple):
    user: str
    group: str
    resource: str
    verb: str


def granted_permissions(users: Collection[str]) -> set[ApiPermission]:
    text = (Path(engine.__file__).parent / "manifests" / "access.yaml").read_text()
    objects = list(yaml.safe_load_all(text))
    roles = {(each["kind"], each["metadata"]["name"]): each for each in objects if "rules" in each}
    found = set()
    for binding in objects:
        for subject in binding.get("subjects", ()):
            role = roles.get((binding["roleRef"]["kind"], binding["roleRef"]["name"]))
            if subject["name"] in users and role:
                found |= set(_rights(subject["name"], role["rules"]))
    return found


def _rights(user: str, rules: list[dict[str, Any]]) -> Iterator[ApiPermission]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (ApiPermission(user, group, resource, verb) for verb in rule["verbs"])


def list_fallback_permissions(users: Collection[str]) -> set[ApiPermission]:
    """List permissions that informers need only with API servers without watch-list; the tests' server has it."""
    every = granted_permissions(users)
    return {each for each in every if each.verb == "list" and each._replace(verb="watch") in every}


def audited_events(platform: Platform, users: Collection[str]) -> list[dict[str, Any]]:
    events = map(json.loads, audit_lines(platform.home.logs / "audit"))
    return [event for event in events if event["user"]["username"] in users and "objectRef" in event]


def audit_lines(folder: Path) -> list[str]:
    """Complete lines: the last one may be in the process of being written."""
    # The current log first: lines rotated meanwhile are read twice, and not missed.
    written = (folder / "audit.log").read_text()
    # Permissions used only at the start are in rotated logs.
    aside = [file.read_text() for file in sorted(folder.glob("audit-*.log"))]
    return [line for text in (*aside, written) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def used_permissions(platform: Platform, users: Collection[str]) -> set[ApiPermission]:
    found = set()
    for event in audited_events(platform, users):
        thing = event["objectRef"]
        resource = "/".join(part for part in (thing["resource"], thing.get("subresource")) if part)
        found.add(ApiPermission(event["user"]["username"], thing.get("apiGroup", ""), resource, event["verb"]))
    return found
