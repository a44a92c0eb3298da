"""What the commands of `pin config` do with bundles, and how they print them."""

from __future__ import annotations

import click

from pincompute.api.config_bundle import ConfigBundle, ConfigContent, PublishConfig, PublishedConfig
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CONFIG_INVALID
from pincompute.cli.bundle_files import LocalBundle, changed_files, diff_lines
from pincompute.cli.config_client import ConfigClient
from pincompute.cli.output import as_format
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect

SHORT_DIGEST = 12
MAX_LISTED_FILES = 20
MAX_UPLOADS = 3
"""Rounds of uploads: contents that are uploaded are kept for an hour, so that one is enough."""


async def publish_folder(target: Target, name: str, local: LocalBundle) -> None:
    async with connect(target) as platform:
        published = await _upload_and_publish(platform.config, target.project, name, local)
    digest = published.digest[:SHORT_DIGEST]
    if published.unchanged:
        click.echo(f"{name}@{published.version}  unchanged, {digest}")
        return
    size = sum(each.size for each in local.files)
    count = f"{len(local.files)} file{'' if len(local.files) == 1 else 's'}"
    click.echo(f"{name}@{published.version}  published, {digest}, {count}, {size:,} bytes")


async def _upload_and_publish(client: ConfigClient, project: str, name: str, local: LocalBundle) -> PublishedConfig:
    """Send the list of files, then the contents that the store does not have, and the list again."""
    asked = PublishConfig(files=local.files)
    for _ in range(MAX_UPLOADS):
        published = await client.send_version(project, name, asked)
        if not published.missing:
            return published
        for digest in published.missing:
            await client.upload_content(project, digest, local.paths[digest].read_bytes())
    what = f"files of bundle {name} changed while they were published"
    raise Refused(Problem(CONFIG_INVALID, what, next="publish the folder again"))


async def print_bundles(target: Target, output: str | None) -> None:
    async with connect(target) as platform:
        bundles = await platform.config.fetch_bundles(target.project)
    if output:
        click.echo(as_format(output, bundles), nl=False)
    else:
        click.echo(format_bundles(bundles, target.project))


def format_bundles(bundles: list[ConfigBundle], project: str) -> str:
    if not bundles:
        return f"no configuration bundles in project {project}        next: pin config publish NAME FOLDER"
    rows = [["BUNDLE", "DIGEST", "SHARED WITH", "FILES", "BYTES", "VERSIONS"]]
    for each in bundles:
        current = each.find_version(each.current)
        assert current
        shared = ", ".join(each.shared_with) or "-"
        count = str(len(each.versions))
        label = f"{each.name}@{each.current}"
        rows.append([label, current.digest[:SHORT_DIGEST], shared, str(current.files), f"{current.size:,}", count])
    return format_table(rows, text_columns=3)


async def print_bundle(target: Target, name: str, output: str | None) -> None:
    async with connect(target) as platform:
        bundle = await platform.config.fetch_bundle(target.project, name)
        content = await platform.config.fetch_version(target.project, name, bundle.current)
    if output:
        click.echo(as_format(output, bundle), nl=False)
    else:
        # Paths of files are of a user.
        click.echo(printable(format_bundle(bundle, content)))


def format_bundle(bundle: ConfigBundle, content: ConfigContent) -> str:
    rows = [["VERSION", "DIGEST", "PUBLISHED", "BY", "FILES", "BYTES"]]
    for each in reversed(bundle.versions):
        label = f"{each.version} current" if each.version == bundle.current else str(each.version)
        digest = each.digest[:SHORT_DIGEST]
        rows.append([label, digest, each.published_at, each.published_by, str(each.files), f"{each.size:,}"])
    lines = [format_table(rows, text_columns=4), "", f"files of version {content.version}:"]
    lines += [f"  {each.path}  {each.size:,} bytes" for each in content.files[:MAX_LISTED_FILES]]
    if (more := len(content.files) - MAX_LISTED_FILES) > 0:
        lines.append(f"  {more} more")
    if bundle.shared_with:
        lines.append(f"shared with: {', '.join(bundle.shared_with)}")
    return "\n".join(lines)


async def print_diff(target: Target, name: str, before: int, after: int) -> None:
    async with connect(target) as platform:
        client, project = platform.config, target.project
        versions = [await client.fetch_version(project, name, each) for each in (before, after)]
        changed = changed_files(*versions)
        for each in changed:
            click.echo(printable(f"{each.sign} {each.path}"))
            if each.sign == "~":
                old, new = [await client.download_content(project, digest) for digest in (each.before, each.after)]
                click.echo(printable("\n".join(diff_lines(old, new))))
    if not changed:
        click.echo(f"{name}@{before} and {name}@{after} have the same files")


async def roll_bundle(target: Target, name: str, version: int) -> None:
    async with connect(target) as platform:
        bundle = await platform.config.set_pointer(target.project, name, version)
    click.echo(
        f"{name}@{bundle.current}  current        next: deploy the workloads that have it; live ones have it already"
    )


async def share_bundle(target: Target, name: str, projects: list[str]) -> None:
    async with connect(target) as platform:
        bundle = await platform.config.set_shares(target.project, name, projects)
    click.echo(f"{name}  readable by {', '.join(bundle.shared_with) or 'its own project only'}")


async def delete_bundle(target: Target, name: str) -> None:
    async with connect(target) as platform:
        await platform.config.delete_bundle(target.project, name)
    click.echo(f"{name} deleted")
