"""PinterestSidecar: what a part may be, with words for everything else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.kinds import WORKLOADS
from pincompute.api.parameter import Parameter
from pincompute.api.sidecar import USUALLY, PinterestSidecar
from pincompute.base.problem import Refused


def admitted(spec: dict[str, Any], name: str = "logs-2") -> Any:
    document = {"apiVersion": "pinterest.com/v1", "kind": "PinterestSidecar", "metadata": {"name": name}, "spec": spec}
    return admit(read(yaml.safe_dump(document), "part.yaml")[0], "me")


def refusal(spec: dict[str, Any], name: str = "logs-2") -> str:
    with pytest.raises(Refused) as refused:
        admitted(spec, name)
    return refused.value.text()


def parameter(**more: Any) -> dict[str, Any]:
    return {"image": "logs:1", "parameters": {"level": {"description": "What.", "variable": "LEVEL", **more}}}


def test_the_short_form_is_an_image() -> None:
    part = admitted({"image": "logs:2.0"}, "node-logs-12")
    assert part.part == "node-logs"
    assert part.metadata.namespace == ""


def test_fields_that_nobody_knows_yet_survive() -> None:
    part = admitted({"sidecars": [{"name": "logs", "image": "logs:2", "fieldOfTomorrow": {"a": 1}}]})
    assert part.spec.sidecars[0]["fieldOfTomorrow"] == {"a": 1}


@pytest.mark.parametrize("name", ["logs", "logs-0", "logs-02", "Logs-2", "2", "-2", "logs-2a"])
def test_a_name_ends_with_its_version(name: str) -> None:
    assert "and ends with its version, such as logs-2" in refusal({"image": "logs:2"}, name)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "the part adds nothing"),
        ({"labels": {"a": "b"}, "port": 4000}, "port speaks of an image, and there is none"),
        ({"image": "A:1"}, "'A:1' cannot be an image"),
        ({"image": "a:1", "prot": 1}, "did you mean port?"),
        ({"image": "a:1", "serves": {"kinds": ["PinterestServise"]}}, "did you mean PinterestService?"),
        ({"image": "a:1", "sidecars": [{"name": "logs", "image": "a:1"}]}, "two containers are called 'logs'"),
        ({"sidecars": [{"name": "a"}]}, "image is missing"),
        ({"sidecars": [{"name": "a", "image": "a:1", "restartPolicy": "Never"}]}, "a sidecar is always restarted"),
        ({"initContainers": [{"name": "a", "image": "a:1", "restartPolicy": "Always"}]}, "write it under sidecars"),
        ({"sidecars": [{"name": "a", "image": "a:1", "volumeMount": []}]}, "did you mean volumeMounts?"),
        ({"image": "a:1", "volumes": [{"name": "a"}, {"name": "a"}]}, "two volumes are called 'a'"),
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
            "'/a' stands twice in volumeMounts",
        ),
        (
            {"volumes": [{"name": "a"}], "mounts": [{"name": "a", "mountPath": "/a"} for _ in "ab"]},
            "'/a' stands twice in mounts",
        ),
        (
            {"sidecars": [{"name": "c", "image": "a:1", "env": [{"name": "A"}, {"name": "A"}]}]},
            "'A' stands twice in env",
        ),
        (
            {"sidecars": [{"name": "c", "image": "a:1", "env": [{"name": "PIN_A"}]}]},
            "no variable can be called 'PIN_A'",
        ),
        ({"environment": {"PIN_A": "1"}}, "names that begin with PIN_ are set by the platform"),
        ({"labels": {"pinterest.com/tier": "a"}}, "labels of pinterest.com are set by the platform"),
    ],
)
def test_bad_parts(spec: dict[str, Any], words: str) -> None:
    assert words in refusal(spec)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"type": "text"}, "expected string, integer, boolean"),
        ({"type": "integer", "default": "5"}, "default is '5': expected a whole number"),
        ({"type": "integer", "minimum": 5, "default": 4}, "default is 4: expected 5 or more"),
        ({"type": "integer", "minimum": 5, "maximum": 4}, "minimum is 5, and maximum is only 4"),
        ({"type": "boolean", "default": 1}, "default is 1: expected true or false"),
        ({"minimum": 5}, "only a number has a minimum"),
        ({"allowed": ["a", 1]}, "1 is allowed, but is not a text"),
        ({"allowed": ["a", "b"], "default": "c"}, "default is 'c': expected one of a, b"),
        ({"variable": "PIN_LEVEL"}, "names that begin with PIN_ are set by the platform"),
        ({"variable": "A-B"}, "variable"),
    ],
)
def test_bad_parameters(more: dict[str, Any], words: str) -> None:
    assert words in refusal(parameter(**more))


def test_one_variable_is_set_once() -> None:
    twice = parameter()
    twice["parameters"]["volume"] = {"description": "What.", "variable": "LEVEL"}
    assert "LEVEL is set by the parameter 'level' already" in refusal(twice)
    container = {"name": "a", "image": "a:1", "env": [{"name": "LEVEL", "value": "1"}]}
    assert "LEVEL is set by a container already" in refusal({**parameter(), "sidecars": [container]})


@pytest.mark.parametrize(
    ("said", "value", "expected"),
    [
        ({}, "a", ""),
        ({}, True, "a text"),
        ({"type": "integer"}, True, "a whole number"),
        ({"type": "integer"}, 1.5, "a whole number"),
        ({"type": "integer", "maximum": 3}, 4, "3 or less"),
        ({"type": "boolean"}, False, ""),
        ({"type": "integer", "allowed": [1, 2]}, True, "one of 1, 2"),
        ({"type": "boolean", "allowed": [True]}, False, "one of true"),
    ],
)
def test_what_a_parameter_expects(said: dict[str, Any], value: Any, expected: str) -> None:
    assert Parameter(description="What.", variable="A", **said).misfit(value) == expected


def test_every_kind_of_workload_can_be_served() -> None:
    assert set(WORKLOADS) <= {*USUALLY, "PinterestDaemon"}


def test_a_part_never_changes() -> None:
    assert [rule.cel for rule in PinterestSidecar.RULES] == ["self.spec == oldSelf.spec"]
