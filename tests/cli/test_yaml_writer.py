"""Documents that we write are read as they were meant."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pincompute.api.documents import read_document
from pincompute.cli.short_form import format_short_form
from pincompute.cli.yaml_writer import format_compact, format_document
from pincompute.objects.content import Object

AMBIGUOUS_STRINGS = (
    "on",
    "1e3",
    "017",
    "0x1f",
    "~",
    "",
    " a",
    "a: b",
    "- a",
    "a\nb\n",
    "a \nb",
    "\ta\n",
    "é",
    "2026-01-31",
    "#",
    "'",
)
_strings = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])) | st.sampled_from(AMBIGUOUS_STRINGS)


@pytest.mark.parametrize("text", AMBIGUOUS_STRINGS)
def test_ambiguous_string_stays_a_string(text: str) -> None:
    assert read_document(format_document({"a": text, "b": [text]})).content == {"a": text, "b": [text]}


@given(_strings, _strings)
def test_any_string_stays_a_string(name: str, text: str) -> None:
    assert read_document(format_document({name: text})).content == {name: text}


_values = st.recursive(
    _strings | st.booleans() | st.integers(-99, 99),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_strings | st.just("spec"), inner, max_size=3),
)


@given(st.dictionaries(_strings, _values, min_size=1))
def test_compact_form_has_the_same_content(content: Object) -> None:
    assert read_document(format_compact(content)).content == content


def test_compact_form_writes_short_lists_on_one_line() -> None:
    program = {"command": ["sh", "-c", "exec a, b"], "env": [{"name": "A", "value": "a\nb"}]}
    assert format_compact({"spec": program}) == (
        "spec:\n  command: [sh, -c, 'exec a, b']\n  env:\n  - name: A\n    value: |-\n      a\n      b\n"
    )


@pytest.mark.parametrize("name", ["hello", "n", "y", "no", "on", "true", "null", "1e3", "0x1f"])
def test_short_form_keeps_ambiguous_names(name: str) -> None:
    read = read_document(format_short_form(name, "hello:dev", 8080, 2, worker=False, simulated=False)).content
    assert (read["metadata"]["name"], read["spec"]) == (name, {"image": "hello:dev", "port": 8080, "replicas": 2})


def test_short_form_of_a_worker_has_no_port() -> None:
    text = format_short_form("mailer", "mailer:1", None, 2, worker=True, simulated=False)
    assert read_document(text).content["spec"] == {"image": "mailer:1", "worker": True, "replicas": 2}
