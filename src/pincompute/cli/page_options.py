"""Options of commands that show one page of a long list of numbered entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def page_options(max_entries: int, max_number: int, default: int) -> Callable[[Command], Command]:
    """The options --limit and --before."""

    def with_options(command: Command) -> Command:
        before = click.option(
            "--before",
            type=click.IntRange(1, max_number),
            default=max_number,
            help="Only older entries than this number.",
        )
        limit = click.option(
            "--limit",
            type=click.IntRange(1, max_entries),
            default=default,
            help="Maximum number of entries.",
            show_default=True,
        )
        return limit(before(command))

    return with_options
