"""What is written for somebody is read as it was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.documents import read_one
from pincompute.cli.short_form import short_form
from pincompute.cli.written import written

TRICKY = (
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
_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])) | st.sampled_from(TRICKY)


@pytest.mark.parametrize("text", TRICKY)
def test_a_text_stays_that_text(text: str) -> None:
    assert read_one(written({"a": text, "b": [text]})).content == {"a": text, "b": [text]}


@given(_texts, _texts)
def test_any_text_stays_that_text(name: str, text: str) -> None:
    assert read_one(written({name: text})).content == {name: text}


@pytest.mark.parametrize("name", ["hello", "n", "y", "no", "on", "true", "null", "1e3", "0x1f"])
def test_a_workload_may_have_any_name_that_is_one(name: str) -> None:
    read = read_one(short_form(name, "hello:dev", 8080, 2, simulated=False)).content
    assert (read["metadata"]["name"], read["spec"]) == (name, {"image": "hello:dev", "port": 8080, "replicas": 2})
