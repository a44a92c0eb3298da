"""The options of `pin install` that speak of its desk."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from pincompute.engine.installation.desk import WORDS, Desk, Pair
from pincompute.kube.addresses import safe

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
F = TypeVar("F", bound=Callable[..., Any])


class Asked(NamedTuple):
    desk: Desk
    pair: Pair | None


def of_a_desk(command: F) -> F:
    """The command gets them as one value, `asked`."""

    @wraps(command)
    def gathered(
        *given: Any,
        desk: str,
        desk_word: tuple[tuple[str, str], ...],
        desk_database: str,
        desk_certificate: Path | None,
        desk_key: Path | None,
        **others: Any,
    ) -> Any:
        if bool(desk_certificate) != bool(desk_key):
            raise click.UsageError("--desk-certificate and --desk-key belong together")
        pair = Pair.read(desk_certificate, desk_key) if desk_certificate and desk_key else None
        return command(*given, asked=Asked(Desk(desk, desk_word, desk_database), pair), **others)

    for option in (
        click.option("--desk-database", default="", metavar="SECRET", help="Whose `url` is that of its PostgreSQL."),
        click.option("--desk-key", type=FILE, help="Its key."),
        click.option("--desk-certificate", type=FILE, help="The desk's own, with those between it and a root."),
        click.option(
            "--desk-word",
            multiple=True,
            callback=_words,
            metavar="NAME=VALUE",
            help="An option of `pin desk`, such as issuer=https://login.example.com.",
        ),
        click.option("--desk", default="", callback=_address, metavar="ADDRESS", help="Bring a desk: https://…"),
    ):
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]


def _address(_: click.Context, __: click.Parameter, said: str) -> str:
    try:
        return safe(said).rstrip("/") if said else ""
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _words(_: click.Context, __: click.Parameter, said: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    found = [each.partition("=") for each in said]
    for name, equals, value in found:
        if not equals or name not in WORDS or "$(" in value:
            raise click.BadParameter(f"'{name}{equals}{value}' is none of {', '.join(f'{each}=…' for each in WORDS)}")
    return tuple((name, value) for name, _, value in found)
