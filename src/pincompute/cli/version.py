"""`pin version`: the version of the command line."""

from __future__ import annotations

import click

from pincompute import __version__


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"pin {__version__}")
