"""Validation of PinterestSidecar."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pincompute.api.documents import read_documents
from pincompute.api.kinds import WORKLOADS
from pincompute.api.parameter import Parameter
from pincompute.api.sidecar import DEFAULT_SERVED_KINDS, PinterestSidecar
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused


def parsed_part(spec: dict[str, Any], name: str = "logs-2") -> Any:
    document = {"apiVersion": "pinterest.com/v1", "kind": "PinterestSidecar", "metadata": {"name": name}, "spec": spec}
    return parse_resource(read_documents(yaml.safe_dump(document), "part.yaml")[0], "me")


def refusal(spec: dict[str, Any], name: str = "logs-2") -> str:
    with pytest.raises(Refused) as refused:
        parsed_part(spec, name)
    return refused.value.text()


def part_with_parameter(**more: Any) -> dict[str, Any]:
    return {"image": "logs:1", "parameters": {"level": {"description": "What.", "variable": "LEVEL", **more}}}


def test_short_form_is_one_image() -> None:
    part = parsed_part({"image": "logs:2.0"}, "node-logs-12")
    assert part.part_name == "node-logs"
    assert part.metadata.namespace == ""


def test_preserves_unknown_container_fields() -> None:
    part = parsed_part({"sidecars": [{"name": "logs", "image": "logs:2", "fieldOfTomorrow": {"a": 1}}]})
    assert part.spec.sidecars[0]["fieldOfTomorrow"] == {"a": 1}


@pytest.mark.parametrize("name", ["logs", "logs-0", "logs-02", "Logs-2", "2", "-2", "logs-2a"])
def test_rejects_name_without_version(name: str) -> None:
    assert "and ends with its version, such as logs-2" in refusal({"image": "logs:2"}, name)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "the part is empty"),
        ({"labels": {"a": "b"}, "port": 4000}, "port requires an image"),
        ({"image": "A:1"}, "invalid image 'A:1'"),
        ({"image": "a:1", "prot": 1}, "did you mean port?"),
        ({"image": "a:1", "serves": {"kinds": ["PinterestServise"]}}, "did you mean PinterestService?"),
        ({"image": "a:1", "sidecars": [{"name": "logs", "image": "a:1"}]}, "duplicate container name 'logs'"),
        ({"sidecars": [{"name": {"a": "b"}, "image": "a:1"}]}, "the container has no name"),
        ({"sidecars": [{"image": "a:1"}]}, "the container has no name"),
        ({"sidecars": [{"name": "a", "image": "a:1", "restartPolicy": {}}]}, "is always Always"),
        ({"sidecars": [{"name": "a"}]}, "image is missing"),
        (
            {"sidecars": [{"name": "a", "image": "a:1", "restartPolicy": "Never"}]},
            "the restart policy of a sidecar is always Always",
        ),
        ({"initContainers": [{"name": "a", "image": "a:1", "restartPolicy": "Always"}]}, "move it to sidecars"),
        ({"sidecars": [{"name": "a", "image": "a:1", "volumeMount": []}]}, "did you mean volumeMounts?"),
        ({"image": "a:1", "volumes": [{"name": "a"}, {"name": "a"}]}, "duplicate volume name 'a'"),
        (
            {"volumes": [{"name": "spool"}], "mounts": [{"name": "spol", "mountPath": "/a"}]},
            "the part has no volume 'spol'  [DocumentInvalid]\n  next: did you mean spool?",
        ),
        (
            {
                "volumes": [{"name": "a"}, {"name": "b"}],
                "sidecars": [
                    {
                        "name": "c",
                        "image": "a:1",
                        "volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/a"}],
                    }
                ],
            },
            "duplicate mountPath '/a' in volumeMounts",
        ),
        (
            {"volumes": [{"name": "a"}], "mounts": [{"name": "a", "mountPath": "/a"} for _ in "ab"]},
            "duplicate mountPath '/a' in mounts",
        ),
        (
            {"sidecars": [{"name": "c", "image": "a:1", "env": [{"name": "A"}, {"name": "A"}]}]},
            "duplicate name 'A' in env",
        ),
        (
            {"sidecars": [{"name": "c", "image": "a:1", "env": [{"name": "PIN_A"}]}]},
            "invalid variable name 'PIN_A'",
        ),
        ({"environment": {"PIN_A": "1"}}, "names that begin with PIN_ are set by the platform"),
        ({"labels": {"pinterest.com/tier": "a"}}, "labels of pinterest.com are set by the platform"),
    ],
)
def test_rejects_invalid_part(spec: dict[str, Any], message: str) -> None:
    assert message in refusal(spec)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"type": "text"}, "expected string, integer, boolean"),
        ({"type": "integer", "default": "5"}, "default is '5': expected an integer"),
        ({"type": "integer", "minimum": 5, "default": 4}, "default is 4: expected 5 or more"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "minimum 5 is larger than maximum 4"),
        ({"type": "boolean", "default": 1}, "default is 1: expected true or false"),
        ({"minimum": 5}, "minimum is for integers only"),
        ({"allowed": ["a", 1]}, "1 is not a string"),
        ({"allowed": ["a", "b"], "default": "c"}, "default is 'c': expected one of a, b"),
        ({"variable": "PIN_LEVEL"}, "names that begin with PIN_ are set by the platform"),
        ({"variable": "A-B"}, "variable"),
    ],
)
def test_rejects_invalid_parameter(more: dict[str, Any], message: str) -> None:
    assert message in refusal(part_with_parameter(**more))


def test_rejects_variable_set_twice() -> None:
    part = part_with_parameter()
    part["parameters"]["volume"] = {"description": "What.", "variable": "LEVEL"}
    assert "LEVEL is already set by the parameter 'level'" in refusal(part)
    container = {"name": "a", "image": "a:1", "env": [{"name": "LEVEL", "value": "1"}]}
    assert "LEVEL is already set by a container" in refusal({**part_with_parameter(), "sidecars": [container]})


@pytest.mark.parametrize(
    ("definition", "value", "expected"),
    [
        ({}, "a", ""),
        ({}, True, "a string"),
        ({"type": "integer"}, True, "an integer"),
        ({"type": "integer"}, 1.5, "an integer"),
        ({"type": "integer", "maximum": 3}, 4, "3 or less"),
        ({"type": "boolean"}, False, ""),
        ({"type": "integer", "allowed": [1, 2]}, True, "one of 1, 2"),
        ({"type": "boolean", "allowed": [True]}, False, "one of true"),
    ],
)
def test_parameter_mismatch(definition: dict[str, Any], value: Any, expected: str) -> None:
    assert Parameter(description="What.", variable="A", **definition).mismatch(value) == expected


def test_every_workload_kind_can_be_served() -> None:
    assert set(WORKLOADS) <= {*DEFAULT_SERVED_KINDS, "PinterestDaemon"}


def test_spec_is_immutable() -> None:
    assert [rule.cel for rule in PinterestSidecar.VALIDATION_RULES] == ["self.spec == oldSelf.spec"]
