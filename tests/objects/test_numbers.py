"""Sets of numbers as Kubernetes spells them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pincompute.objects.numbers import parse, spell


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([7], "7"),
        ([3, 4], "3,4"),
        ([1, 3, 4, 5, 7], "1,3-5,7"),
        ([203, 17, 88, 204, 205], "17,88,203-205"),
        ([0, 1, 2], "0-2"),
    ],
)
def test_three_in_a_row_become_a_range(numbers: list[int], text: str) -> None:
    assert spell(numbers) == text
    assert parse(text) == set(numbers)


@given(st.frozensets(st.integers(0, 300)))
def test_what_is_spelled_is_read_again(numbers: frozenset[int]) -> None:
    assert parse(spell(numbers)) == numbers


@pytest.mark.parametrize("text", ["5-3", "a", "1,,x"])
def test_what_is_no_set_of_numbers(text: str) -> None:
    with pytest.raises(ValueError, match=r"backwards|invalid literal"):
        parse(text)
