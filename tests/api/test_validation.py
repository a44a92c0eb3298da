"""Documents are parsed into resources, or all their errors are reported at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from pincompute.api.documents import read_documents
from pincompute.api.service import ServiceSpec
from pincompute.api.validation import parse_resource, parse_resources
from pincompute.base.problem import Refused

GOOD: dict[str, Any] = {
    "apiVersion": "pinterest.com/v1",
    "kind": "PinterestService",
    "metadata": {"name": "hello"},
    "spec": {"image": "hello:dev", "port": 8080},
}


def parsed_service(document: Any, project: str = "me") -> Any:
    (only,) = read_documents(yaml.safe_dump(document), "hello.yaml")
    return parse_resource(only, project)


def refusal(document: Any) -> str:
    with pytest.raises(Refused) as refused:
        parsed_service(document)
    return refused.value.text()


def test_parses_short_form() -> None:
    workload = parsed_service(GOOD)
    assert workload.metadata.name == "hello"
    assert workload.metadata.namespace == "me"
    assert workload.spec == ServiceSpec(image="hello:dev", port=8080, replicas=1)


def test_prefers_project_of_document() -> None:
    assert parsed_service({**GOOD, "metadata": {"name": "a", "project": "ads"}}).metadata.namespace == "ads"
    assert parsed_service({**GOOD, "metadata": {"name": "a", "namespace": "ads"}}).metadata.namespace == "ads"


def test_rejects_name_used_by_two_kinds_of_a_set() -> None:
    one, other = (yaml.safe_dump({**GOOD, "kind": kind}) for kind in ("PinterestService", "PinterestStatefulSet"))
    with pytest.raises(Refused) as refused:
        parse_resources(read_documents(f"{one}---\n{other}", "set.yaml"), "me")
    assert refused.value.text() == (
        "set.yaml:12 metadata.name: duplicate name me/hello, first used in set.yaml:4 metadata.name  [NameTaken]\n"
        "  next: choose another name"
    )


MANY_ERRORS = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata:
  name: Hello_World
  project: Me!
  lables: {}
spec:
  imag: hello:dev
  port: 70000
  replicas: -1
  comand: []
  environment:
    A: 1
"""


def test_reports_every_error_with_line_and_suggestion() -> None:
    with pytest.raises(Refused) as refused:
        parse_resource(read_documents(MANY_ERRORS, "hello.yaml")[0], "me")
    assert [(problem.where.line, problem.where.field, problem.next) for problem in refused.value.problems] == [
        (4, "metadata.name", ""),
        (5, "metadata.project", ""),
        (6, "metadata.lables", "did you mean labels?"),
        (7, "spec.image", "write image: NAME:TAG"),
        (8, "spec.imag", "did you mean image?"),
        (9, "spec.port", ""),
        (10, "spec.replicas", ""),
        (11, "spec.comand", "did you mean command?"),
        (13, "spec.environment.A", "add quotes"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"apiVersion": "v1"}, "next: write apiVersion: pinterest.com/v1"),
        ({"kind": "PinterestServise"}, "did you mean PinterestService?"),
        ({"kind": None}, "kind is missing"),
        ({"spec": None}, "spec is missing"),
        ({"spec": []}, "spec must be a mapping"),
        ({"metadata": {}}, "the name is missing"),
        ({"metadata": {"name": "a" * 64}}, "a name has at most 50"),
        ({"metadata": {"name": "a/b"}}, "invalid name 'a/b'"),
        ({"metadata": {"name": "a", "project": "x", "namespace": "y"}}, "must be equal"),
        ({"statsu": {}}, "unknown field 'statsu'"),
        ({"spec": {"image": "x", "port": 8080, "replicas": 10**9}}, "replicas is 1000000000"),
        ({"spec": {"image": "x"}}, "spec.port: port is missing"),
        ({"spec": {"image": "x", "worker": False}}, "next: write port: 8080, or worker: true"),
        ({"spec": {"image": "x", "port": 0}}, "port is 0"),
        ({"spec": {"image": "x", "port": 1, "worker": True}}, "spec.port: a worker has no port"),
        ({"spec": {"image": "x", "worker": True, "ports": [{"name": "a", "port": 1}]}}, "a worker has no ports"),
        ({"spec": {"image": "x", "worker": True, "loadBalancer": {"internal": True}}}, "a worker has no address"),
        ({"spec": {"image": "x", "port": "eighty"}}, "port is 'eighty': expected a number, got a string"),
    ],
)
def test_rejects_invalid_document(change: dict[str, Any], message: str) -> None:
    assert message in refusal({**GOOD, **change})


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "spec", "x"]), json), json, json)
def test_never_raises_anything_but_refused(outer: dict[str, Any], metadata: Any, spec: Any) -> None:
    for document in (outer, {**GOOD, "metadata": metadata}, {**GOOD, "spec": spec}):
        with suppress(Refused):
            parsed_service(document)


@pytest.mark.parametrize(("word", "field"), [("env", "environment"), ("args", "arguments"), ("instances", "replicas")])
def test_suggests_field_for_the_word_of_another_platform(word: str, field: str) -> None:
    spec = f"spec: {{image: a, port: 1, {word}: 2}}"
    text = f"apiVersion: pinterest.com/v1\nkind: PinterestService\nmetadata: {{name: web}}\n{spec}\n"
    with pytest.raises(Refused) as refused:
        parse_resource(read_documents(text)[0], "me")
    assert [each.next for each in refused.value.problems] == [f"did you mean {field}?"]
