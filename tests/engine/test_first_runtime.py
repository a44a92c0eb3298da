"""The bundled sidecars apply to every kind."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.kubeflow import unsupported_fields
from pincompute.engine.first_runtime import bundled_runtime_objects, pin_images
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.snapshot import Snapshot
from runtime_builders import CLUSTER, NOW, build_resource, build_runtimes

KINDS: dict[str, dict[str, Any]] = {
    "PinterestService": {"port": 8080},
    "PinterestStatefulSet": {"port": 8080},
    "PinterestJobSet": {"tasks": 1},
    "PinterestCronJob": {"schedule": "30 3 1 1 *"},
    "PinterestTrainingJob": {},
}


def templates(value: Any) -> list[Any]:
    """All pod templates in a Kubernetes object."""
    if isinstance(value, list):
        return [found for each in value for found in templates(each)]
    if not isinstance(value, dict):
        return []
    own = [value] if "containers" in value.get("spec", {}) else []
    return [*own, *(found for each in value.values() for found in templates(each))]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_identity_and_logs(kind: str, number: int) -> None:
    bundled = bundled_runtime_objects()
    objects = [each for each in bundled if each["kind"] == "PinterestSidecar"]
    parts = next(each["spec"]["parts"] for each in bundled if each["metadata"]["name"] == str(number))
    current = {"metadata": {"name": str(number)}, "kind": "Runtime", "spec": {"parts": parts}}
    runtimes = build_runtimes(*map(build_resource, [*objects, current | {"status": {"done": "2026-01-01T00:00:00Z"}}]))
    metadata = {"name": "hello", "uid": "owner-1", "generation": 1}
    owner = build_resource({"kind": kind, "metadata": metadata, "spec": {"image": "hello:1", **KINDS[kind]}})
    planned = PLANNERS[kind](Snapshot(owner, (), (), CLUSTER, NOW, None, runtimes))
    (template,) = templates(list(planned.wanted))
    (program,) = template["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in program["env"]}
    assert (variables["IDENTITY_FOLDER"], variables["LOG_FOLDER"]) == ("/run/identity", "/var/log/app")
    sidecars = {each["name"]: each for each in template["spec"]["initContainers"]}
    assert {each["mountPath"] for each in sidecars["logs"]["volumeMounts"]} == {"/run/identity", "/var/log/app"}
    if kind == "PinterestTrainingJob":
        assert list(sidecars) == ["identity-request", "logs"]
        assert list(unsupported_fields(template)) == []


def test_pushed_images_are_pinned_by_digest() -> None:
    digest = f"sha256:{'a' * 64}"
    before = bundled_runtime_objects()
    pinned = pin_images(before, {"pincompute-logs:1": digest})
    assert images(before) >= {"pincompute-logs:1", "pincompute-logs:2"}
    assert images(pinned) == images(before) - {"pincompute-logs:1"} | {f"pincompute-logs:1@{digest}"}
    for object_ in pinned:
        assert list(build_resource(object_).spec.field_errors(object_["metadata"]["name"])) == []
    assert before == bundled_runtime_objects()


def images(objects: list[Any]) -> set[str]:
    return {container["image"] for each in objects for container in each["spec"].get("sidecars", ())}
