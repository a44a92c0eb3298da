"""Formats rows as a table: columns of text aligned left, columns of numbers right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import click


def format_table(rows: Sequence[Sequence[str]], *, text_columns: int, min_widths: Sequence[int] = ()) -> str:
    """Align the first `text_columns` left. `min_widths` keep tables aligned that are printed in several parts."""
    rows = [[" ".join(cell.split("\n")) for cell in row] for row in rows]
    widths = [max(_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    widths = [max(pair) for pair in zip_longest(widths, min_widths, fillvalue=0)]
    return "\n".join("  ".join(_pad_cells(row, widths, text_columns)).rstrip() for row in rows)


def _pad_cells(row: Sequence[str], widths: Sequence[int], text_columns: int) -> list[str]:
    return [
        cell + padding if column < text_columns else padding + cell
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        for padding in [" " * (width - _width(cell))]
    ]


def _width(cell: str) -> int:
    """Width on a terminal, on which the codes of a colour take none."""
    return len(click.unstyle(cell))
