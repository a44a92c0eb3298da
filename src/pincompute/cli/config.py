"""`pin config`: the settings, and where each comes from."""

from __future__ import annotations

import os

import click

from pincompute.base.settings import settings_file, settle


@click.group()
def config() -> None:
    """Show the settings and where each comes from."""


@config.command()
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
def view(origin: bool) -> None:
    """Every setting."""
    for name, value in settle({}, os.environ, settings_file(os.environ)).items():
        click.echo(f"{name} = {value.text}" + (f"    ({value.origin})" if origin else ""))
