"""`pin edit`: opens a workload's document in an editor, or sets and removes single fields, and deploys the result."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import click

from pincompute.api.documents import parse_scalar, read_document
from pincompute.api.workload import Workload
from pincompute.base.clock import SystemClock
from pincompute.base.printable import printable
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import CONFLICT, USAGE
from pincompute.cli.change import follow_options
from pincompute.cli.completions import complete_workload_names
from pincompute.cli.follow import FollowTimer, follow_to_goal
from pincompute.cli.platform_client import PlatformClient
from pincompute.cli.target import Target, connect, platform_options
from pincompute.cli.workload_ref import WorkloadRef, fetch_workload, parse_workload_ref
from pincompute.cli.yaml_writer import format_document
from pincompute.objects.content import Object
from pincompute.objects.field_edits import FieldPathError, with_field, without_field
from pincompute.planning.workload_document import workload_document

_SETTING = re.compile(r"(?P<path>(?:[^=\[]|\[[^\]]*\])+)=(?P<value>.*)", re.DOTALL)
_YAML_STARTS = frozenset("\"'[{")


@click.command()
@click.argument("workload", shell_complete=complete_workload_names)
@click.option(
    "--set", "settings", metavar="FIELD=VALUE", multiple=True, help="Set a field of spec without an editor; repeatable."
)
@click.option(
    "--remove", "removals", metavar="FIELD", multiple=True, help="Remove a field of spec without an editor; repeatable."
)
@follow_options
@platform_options
def edit(
    target: Target, workload: str, settings: tuple[str, ...], removals: tuple[str, ...], timeout_s: float | None
) -> None:
    """Edit a workload's document in your editor, and deploy it.

    The editor is that of VISUAL or EDITOR. If the result is refused, it is kept in a file. With --set and --remove no
    editor is opened. FIELD is a path below spec, such as memory, or template.spec.containers[web].env[MODE].value.
    """
    ref = parse_workload_ref(workload)
    before = asyncio.run(_fetch(target, ref))
    document = workload_document(before)
    text = format_document(document)
    without_editor = bool(settings or removals)
    edited = format_document(_with_edits(document, settings, removals)) if without_editor else _open_editor(text)
    if edited is None or edited == text:
        click.echo(f"{ref.name}  unchanged", err=True)
        return
    try:
        asyncio.run(_deploy(target, before, edited, timeout_s))
    except Refused as refused:
        if without_editor:
            raise
        file = Path(f"{ref.name}.edited.yaml")
        file.write_text(edited)
        click.echo(f"your edit is kept in {file}: correct it, and then pin deploy {file}", err=True)
        raise refused from None


def _with_edits(document: Object, settings: tuple[str, ...], removals: tuple[str, ...]) -> Object:
    spec = document["spec"]
    try:
        for path in removals:
            spec = without_field(spec, path)
        for setting in settings:
            path, equals, value = _split_setting(setting)
            if not equals:
                raise click.BadParameter("a setting must be FIELD=VALUE", param_hint="--set")
            spec = with_field(spec, path, _parse_value(value))
    except FieldPathError as error:
        next_ = f"pin show {document['metadata']['name']} -o yaml"
        raise Refused(Problem(USAGE, str(error), next=next_)) from error
    return {**document, "spec": spec}


def _split_setting(setting: str) -> tuple[str, str, str]:
    """The path, the sign and the value. A key in brackets may contain the sign."""
    found = _SETTING.match(setting)
    return (found["path"], "=", found["value"]) if found else (setting, "", "")


def _parse_value(text: str) -> Any:
    """A scalar as in a file; text that begins with a quote, a bracket or a brace is YAML.

    A decimal number stays text, as quantities are: `cpu=1.5`.
    """
    if text[:1] not in _YAML_STARTS:
        value = parse_scalar(text)
        return text if isinstance(value, float) else value
    return read_document(f"value: {text}").content["value"]


def _open_editor(text: str) -> str | None:
    try:
        return click.edit(text, extension=".yaml")
    except click.ClickException as error:
        raise Refused(Problem(USAGE, error.message, next="set EDITOR to your editor, such as EDITOR=vi")) from error


async def _fetch(target: Target, ref: WorkloadRef) -> Workload:
    async with connect(target) as platform:
        return await fetch_workload(platform, target.project, ref)


async def _deploy(target: Target, before: Workload, text: str, timeout_s: float | None) -> None:
    timer = FollowTimer.start(SystemClock(), timeout_s or 0.0)
    async with connect(target.within(timeout_s)) as platform:
        await _require_unchanged(platform, before)
        submitted = await platform.submit(text, "", target.project)
        if timeout_s is None:
            click.echo(f"{submitted.label}  submitted        next: pin get {submitted.name}")
            return
        reached = await follow_to_goal(platform, submitted, timer)
    click.echo(printable(f"{reached.label}  {reached.message}"))


async def _require_unchanged(platform: PlatformClient, before: Workload) -> None:
    """Refuse an edit of a document that was changed since it was opened."""
    metadata = before.metadata
    now = await platform.get_workload(metadata.namespace, metadata.name)
    if (now.metadata.uid, now.metadata.generation) != (metadata.uid, metadata.generation):
        what = f"{metadata.name} was changed while it was edited"
        raise Refused(Problem(CONFLICT, what, Where(object=metadata.key), next=f"pin edit {metadata.name}"))
