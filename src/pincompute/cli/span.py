"""A span of time as a person types it."""

from __future__ import annotations

import re

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds(value: str) -> int:
    """600 of 10m."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", value)
    if found is None:
        raise click.BadParameter(f"'{value}' is no time span: write 30s, 10m, 2h or 1d")
    return int(found[1]) * _UNITS[found[2]]
