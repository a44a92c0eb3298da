"""`pin config`: publishes configuration bundles and rolls them; and the settings of the command line."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import click

from pincompute.base.settings import resolve_settings, settings_file
from pincompute.cli.target import Target, platform_options

_OUTPUT = click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")


@click.group()
def config() -> None:
    """Publish and roll configuration bundles; show settings.

    A bundle is a folder of files with numbered versions, which workloads name in `config`.
    """


@config.command()
@click.argument("name")
@click.argument("folder", type=click.Path(path_type=Path))
@platform_options
def publish(target: Target, name: str, folder: Path) -> None:
    """Publish the files of FOLDER as the next version of bundle NAME, which becomes the current one."""
    from pincompute.cli import config_bundles
    from pincompute.cli.bundle_files import LocalBundle

    asyncio.run(config_bundles.publish_folder(target, name, LocalBundle.read(folder)))


@config.command("list")
@_OUTPUT
@platform_options
def list_bundles(target: Target, output: str | None) -> None:
    """List the bundles of a project."""
    from pincompute.cli import config_bundles

    asyncio.run(config_bundles.print_bundles(target, output))


@config.command()
@click.argument("name")
@_OUTPUT
@platform_options
def show(target: Target, name: str, output: str | None) -> None:
    """Show the versions of bundle NAME, and the files of the current one."""
    from pincompute.cli import config_bundles

    asyncio.run(config_bundles.print_bundle(target, name, output))


@config.command()
@click.argument("name")
@click.argument("before", type=click.IntRange(1))
@click.argument("after", type=click.IntRange(1))
@platform_options
def diff(target: Target, name: str, before: int, after: int) -> None:
    """Show what changed in bundle NAME from version BEFORE to version AFTER."""
    from pincompute.cli import config_bundles

    asyncio.run(config_bundles.print_diff(target, name, before, after))


@config.command()
@click.argument("name")
@click.argument("version", type=click.IntRange(1))
@platform_options
def roll(target: Target, name: str, version: int) -> None:
    """Make VERSION of bundle NAME the current one, also an earlier one.

    Live workloads have it within seconds, others with their next deploy.
    """
    from pincompute.cli import config_bundles

    asyncio.run(config_bundles.roll_bundle(target, name, version))


@config.command()
@click.argument("name")
@click.argument("projects", nargs=-1)
@platform_options
def share(target: Target, name: str, projects: tuple[str, ...]) -> None:
    """Let exactly these other PROJECTS read bundle NAME; without any, none."""
    from pincompute.cli import config_bundles

    asyncio.run(config_bundles.share_bundle(target, name, list(projects)))


@config.command()
@click.argument("name")
@platform_options
def delete(target: Target, name: str) -> None:
    """Delete bundle NAME with all of its versions, if no workload has it."""
    from pincompute.cli import config_bundles

    asyncio.run(config_bundles.delete_bundle(target, name))


@config.command()
@click.option("--origin", is_flag=True, help="Show the origin of each value.")
def view(origin: bool) -> None:
    """Show every setting of `pin`, and where it comes from."""
    for name, value in resolve_settings({}, os.environ, settings_file(os.environ)).items():
        click.echo(f"{name} = {value.text}" + (f"    ({value.origin})" if origin else ""))
