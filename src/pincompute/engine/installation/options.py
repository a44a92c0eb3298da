"""The options of `pin install` that configure the desk."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from pincompute.base.urls import require_https
from pincompute.engine.installation.desk import DESK_OPTIONS, CertificatePair, DeskConfig

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
F = TypeVar("F", bound=Callable[..., Any])


class DeskRequest(NamedTuple):
    desk: DeskConfig
    pair: CertificatePair | None


def desk_options(command: F) -> F:
    """Add the options to a command, which gets them as one value, `asked`."""

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
        pair = CertificatePair.read(desk_certificate, desk_key) if desk_certificate and desk_key else None
        return command(*given, asked=DeskRequest(DeskConfig(desk, desk_word, desk_database), pair), **others)

    for option in (
        click.option("--desk-database", default="", metavar="SECRET", help="Secret with a PostgreSQL URL as `url`."),
        click.option("--desk-key", type=FILE, help="Private key of the desk's certificate."),
        click.option("--desk-certificate", type=FILE, help="TLS certificate of the desk, with intermediates."),
        click.option(
            "--desk-word",
            multiple=True,
            callback=_desk_words,
            metavar="NAME=VALUE",
            help="An option of `pin desk`, such as issuer=https://login.example.com.",
        ),
        click.option(
            "--desk", default="", callback=_address, metavar="ADDRESS", help="Install a desk with this URL: https://…"
        ),
    ):
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]


def _address(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        return require_https(value).rstrip("/") if value else ""
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _desk_words(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    parsed = [each.partition("=") for each in values]
    for name, equals, value in parsed:
        if not equals or name not in DESK_OPTIONS or "$(" in value:
            raise click.BadParameter(
                f"'{name}{equals}{value}' must be one of {', '.join(f'{each}=…' for each in DESK_OPTIONS)}"
            )
    return tuple((name, value) for name, _, value in parsed)
