"""What users may do by our manifests, and what they did by the API server's audit log."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pincompute import engine
from pincompute.engine.platform import Platform


class Right(NamedTuple):
    user: str
    group: str
    resource: str
    verb: str


def granted(users: Collection[str]) -> set[Right]:
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


def _rights(user: str, rules: list[dict[str, Any]]) -> Iterator[Right]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield from (Right(user, group, resource, verb) for verb in rule["verbs"])


def paged(users: Collection[str]) -> set[Right]:
    """What an informer needs of a server that does not tell by a watch what is there already; this one does."""
    every = granted(users)
    return {each for each in every if each.verb == "list" and each._replace(verb="watch") in every}


def audited(platform: Platform, users: Collection[str]) -> list[dict[str, Any]]:
    events = map(json.loads, audit_lines(platform.home.logs / "audit"))
    return [event for event in events if event["user"]["username"] in users and "objectRef" in event]


def audit_lines(folder: Path) -> list[str]:
    """Whole lines: the last one may be only begun."""
    # What is put aside while this is read, is read twice and not missed.
    written = (folder / "audit.log").read_text()
    # What was used once, at the beginning, stands in a log that was put aside since.
    aside = [file.read_text() for file in sorted(folder.glob("audit-*.log"))]
    return [line for text in (*aside, written) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def used(platform: Platform, users: Collection[str]) -> set[Right]:
    found = set()
    for event in audited(platform, users):
        thing = event["objectRef"]
        resource = "/".join(part for part in (thing["resource"], thing.get("subresource")) if part)
        found.add(Right(event["user"]["username"], thing.get("apiGroup", ""), resource, event["verb"]))
    return found
