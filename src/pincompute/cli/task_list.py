"""Sets the items of a job set to the lines of a list, for `--tasks-from`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pincompute.api.documents import Document, read_document, shorten
from pincompute.api.job_set import MAX_TASK_DATA_BYTES, MAX_TASKS, PinterestJobSet
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, USAGE
from pincompute.cli.text_files import STDIN, read_text_file
from pincompute.cli.yaml_writer import format_document

_MAX_ITEM_CHARS = 65_536
_BYTE_ORDER_MARK = "\ufeff"


class TaskList(NamedTuple):
    """Items of a job set, and the line of each in the list."""

    file: Path
    items: list[str]
    lines: list[int]


class ListedJobSet(NamedTuple):
    """Document of a job set with the items of a list, which locates problems in the files of the two."""

    document: Document
    """Its lines are those of the file."""
    tasks: TaskList

    @property
    def text(self) -> str:
        """The document with its items, as it is submitted. Comments of the file are left out."""
        return format_document(self.document.content)

    def locate(self, refused: Refused) -> Refused:
        """Replace lines of the submitted text by those of the file, or of the list for a problem of an item."""
        return Refused(*map(self._locate, refused.problems))

    def _locate(self, problem: Problem) -> Problem:
        where = problem.where
        if not where.file:
            return problem
        section, _, field = where.field.partition(".")
        field, _, index = field.partition(".")
        if (section, field) == ("spec", "items"):
            line = self.tasks.lines[int(index)] if index.isdecimal() and int(index) < len(self.tasks.lines) else 0
            return problem._replace(where=where._replace(file=str(self.tasks.file), line=line))
        place = self.document.where(*self._path(where.field))
        return problem._replace(where=place._replace(field=where.field, object=where.object))

    def _path(self, field: str) -> tuple[str | int, ...]:
        """The longest path in the file that the text of a location begins with; names may have dots themselves."""
        found: tuple[str | int, ...] = ()
        for path in self.document.lines:
            text = self.document.where(*path).field
            if len(path) > len(found) and f"{field}.".startswith(f"{text}."):
                found = path
        return found


def read_task_list(file: Path) -> TaskList:
    """Read one item from each line that is not empty. Refused if a job set could not have so many, or so large ones."""
    tasks = TaskList(file, [], [])
    size = 0
    # Not splitlines(), which also splits at characters that an item may have.
    for number, line in enumerate(read_text_file(file).removeprefix(_BYTE_ORDER_MARK).split("\n"), start=1):
        item = line.removesuffix("\r")
        if not item.strip():
            continue
        tasks.items.append(item)
        tasks.lines.append(number)
        size += len(item.encode())
        _check_limits(tasks, size)
    if not tasks.items:
        raise Refused(Problem(USAGE, "the list has no tasks", Where(str(file)), next="write one task a line"))
    return tasks


def _check_limits(tasks: TaskList, size_bytes: int) -> None:
    where = Where(str(tasks.file), tasks.lines[-1])
    if len(tasks.items) > MAX_TASKS:
        what = f"the list has more than {MAX_TASKS:,} tasks"
        raise Refused(Problem(DOCUMENT_INVALID, what, where, next="let one task do several, or split the list"))
    if (chars := len(tasks.items[-1])) > _MAX_ITEM_CHARS:
        what = f"the line has {chars:,} characters, the maximum is {_MAX_ITEM_CHARS:,}"
        raise Refused(Problem(DOCUMENT_INVALID, what, where, next="store the data elsewhere, and list its location"))
    if size_bytes > MAX_TASK_DATA_BYTES:
        what = f"the list has more than {MAX_TASK_DATA_BYTES:,} bytes"
        next_ = "store the list outside the cluster, and let each task read its line"
        raise Refused(Problem(DOCUMENT_INVALID, what, where, next=next_))


def read_listed_job_set(files: Sequence[str], list_name: str) -> ListedJobSet:
    """Read the only file, which is that of a job set, and the list of its tasks."""
    if len(files) > 1:
        what = f"--tasks-from is for one file, and {len(files)} are given"
        raise Refused(Problem(USAGE, what, next=f"pin deploy {files[0]} --tasks-from {list_name}"))
    file, list_file = Path(files[0]), Path(list_name)
    if file == list_file == STDIN:
        what = "the file and the list of tasks cannot both be standard input"
        raise Refused(Problem(USAGE, what, next="pin deploy FILE --tasks-from -"))
    document = read_document(read_text_file(file), str(file))
    kind, found = document.content.get("kind"), document.content.get("spec")
    if kind != PinterestJobSet.__name__:
        what = f"--tasks-from is for a {PinterestJobSet.__name__}, and this is a {shorten(str(kind), 100)}"
        raise Refused(Problem(USAGE, what, document.where("kind"), next=f"pin deploy {file}"))
    # A missing image is reported with all other errors of the document.
    spec: dict[str, Any] = found if isinstance(found, dict) else {}
    tasks = read_task_list(list_file)
    refuse_all(_conflicts(document, spec, tasks))
    others = {name: value for name, value in spec.items() if name not in {"tasks", "items"}}
    content = {**document.content, "spec": {**others, "items": tasks.items}}
    return ListedJobSet(document._replace(content=content), tasks)


def _conflicts(document: Document, spec: dict[str, Any], tasks: TaskList) -> list[Problem]:
    """Tasks in the file that are not those of the list. The same number or the same items may stay in the file."""
    count = len(tasks.items)
    found = []
    if "items" in spec and spec["items"] != tasks.items:
        what = f"the file has items, and they are not the {count:,} of {tasks.file}"
        found.append(Problem(USAGE, what, document.where("spec", "items"), next="remove items from the file"))
    if "tasks" in spec and spec["tasks"] != count:
        what = f"tasks is {shorten(str(spec['tasks']), 100)}, but {tasks.file} has {count:,}"
        found.append(Problem(USAGE, what, document.where("spec", "tasks"), next="remove tasks from the file"))
    return found
