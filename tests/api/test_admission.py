"""Documents become workloads, or all that is wrong with them at once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.admission import admit, admit_all
from pincompute.api.documents import read
from pincompute.api.service import ServiceSpec
from pincompute.base.problem import Refused

GOOD: dict[str, Any] = {
    "apiVersion": "pinterest.com/v1",
    "kind": "PinterestService",
    "metadata": {"name": "hello"},
    "spec": {"image": "hello:dev", "port": 8080},
}


def admitted(document: Any, project: str = "me") -> Any:
    (only,) = read(yaml.safe_dump(document), "hello.yaml")
    return admit(only, project)


def refusal(document: Any) -> str:
    with pytest.raises(Refused) as refused:
        admitted(document)
    return refused.value.text()


def test_the_short_form() -> None:
    workload = admitted(GOOD)
    assert workload.metadata.name == "hello"
    assert workload.metadata.namespace == "me"
    assert workload.spec == ServiceSpec(image="hello:dev", port=8080, replicas=1)


def test_the_project_of_the_document_wins() -> None:
    assert admitted({**GOOD, "metadata": {"name": "a", "project": "ads"}}).metadata.namespace == "ads"
    assert admitted({**GOOD, "metadata": {"name": "a", "namespace": "ads"}}).metadata.namespace == "ads"


def test_in_a_set_a_name_stands_once_over_all_kinds() -> None:
    one, other = (yaml.safe_dump({**GOOD, "kind": kind}) for kind in ("PinterestService", "PinterestStatefulSet"))
    with pytest.raises(Refused) as refused:
        admit_all(read(f"{one}---\n{other}", "set.yaml"), "me")
    assert refused.value.text() == (
        "set.yaml:12 metadata.name: me/hello stands in this set already, in set.yaml:4 metadata.name  [NameTaken]\n"
        "  next: choose another name"
    )


TWELVE_FAULTS = """\
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


def test_every_fault_is_told_with_its_line_and_the_nearest_word() -> None:
    with pytest.raises(Refused) as refused:
        admit(read(TWELVE_FAULTS, "hello.yaml")[0], "me")
    assert [(problem.where.line, problem.where.field, problem.next) for problem in refused.value.problems] == [
        (4, "metadata.name", ""),
        (5, "metadata.project", ""),
        (6, "metadata.lables", "did you mean labels?"),
        (7, "spec.image", "write image: NAME:TAG"),
        (8, "spec.imag", "did you mean image?"),
        (9, "spec.port", ""),
        (10, "spec.replicas", ""),
        (11, "spec.comand", "did you mean command?"),
        (13, "spec.environment.A", "write it in quotes"),
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"apiVersion": "v1"}, "next: write apiVersion: pinterest.com/v1"),
        ({"kind": "PinterestServise"}, "did you mean PinterestService?"),
        ({"kind": None}, "kind is missing"),
        ({"spec": None}, "spec is missing"),
        ({"spec": []}, "spec must be a set of fields"),
        ({"metadata": {}}, "the name is missing"),
        ({"metadata": {"name": "a" * 64}}, "a name has at most 50"),
        ({"metadata": {"name": "a/b"}}, "'a/b' cannot be a name"),
        ({"metadata": {"name": "a", "project": "x", "namespace": "y"}}, "must be the same"),
        ({"statsu": {}}, "there is no field 'statsu'"),
        ({"spec": {"image": "x", "port": 8080, "replicas": 10**9}}, "replicas is 1000000000"),
        ({"spec": {"image": "x", "port": "eighty"}}, "port is 'eighty': expected a number, got a text"),
    ],
)
def test_bad_documents(change: dict[str, Any], told: str) -> None:
    assert told in refusal({**GOOD, **change})


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["apiVersion", "kind", "metadata", "spec", "x"]), json), json, json)
def test_no_document_makes_a_traceback(outer: dict[str, Any], metadata: Any, spec: Any) -> None:
    for document in (outer, {**GOOD, "metadata": metadata}, {**GOOD, "spec": spec}):
        with suppress(Refused):
            admitted(document)
