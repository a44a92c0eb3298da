"""Imports many objects at once: reads their files, writes a file each, and tells in a table which come over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from pincompute.api.documents import EXPORT_LIMITS
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.progress import Progress
from pincompute.base.reasons import CANNOT_IMPORT, USAGE
from pincompute.cli.files import read_files
from pincompute.cli.table import format_table
from pincompute.cli.yaml_writer import format_compact
from pincompute.planning.migration.changes import unaccepted_problems
from pincompute.planning.migration.native_documents import NativeObjects, read_natives
from pincompute.planning.migration.survey import SurveyRow, summary_counts, survey_objects

_OUTCOMES = {"clean": "comes over cleanly", "changed": "with changes", "impossible": "cannot be imported"}


class ImportOutput(NamedTuple):
    folder: Path | None
    accepted: frozenset[str]


def read_native_files(files: Sequence[str], namespace: str) -> NativeObjects:
    natives = read_natives(read_files([Path(each) for each in files], EXPORT_LIMITS), namespace)
    refuse_all(natives.problems)
    return natives


def survey_with_progress(natives: NativeObjects, *, restricted: bool) -> tuple[SurveyRow, ...]:
    """Imports all objects; a line tells how many are done, if that takes a while."""
    progress = Progress()
    rows = survey_objects(
        natives.objects,
        lambda done, total: progress.update(f"{done:,} of {total:,} objects imported"),
        restricted=restricted,
    )
    progress.erase()
    return rows


def output_imports(rows: Sequence[SurveyRow], natives: NativeObjects, output: ImportOutput) -> None:
    """Prints or writes what comes over, and refuses at the end if anything does not, or was not accepted."""
    problems = [problem for row in rows for problem in _problems(row, output)]
    spans_namespaces = len({row.namespace for row in rows}) > 1
    texts = {}
    for row in rows:
        if row.imported is not None and (output.folder is None or not any(_unaccepted(row, output))):
            name = row.imported.workload.metadata.name
            folder = Path(row.namespace) if spans_namespaces else Path()
            texts[folder / f"{name}.yaml"] = format_compact(row.imported.document)
    if output.folder is None:
        click.echo("---\n".join(texts.values()), nl=False)
    else:
        for path, text in texts.items():
            write_import(output.folder / path, text)
    for line in _summary_lines(rows, natives):
        click.echo(line, err=True)
    refuse_all(problems)


def write_import(file: Path, text: str) -> None:
    """Writes a new file; one with other content is never overwritten."""
    if file.exists() and file.read_text() != text:
        what = f"{file} exists with other content"
        raise Refused(Problem(USAGE, what, next="remove it, or give another path"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    click.echo(f"{file} written ({text.count(chr(10))} lines)", err=True)


def _problems(row: SurveyRow, output: ImportOutput) -> Iterator[Problem]:
    yield from row.problems if row.imported is None else _unaccepted(row, output)


def _unaccepted(row: SurveyRow, output: ImportOutput) -> Iterator[Problem]:
    yield from unaccepted_problems(row.changes, output.accepted, f"{row.namespace}/{row.label}")


def _summary_lines(rows: Sequence[SurveyRow], natives: NativeObjects) -> Iterator[str]:
    if not rows:
        raise Refused(Problem(CANNOT_IMPORT, "nothing to import", next="name files with Deployments or other kinds"))
    cells = [(each.label, _OUTCOMES[each.outcome], each.why) for each in rows]
    yield format_table([("OBJECT", "IMPORT", "WHY"), *cells], text_columns=3)
    yield summary_counts(rows)
    if natives.ignored:
        yield "left as they are: " + ", ".join(f"{natives.ignored[kind]} {kind}" for kind in sorted(natives.ignored))
