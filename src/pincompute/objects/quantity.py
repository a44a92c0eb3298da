"""Kubernetes quantities: 500m, 512Mi, 2."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_MAX_QUOTED_CHARS = 40
_BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
_SMALL = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_UNITS = {**_BINARY, **_SMALL, **_DECIMAL}
_NUMBER = re.compile(r"[-+]?([0-9]{1,64}(\.[0-9]{0,64})?|\.[0-9]{1,64})([eE][-+]?[0-9]{1,2})?")
"""A longer exponent would take minutes: Python writes out all digits of 1e999999999."""


@lru_cache(maxsize=4096)
def parse_quantity(text: int | str) -> Fraction:
    """Parse a quantity. ValueError if it is invalid."""
    if isinstance(text, int):
        return Fraction(text)
    digits = text.rstrip("numkKMGTPEi")
    unit = text[len(digits) :]
    if unit not in _UNITS or not _NUMBER.fullmatch(digits):
        raise ValueError(f"invalid quantity '{text[:_MAX_QUOTED_CHARS]}'")
    return Fraction(digits) * _UNITS[unit]


def format_cores(value: Fraction) -> str:
    """Format CPU cores for display: 1.5, 0.1."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")


def format_bytes(value: Fraction) -> str:
    """Format bytes for display, in the largest binary unit: 512Mi."""
    for unit, size in sorted(_BINARY.items(), key=lambda each: -each[1]):
        if abs(value) >= size:
            return f"{float(value / size):.1f}".rstrip("0").rstrip(".") + unit
    return str(int(value))
