"""`pin crds`: the CustomResourceDefinitions of all kinds."""

from __future__ import annotations

import click
import yaml

from pincompute.api.manifests import crds as manifests


@click.command()
def crds() -> None:
    """Print the CustomResourceDefinitions of all kinds."""
    click.echo(yaml.safe_dump_all(manifests(), sort_keys=False, explicit_start=True), nl=False)
