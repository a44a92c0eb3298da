"""Kubernetes quantities: parsing and formatting."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pincompute.objects.quantity import format_bytes, format_cores, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("500m", Fraction(1, 2)),
        ("1e3", 1000),
        ("7n", Fraction(7, 10**9)),
        *((f"3{unit}i", 3 * 1024**power) for power, unit in enumerate("KMGTPE", 1)),
        *((f"3{unit}", 3 * 1000**power) for power, unit in enumerate("kMGTPE", 1)),
    ],
)
def test_parses_every_unit(text: str, value: Fraction) -> None:
    assert parse_quantity(text) == value


def test_rejects_invalid_quantity() -> None:
    for text in ("", "much", "3Qi", "3KM"):
        with pytest.raises(ValueError, match=r"quantity|Invalid"):
            parse_quantity(text)


def test_formats_with_few_digits() -> None:
    assert [format_cores(parse_quantity(each)) for each in ("1500m", "4k", "0")] == ["1.5", "4000", "0"]
    assert [format_bytes(parse_quantity(each)) for each in ("24581684Ki", "900Ti", "7")] == ["23.4Gi", "900Ti", "7"]
