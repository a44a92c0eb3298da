"""Whom a change of a project, a runtime or a part concerns: those are looked at again, and nobody else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from fleets import noun, part, runtime
from pincompute.controller.surroundings import Surroundings
from pincompute.kube.watch import ADDED, DELETED, MODIFIED, Event
from pincompute.objects.content import Object

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
DONE = "2026-01-30T12:00:00Z"


def in_project(project: str, name: str) -> Any:
    spec = {"image": "hello:dev", "port": 8080}
    return noun({"kind": "PinterestService", "metadata": {"name": name, "project": project}, "spec": spec})


def cluster_wide(each: Any) -> Any:
    return msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, namespace=""))


SHOP, WEB = in_project("me", "shop"), in_project("you", "web")

PART, PREPARED = cluster_wide(part("logs-1")), cluster_wide(runtime(1, "logs-1", roll={"waves": [100]}))


def project(**spec: Any) -> Any:
    body: Object = {"owner": "team-ads", "quota": {"on-demand": {}}, **spec}
    return noun({"kind": "Project", "metadata": {"name": "me"}, "spec": body})


def concerned(around: Surroundings, type_: str, each: Any) -> list[str]:
    concerns = around.take(Event(type_, each), NOW)
    return [noun.metadata.name for noun in (SHOP, WEB, PART, PREPARED) if concerns and concerns(noun)]


def test_a_project_concerns_what_lies_in_it_when_its_spec_changes() -> None:
    around, before = Surroundings(), project()
    assert concerned(around, ADDED, before) == ["shop"]
    assert concerned(around, MODIFIED, msgspec.structs.replace(before)) == []
    assert concerned(around, MODIFIED, project(costCentre="4711")) == ["shop"]
    assert around.projects["me"].spec.cost_centre == "4711"
    assert concerned(around, DELETED, project()) == ["shop"]
    assert around.projects == {}


def test_a_runtime_concerns_those_that_get_another_one_and_its_like() -> None:
    around = Surroundings()
    around.take(Event(ADDED, PART), NOW)
    assert concerned(around, ADDED, PREPARED) == ["logs-1", "1"]
    current = runtime(1, "logs-1", roll={"waves": [100]}, done=DONE)
    assert concerned(around, MODIFIED, current) == ["shop", "web", "logs-1", "1"]
    assert around.runtimes.current == 1
    assert around.rolling is None
    said = msgspec.structs.replace(current, status=msgspec.structs.replace(current.status, wave="1 of 1"))
    assert concerned(around, MODIFIED, said) == []
    assert concerned(around, DELETED, current) == ["shop", "web", "logs-1", "1"]
