"""`pin config`: the settings and their origins."""

from __future__ import annotations

import os

import click

from pincompute.base.settings import resolve_settings, settings_file


@click.group()
def config() -> None:
    """Show the settings and their origins."""


@config.command()
@click.option("--origin", is_flag=True, help="Show the origin of each value.")
def view(origin: bool) -> None:
    """Show every setting."""
    for name, value in resolve_settings({}, os.environ, settings_file(os.environ)).items():
        click.echo(f"{name} = {value.text}" + (f"    ({value.origin})" if origin else ""))
