"""Types of GPUs: which specs may name one, and which roles of a training job get it."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.api.daemon import DaemonSpec
from pincompute.api.service import ServiceSpec
from pincompute.api.training_job import TrainingJobSpec, TrainingRole, TrainingRoles
from pincompute.api.type_errors import type_errors
from pincompute.api.workload import WorkloadSpec

LABEL = "pinterest.com/gpu-type"
TEMPLATE = {"spec": {"nodeSelector": {LABEL: "h100"}}}


def service_spec(**fields: Any) -> ServiceSpec:
    return ServiceSpec(image="hello:dev", port=8080, gpu_type="a100", **fields)


def training_spec(gpu_type: str = "a100", **fields: Any) -> TrainingJobSpec:
    return TrainingJobSpec(framework="tensorflow", image="ranking:7", gpu_type=gpu_type, **fields)


@pytest.mark.parametrize(
    ("spec", "path", "what"),
    [
        (service_spec(), ("gpuType",), "gpuType is set, but gpus is 0"),
        (service_spec(gpus=1, template=TEMPLATE), ("gpuType",), f"gpuType is set, and {LABEL} in the template's"),
        (DaemonSpec(image="a", gpus=1, gpu_type="a100", nodes={LABEL: "h100"}), ("gpuType",), f"{LABEL} in nodes"),
        (training_spec(), ("gpuType",), "gpuType is set, but no role has gpus"),
        (
            training_spec("", gpus=1, roles=TrainingRoles(ps=TrainingRole(gpus=0, gpu_type="h100"))),
            ("roles", "ps", "gpuType"),
            "gpuType is set, but gpus is 0",
        ),
    ],
)
def test_rejects_gpu_types_without_effect_or_set_twice(spec: WorkloadSpec, path: tuple[str, ...], what: str) -> None:
    (error,) = spec.field_errors("hello")
    assert error.path == path
    assert what in error.what


@pytest.mark.parametrize(
    ("gpus", "hint"),
    [
        ({"a100": 8}, "write gpus: 8, and gpuType: a100"),
        ({"a100": True}, ""),
        ({"a100": 8, "h100": 8}, ""),
        ({"a 100": 8}, ""),
        ({"x" * 64: 8}, ""),
        ({}, ""),
        ("a100:8", ""),
    ],
    ids=str,
)
def test_type_as_key_of_gpus_is_explained(gpus: object, hint: str) -> None:
    (error,) = type_errors(ServiceSpec, {"image": "hello:dev", "port": 8080, "gpus": gpus}, ("spec",))
    assert error.path == ("spec", "gpus")
    assert error.next == hint


def test_accelerators_are_gpus() -> None:
    (error,) = type_errors(ServiceSpec, {"image": "hello:dev", "port": 8080, "accelerators": 8}, ("spec",))
    assert error.next == "did you mean gpus?"


def test_roles_without_gpus_have_no_type_and_others_that_of_the_job() -> None:
    roles = TrainingRoles(chief=TrainingRole(gpu_type="h100"), worker=TrainingRole(replicas=2), ps=TrainingRole(gpus=0))
    spec = training_spec(gpus=8, roles=roles)
    assert list(spec.field_errors("ranking")) == []
    types = {name: spec.for_role(role).gpu_type for name, role in spec.active_roles.items()}
    assert types == {"chief": "h100", "worker": "a100", "ps": ""}
    assert spec.gpu_types == ["a100", "h100"]
