"""The parts that come with a platform: every kind can have them, and each of its pods says who it is."""

from __future__ import annotations

from typing import Any

import pytest

from fleets import CLUSTER, NOW, noun, runtimes
from pincompute.api.kubeflow import dropped
from pincompute.engine.first_runtime import given
from pincompute.planning.planners import PLANNERS
from pincompute.planning.snapshot import Snapshot

KINDS: dict[str, dict[str, Any]] = {
    "PinterestService": {"port": 8080},
    "PinterestStatefulSet": {"port": 8080},
    "PinterestJobSet": {"tasks": 1},
    "PinterestCronJob": {"schedule": "30 3 1 1 *"},
    "PinterestTrainingJob": {},
}


def templates(value: Any) -> list[Any]:
    """Every pod template, wherever it stands in a native."""
    if isinstance(value, list):
        return [found for each in value for found in templates(each)]
    if not isinstance(value, dict):
        return []
    own = [value] if "containers" in value.get("spec", {}) else []
    return [*own, *(found for each in value.values() for found in templates(each))]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_identity_and_logs(kind: str, number: int) -> None:
    comes = given()
    objects = [each for each in comes if each["kind"] == "PinterestSidecar"]
    parts = next(each["spec"]["parts"] for each in comes if each["metadata"]["name"] == str(number))
    current = {"metadata": {"name": str(number)}, "kind": "Runtime", "spec": {"parts": parts}}
    known = runtimes(*map(noun, [*objects, current | {"status": {"done": "2026-01-01T00:00:00Z"}}]))
    metadata = {"name": "hello", "uid": "owner-1", "generation": 1}
    owner = noun({"kind": kind, "metadata": metadata, "spec": {"image": "hello:1", **KINDS[kind]}})
    planned = PLANNERS[kind](Snapshot(owner, (), (), CLUSTER, NOW, None, known))
    (template,) = templates(list(planned.wanted))
    (program,) = template["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in program["env"]}
    assert (variables["IDENTITY_FOLDER"], variables["LOG_FOLDER"]) == ("/run/identity", "/var/log/app")
    beside = {each["name"]: each for each in template["spec"]["initContainers"]}
    assert {each["mountPath"] for each in beside["logs"]["volumeMounts"]} == {"/run/identity", "/var/log/app"}
    if kind == "PinterestTrainingJob":
        assert list(beside) == ["identity-request", "logs"]
        assert list(dropped(template)) == []
