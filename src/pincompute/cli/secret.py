"""`pin secret`: creates, rotates and grants the secrets of a project. A value is never an argument of a command."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from pincompute.api.secret import (
    MAX_LOG_ENTRIES,
    MAX_LOG_NUMBER,
    MAX_VALUE_BYTES,
    SecretDetail,
    SecretLogPage,
    SecretLogQuery,
    SecretSummary,
    VersionState,
)
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import SECRET_INVALID
from pincompute.cli.durations import format_age
from pincompute.cli.output import as_format
from pincompute.cli.page_options import page_options
from pincompute.cli.secret_client import SecretClient
from pincompute.cli.table import format_table
from pincompute.cli.target import Target, connect, platform_options
from pincompute.objects.secret_reference import MAX_SECRET_VERSION

T = TypeVar("T")
_VERSION = click.IntRange(1, MAX_SECRET_VERSION)
_FROM_FILE = click.option(
    "--from-file",
    type=click.Path(path_type=Path),
    help="File with the value; without it, the value is read from standard input.",
)
_OUTPUT = click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Output format for programs.")


@click.group()
def secret() -> None:
    """Create, rotate and grant the secrets of a project.

    A workload names the secrets that it needs in its file, such as `secrets: [db-password]`. Each is a file in the
    folder $SECRETS_FOLDER of its containers, and follows its rotation.
    """


@secret.command()
@click.argument("secret_name", metavar="NAME")
@_FROM_FILE
@platform_options
def create(target: Target, secret_name: str, from_file: Path | None) -> None:
    """Create secret NAME, with its first version.

    The value is read from standard input, or from a file, byte by byte: `printf` writes no line break, `echo` does.
    """
    value = _read_value(from_file)
    asyncio.run(_run(target, lambda secrets: secrets.create(secret_name, value)))
    click.echo(f"secret {secret_name} created: version 1 is the primary one")


@secret.command()
@click.argument("secret_name", metavar="NAME")
@_FROM_FILE
@click.option("--no-promote", is_flag=True, help="Leave the primary version as it is; promote this one later.")
@platform_options
def rotate(target: Target, secret_name: str, from_file: Path | None, *, no_promote: bool) -> None:
    """Add a version of secret NAME, and make it the primary one.

    Running replicas get it within seconds. The version before stays active, for what still uses it, until it is
    deactivated.
    """
    value, promote = _read_value(from_file), not no_promote
    changed = asyncio.run(_run(target, lambda secrets: secrets.add_version(secret_name, value, promote=promote)))
    number = changed.versions[0].number
    if promote:
        click.echo(f"secret {secret_name} rotated: version {number} is the primary one")
    else:
        click.echo(f"version {number} added        next: pin secret promote {secret_name} {number}")


@secret.command()
@click.argument("secret_name", metavar="NAME")
@click.argument("version", type=_VERSION)
@platform_options
def promote(target: Target, secret_name: str, version: int) -> None:
    """Make VERSION of secret NAME the primary one."""
    _set_state(target, secret_name, version, VersionState.PRIMARY)
    click.echo(f"version {version} of {secret_name} is the primary one")


@secret.command()
@click.argument("secret_name", metavar="NAME")
@click.argument("version", type=_VERSION)
@platform_options
def deactivate(target: Target, secret_name: str, version: int) -> None:
    """Make VERSION of secret NAME inactive: nothing gets it any more."""
    _set_state(target, secret_name, version, VersionState.INACTIVE)
    click.echo(f"version {version} of {secret_name} is inactive")


@secret.command("list")
@_OUTPUT
@platform_options
def list_command(target: Target, output: str | None) -> None:
    """List the secrets of the project."""
    found = asyncio.run(_run(target, SecretClient.list_all))
    click.echo(as_format(output, found) if output else printable(_format_list(found)), nl=not output)


@secret.command()
@click.argument("secret_name", metavar="NAME")
@click.option("--reveal", is_flag=True, help="Print the value, and nothing else; recorded in the log of the secret.")
@click.option("--version", type=_VERSION, help="With --reveal: this version. Default: the primary one.")
@_OUTPUT
@platform_options
def show(target: Target, secret_name: str, version: int | None, output: str | None, *, reveal: bool) -> None:
    """Show the versions, grants and last readers of secret NAME."""
    if reveal:
        found = asyncio.run(_run(target, lambda secrets: secrets.reveal(secret_name, version or 0)))
        # As it is, without a line break: so that it can be piped.
        sys.stdout.buffer.write(found.value)
        sys.stdout.buffer.flush()
        return
    detail = asyncio.run(_run(target, lambda secrets: secrets.describe(secret_name)))
    click.echo(as_format(output, detail) if output else printable(_format_detail(detail)), nl=not output)


@secret.command()
@click.argument("secret_name", metavar="NAME")
@click.argument("grantee")
@platform_options
def grant(target: Target, secret_name: str, grantee: str) -> None:
    """Grant secret NAME to GRANTEE.

    A GRANTEE is project:NAME, workload:PROJECT/NAME, person:NAME or group:NAME. People and groups may reveal it.
    """
    asyncio.run(_run(target, lambda secrets: secrets.grant(secret_name, grantee)))
    click.echo(f"secret {secret_name} is granted to {grantee}")


@secret.command()
@click.argument("secret_name", metavar="NAME")
@click.argument("grantee")
@platform_options
def revoke(target: Target, secret_name: str, grantee: str) -> None:
    """Revoke the grant of secret NAME to GRANTEE.

    New replicas get it no more. What running ones have they keep: rotate it, and deactivate the version before.
    """
    asyncio.run(_run(target, lambda secrets: secrets.revoke(secret_name, grantee)))
    click.echo(f"secret {secret_name} is granted to {grantee} no more        next: pin secret rotate {secret_name}")


@secret.command()
@click.argument("secret_name", metavar="NAME")
@page_options(MAX_LOG_ENTRIES, MAX_LOG_NUMBER, 20)
@_OUTPUT
@platform_options
def log(target: Target, secret_name: str, limit: int, before: int, output: str | None) -> None:
    """Show every read and change of secret NAME, newest first.

    A read that a workload repeats within an hour is one entry.
    """
    query = SecretLogQuery(limit=limit, before=before)
    page = asyncio.run(_run(target, lambda secrets: secrets.log_page(secret_name, query)))
    click.echo(as_format(output, page) if output else printable(_format_log(page, secret_name)), nl=not output)


@secret.command()
@click.argument("secret_name", metavar="NAME")
@click.option("--force", is_flag=True, help="Also if workloads of the project name it.")
@platform_options
def delete(target: Target, secret_name: str, *, force: bool) -> None:
    """Delete secret NAME with all of its versions; its log stays."""
    asyncio.run(_run(target, lambda secrets: secrets.delete(secret_name, force=force)))
    click.echo(f"secret {secret_name} deleted")


def _set_state(target: Target, name: str, version: int, state: VersionState) -> None:
    asyncio.run(_run(target, lambda secrets: secrets.set_state(name, version, state)))


async def _run(target: Target, work: Callable[[SecretClient], Awaitable[T]]) -> T:
    async with connect(target) as platform:
        return await work(platform.secrets(target.project))


def _read_value(file: Path | None) -> bytes:
    """The value. On a terminal it is not shown while it is typed."""
    if file is None and sys.stdin.isatty():
        value = click.prompt("value", hide_input=True, err=True).encode()
    else:
        value = _read_bytes(file)
    if not 1 <= len(value) <= MAX_VALUE_BYTES:
        more = "more than " if len(value) > MAX_VALUE_BYTES else ""
        what = f"the value has {more}{min(len(value), MAX_VALUE_BYTES):,} bytes"
        raise Refused(Problem(SECRET_INVALID, what, note=f"1 to {MAX_VALUE_BYTES:,} bytes are allowed"))
    return value


def _read_bytes(file: Path | None) -> bytes:
    if file is None:
        return sys.stdin.buffer.read(MAX_VALUE_BYTES + 1)
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_VALUE_BYTES + 1)
    except OSError as error:
        raise Refused(Problem(SECRET_INVALID, f"cannot read it: {error.strerror}", Where(file=str(file)))) from error


def _format_list(secrets: list[SecretSummary]) -> str:
    if not secrets:
        return "no secrets        next: pin secret create NAME"
    now = SystemClock().now()
    rows = [
        [each.name, str(each.primary), str(each.versions), format_age(each.rotated_at, now), each.rotated_by]
        for each in secrets
    ]
    return format_table([["NAME", "PRIMARY", "VERSIONS", "ROTATED", "BY"], *rows], text_columns=5)


def _format_detail(detail: SecretDetail) -> str:
    now = SystemClock().now()
    versions = [
        [str(each.number), str(each.state), f"{each.bytes} bytes", format_age(each.created_at, now), each.created_by]
        for each in detail.versions
    ]
    grants = [[each.grantee, format_age(each.granted_at, now), each.granted_by] for each in detail.grants]
    readers = [[each.reader, str(each.version), format_age(each.last_read_at, now)] for each in detail.readers]
    tables = [
        format_table([["VERSION", "STATE", "SIZE", "AGE", "BY"], *versions], text_columns=5),
        format_table([["GRANTED TO", "AGE", "BY"], *grants], text_columns=3) if grants else "granted to nothing",
        format_table([["READER", "VERSION", "LAST READ"], *readers], text_columns=3) if readers else "never read",
    ]
    return f"{detail.project}/{detail.name}\n" + "\n\n".join(tables)


def _format_log(page: SecretLogPage, name: str) -> str:
    if not page.entries:
        return "no entries"
    rows = [
        [each.at.partition("+")[0], each.caller, each.act, str(each.version or ""), " ".join(each.note.split())]
        for each in page.entries
    ]
    table = format_table([["AT", "CALLER", "ACT", "VERSION", "NOTE"], *rows], text_columns=5)
    return f"{table}\nolder entries: pin secret log {name} --before {page.next}" if page.next else table
