"""`pin plan`: what files would become and what they would change, without doing it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from pincompute.api.admission import admit_all
from pincompute.api.documents import Document
from pincompute.api.noun import Noun
from pincompute.api.preview import BuildPreview, FieldChange, NativeChange, Preview, Verb
from pincompute.base.clock import SystemClock
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import DESK_UNREACHABLE, PLATFORM_UNKNOWN, USAGE
from pincompute.cli.files import documents
from pincompute.cli.output import as_json
from pincompute.cli.provenance import links
from pincompute.cli.target import Target, connect, to_platform
from pincompute.planning.people.preview import Surroundings, first, foresee
from pincompute.planning.snapshot import Snapshot

_SIGNS = {Verb.MAKE: "+", Verb.CHANGE: "~", Verb.REPLACE: "!", Verb.REMOVE: "-"}


class _Plain(yaml.SafeDumper):
    """Everything written out where it stands: an alias is for machines."""

    def ignore_aliases(self, data: object) -> bool:
        return True


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--version", help="Of what was published: in place of files one name is said.")
@click.option("--output", "-o", type=click.Choice(["yaml", "json"]), help="The natives whole, or all that is told.")
@click.option("--offline", is_flag=True, help="Ask no cluster: everything would be made.")
@to_platform
def plan(target: Target, files: tuple[Path, ...], version: str | None, output: str | None, *, offline: bool) -> None:
    """Show what files would become and change, or with --version what was published.

    Nothing is done. A folder stands for the files in it; a set is taken whole or not at all. It ends with 1 where
    something would be refused.
    """
    if version is not None:
        _published(target, files, version, output)
        return
    given = documents(files)
    admitted = admit_all(given, target.project)
    previews = _offline(admitted) if offline else _compared(target, given, admitted)
    click.echo(_rendered(previews, output), nl=False)
    if any(each.refused for each in previews):
        raise SystemExit(1)


def _published(target: Target, names: tuple[Path, ...], version: str, output: str | None) -> None:
    """It ends with 1 where it would be refused."""
    if len(names) != 1:
        what = f"--version is of one workload, and {len(names)} are named"
        raise Refused(Problem(USAGE, what, next="pin plan NAME --version VERSION"))
    found = asyncio.run(ask(target, str(names[0]), version))
    click.echo(as_json(found) if output == "json" else build_told(found), nl=False)
    if found.refused:
        raise SystemExit(1)


async def ask(target: Target, name: str, version: str) -> BuildPreview:
    async with connect(target) as platform:
        return await platform.plan_build(target.project, name, version)


def build_told(found: BuildPreview) -> str:
    """As a person reads it before they say yes."""
    return _told(found.preview) + "".join(f"{line}\n" for line in links(found.links)) + _refusals(found.refused)


def _compared(target: Target, given: list[Document], admitted: list[Noun]) -> list[Preview]:
    """With what runs; where no platform does, with nothing."""
    try:
        return asyncio.run(_online(target, given))
    except Refused as refused:
        if target.direct or refused.problems[0].reason not in {PLATFORM_UNKNOWN, DESK_UNREACHABLE}:
            raise
        click.echo(f"no platform '{target.name}' runs here to compare with", err=True)
        return _offline(admitted)


def _offline(admitted: list[Noun]) -> list[Preview]:
    surroundings = Surroundings.of(admitted)
    now = SystemClock().now()
    told: list[Preview] = []
    problems: list[Problem] = []
    for noun in admitted:
        project = surroundings.projects.get(noun.metadata.namespace)
        foreseen = foresee(Snapshot(first(noun), (), (), surroundings.cluster, now, project, surroundings.runtimes), {})
        told += foreseen.told
        problems += foreseen.problems
    refuse_all(problems)
    return told


async def _online(target: Target, given: list[Document]) -> list[Preview]:
    # JSON is YAML that nobody reads in two ways.
    text = "\n---\n".join(msgspec.json.encode(each.content).decode() for each in given)
    async with connect(target) as platform:
        return await platform.plan(text, target.project)


def _rendered(previews: list[Preview], output: str | None) -> str:
    if output == "yaml":
        natives = [native for each in previews for native in each.natives]
        return yaml.dump_all(natives, Dumper=_Plain, sort_keys=False, explicit_start=True)
    if output == "json":
        return as_json(previews)
    return "\n".join(_told(each) + _refusals(each.refused) for each in previews)


def _refusals(said: list[dict[str, Any]]) -> str:
    return "".join(f"it would be refused: {Problem.of(each).text()}\n" for each in said)


def _told(preview: Preview) -> str:
    if not preview.natives:
        return f"{preview.label} is there for other work, and becomes nothing by itself\n"
    if not preview.changes:
        return f"{preview.label} is as wanted: nothing would change\n"
    lines = [f"{preview.label}{'  its copies are replaced' if preview.restarts else ''}"]
    for change in preview.changes:
        lines += _native(change)
    if preview.unchanged:
        lines.append(f"  = {preview.unchanged} as {'it is' if preview.unchanged == 1 else 'they are'}")
    lines += [f"  fits: {each}" for each in preview.fits]
    lines += [f"  quota: {each}" for each in preview.room]
    if preview.address:
        lines.append(f"  answers at {preview.address}")
    return "".join(f"{line}\n" for line in lines)


def _native(change: NativeChange) -> list[str]:
    return [f"  {_SIGNS[change.verb]} {change.native}", *(f"      {_field(each)}" for each in change.fields)]


def _field(field: FieldChange) -> str:
    if not field.before:
        return f"{field.path}: {field.after}"
    return f"{field.path}: {field.before} -> {field.after or 'gone'}"
