"""Configuration bundles in a plan: parts, annotations, revisions, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.names import CONFIG_ANNOTATION, LIVE_CONFIG_ANNOTATION, TEMPLATE_HASH_LABEL
from pincompute.engine.first_runtime import bundled_runtime_objects
from pincompute.objects.content import Object
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.plan import Plan
from pincompute.planning.revision_number import revision_content
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.workload_document import workload_document
from runtime_builders import CLUSTER, NOW, build_resource, build_runtimes, build_service

DIGEST, OTHER = "a" * 64, "b" * 64
PIN = {"bundle": "me/flags", "version": 3, "digest": DIGEST}


def bundled() -> Runtimes:
    objects = [each for each in bundled_runtime_objects() if each["kind"] == "PinterestSidecar"]
    parts = next(each["spec"]["parts"] for each in bundled_runtime_objects() if each["metadata"]["name"] == "1")
    runtime = {
        "kind": "Runtime", "metadata": {"name": "1"}, "spec": {"parts": parts},
        "status": {"done": "2026-01-01T00:00:00Z"},
    }  # fmt: skip
    return build_runtimes(*map(build_resource, [*objects, runtime]))


def plan_service(runtimes: Runtimes | None = None, **spec: Any) -> Plan:
    owner = build_service(uid="u1", **spec)
    return PLANNERS[owner.kind](Snapshot(owner, (), (), CLUSTER, NOW, None, runtimes or bundled()))


def template_of(plan: Plan) -> Object:
    (deployment,) = [each for each in plan.wanted if each["kind"] == "Deployment"]
    return deployment["spec"]["template"]


def test_workload_without_bundles_has_neither_part() -> None:
    template = template_of(plan_service())
    assert [each["name"] for each in template["spec"]["initContainers"]] == ["logs"]
    assert "config" not in str(template["metadata"]["annotations"])


def test_fixed_bundle_is_fetched_before_the_program_starts() -> None:
    template = template_of(plan_service(config=["flags"], configVersions=[PIN]))
    (init,) = [each for each in template["spec"]["initContainers"] if "restartPolicy" not in each]
    assert init["name"] == "config"
    assert template["metadata"]["annotations"][CONFIG_ANNOTATION] == f"me/flags@3={DIGEST}"
    (program,) = template["spec"]["containers"]
    assert {"name": "CONFIG_FOLDER", "value": "/etc/pinterest/config"} in program["env"]
    (mount,) = [each for each in program["volumeMounts"] if each["name"] == "config"]
    assert mount == {"name": "config", "mountPath": "/etc/pinterest/config", "readOnly": True}
    # The part itself may write.
    assert {"name": "config", "mountPath": "/etc/pinterest/config"} in init["volumeMounts"]


def test_live_bundle_has_a_sidecar_and_no_version() -> None:
    template = template_of(plan_service(config=["flags@live", "search/words@live"]))
    assert template["metadata"]["annotations"][LIVE_CONFIG_ANNOTATION] == "me/flags search/words"
    assert CONFIG_ANNOTATION not in template["metadata"]["annotations"]
    (sidecar,) = [each for each in template["spec"]["initContainers"] if each["name"] == "config-live"]
    assert sidecar["restartPolicy"] == "Always"


def test_another_version_changes_template_and_revision() -> None:
    before = build_service(uid="u1", config=["flags"], configVersions=[PIN])
    after = build_service(uid="u1", config=["flags"], configVersions=[{**PIN, "version": 4, "digest": OTHER}])
    assert revision_content(before.spec) != revision_content(after.spec)
    hashes = [
        template_of(plan_service(config=["flags"], configVersions=[each]))["metadata"]["labels"][TEMPLATE_HASH_LABEL]
        for each in (PIN, {**PIN, "version": 4, "digest": OTHER})
    ]
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize("pins", [[], [{**PIN, "bundle": "me/other"}]])
def test_bundle_without_a_version_is_refused(pins: list[Object]) -> None:
    """As when the file goes straight to the cluster, and not by the desk."""
    plan = plan_service(config=["flags"], configVersions=pins)
    assert [each.reason.code for each in plan.problems] == ["ConfigUnresolved"]


def test_fixed_version_needs_that_very_pin() -> None:
    assert [each.reason.code for each in plan_service(config=["flags@2"], configVersions=[PIN]).problems] == [
        "ConfigUnresolved"
    ]
    assert plan_service(config=["flags@3"], configVersions=[PIN]).problems == ()


def test_runtime_without_the_part_is_refused() -> None:
    plan = plan_service(build_runtimes(), config=["flags", "words@live"], configVersions=[PIN])
    assert [each.reason.code for each in plan.problems] == ["ConfigNotDelivered"] * 2
    assert "me/words" in plan.problems[1].what


def test_document_of_the_author_has_no_versions() -> None:
    """Otherwise, `pin edit` would keep a version that a deploy determines."""
    document = workload_document(build_service(config=["flags"], configVersions=[PIN]))
    assert document["spec"]["config"] == ["flags"]
    assert "configVersions" not in document["spec"]


def test_two_bundles_for_one_folder_are_refused() -> None:
    errors = list(build_service(config=["flags", "search/flags@2"]).spec.field_errors("hello"))
    assert [each.path for each in errors] == [("config", 1)]
