"""Amounts as Kubernetes spells them, and as people read them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pincompute.objects.quantity import amount, binary, cores


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("2", 2),
        ("500m", Fraction(1, 2)),
        ("1e3", 1000),
        ("7n", Fraction(7, 10**9)),
        *((f"3{unit}i", 3 * 1024**power) for power, unit in enumerate("KMGTPE", 1)),
        *((f"3{unit}", 3 * 1000**power) for power, unit in enumerate("kMGTPE", 1)),
    ],
)
def test_every_unit_is_read(said: str, value: Fraction) -> None:
    assert amount(said) == value


def test_what_is_none_is_refused() -> None:
    for said in ("", "much", "3Qi", "3KM"):
        with pytest.raises(ValueError, match=r"amount|Invalid"):
            amount(said)


def test_people_read_few_digits() -> None:
    assert [cores(amount(each)) for each in ("1500m", "4k", "0")] == ["1.5", "4000", "0"]
    assert [binary(amount(each)) for each in ("24581684Ki", "900Ti", "7")] == ["23.4Gi", "900Ti", "7"]
