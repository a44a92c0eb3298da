"""Index sets in Kubernetes' notation."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pincompute.objects.number_sets import format_numbers, largest_number, parse_numbers, sorted_numbers


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
def test_formats_three_consecutive_numbers_as_range(numbers: list[int], text: str) -> None:
    assert format_numbers(numbers) == text
    assert parse_numbers(text) == set(numbers)


@given(st.frozensets(st.integers(0, 300)))
def test_formatted_set_parses_to_same_numbers(numbers: frozenset[int]) -> None:
    assert parse_numbers(format_numbers(numbers)) == numbers


def test_overlapping_ranges_count_once() -> None:
    assert parse_numbers("3-9999,0-5,0-9999,7") == set(range(10_000))
    assert sorted_numbers("4,0-2,1-3") == (0, 1, 2, 3, 4)
    assert largest_number("4,0-2,9,9,1-3") == 9
    for text in ("0-10000", "0-5000,6000-11000"):
        with pytest.raises(ValueError, match="more than 10,000 numbers"):
            parse_numbers(text)


@pytest.mark.parametrize("text", ["5-3", "a", "1,,x"])
def test_rejects_invalid_set(text: str) -> None:
    with pytest.raises(ValueError, match=r"reversed|invalid literal"):
        parse_numbers(text)
