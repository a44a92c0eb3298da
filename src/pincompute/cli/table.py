"""Rows in columns: words to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest


def table(rows: Sequence[Sequence[str]], *, left: int, least: Sequence[int] = ()) -> str:
    """The first `left` columns are words; `least` is how wide the first few are, whatever is in them."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    widths = [max(pair) for pair in zip_longest(widths, least, fillvalue=0)]
    return "\n".join("  ".join(_cells(row, widths, left)).rstrip() for row in rows)


def _cells(row: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    return [
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
