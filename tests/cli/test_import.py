"""What `pin import` writes is read as it was meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.documents import read_one
from pincompute.cli.import_ import written

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
