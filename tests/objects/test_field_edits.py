"""Edits of single fields of a document by their paths."""

from __future__ import annotations

from typing import Any

import pytest

from pincompute.objects.field_edits import FieldPathError, field_path, parse_path, with_field, without_field

SPEC: dict[str, Any] = {
    "memory": "64Mi",
    "template": {
        "spec": {
            "nodeSelector": {"kubernetes.io/arch": "arm64"},
            "tolerations": [{"key": "team", "value": "blue"}],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "logs", "emptyDir": {}}],
        }
    },
}
POD = SPEC["template"]["spec"]


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("memory", ("memory",)),
        ("spec.memory", ("memory",)),
        ("spec", ("spec",)),
        ("template.spec.nodeSelector[kubernetes.io/arch]", ("template", "spec", "nodeSelector", "kubernetes.io/arch")),
        ("a[b].c", ("a", "b", "c")),
    ],
)
def test_path_has_fields_and_keys_in_brackets(path: str, steps: tuple[str, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize("path", ["", ".", "a.", "a..b", "[a]", "a[", "a[]", "a[b", "a b", "a[b]c", "9", "a" * 513])
def test_malformed_path_is_refused(path: str) -> None:
    with pytest.raises(FieldPathError, match="is no path of a field"):
        parse_path(path)


def test_path_is_written_with_brackets_around_keys_with_dots() -> None:
    assert field_path("template", "nodeSelector", "a.b/c") == "template.nodeSelector[a.b/c]"
    assert field_path("memory") == "memory"


def test_sets_a_field_and_leaves_the_content_as_it_was() -> None:
    assert with_field(SPEC, "memory", "1Gi") == {**SPEC, "memory": "1Gi"}
    assert SPEC["memory"] == "64Mi"


def test_adds_mappings_and_named_items_on_the_way() -> None:
    edited = with_field({}, "template.spec.containers[web].livenessProbe.tcpSocket.port", 8080)
    container = {"name": "web", "livenessProbe": {"tcpSocket": {"port": 8080}}}
    assert edited == {"template": {"spec": {"containers": [container]}}}


def test_finds_an_item_by_its_key() -> None:
    edited = with_field(SPEC, "template.spec.tolerations[team].value", "red")
    assert edited["template"]["spec"]["tolerations"] == [{"key": "team", "value": "red"}]


def test_removes_a_field_with_what_it_leaves_empty() -> None:
    edited = without_field(SPEC, "template.spec.nodeSelector[kubernetes.io/arch]")
    assert edited["template"]["spec"] == {key: value for key, value in POD.items() if key != "nodeSelector"}
    assert without_field({"a": {"b": {"c": 1}}, "d": 2}, "a.b.c") == {"d": 2}


def test_removes_an_item_of_a_list() -> None:
    edited = without_field(SPEC, "template.spec.volumes[data]")
    assert edited["template"]["spec"]["volumes"] == [{"name": "logs", "emptyDir": {}}]
    assert "tolerations" not in without_field(SPEC, "template.spec.tolerations[team]")["template"]["spec"]


@pytest.mark.parametrize("path", ["gpus", "template.spec.volumes[none]", "memory.x", "template.x.y"])
def test_removal_of_what_is_not_there_is_refused(path: str) -> None:
    with pytest.raises(FieldPathError, match="there is no"):
        without_field(SPEC, path)


@pytest.mark.parametrize("path", ["memory.x", "template.spec.volumes[data]", "template.spec.volumes[none]"])
def test_setting_a_field_of_a_text_or_a_whole_item_is_refused(path: str) -> None:
    with pytest.raises(FieldPathError):
        with_field(SPEC, path, 1)
