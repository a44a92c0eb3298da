"""`pin crds`: our kinds as Kubernetes knows them."""

from __future__ import annotations

import click
import yaml

from pincompute.api.manifests import crds as manifests


@click.command()
def crds() -> None:
    """Print our kinds as Kubernetes knows them."""
    click.echo(yaml.safe_dump_all(manifests(), sort_keys=False, explicit_start=True), nl=False)
