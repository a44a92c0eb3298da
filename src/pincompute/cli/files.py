"""What people hand to a command: files and folders of documents, taken whole or not at all."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pincompute.api.documents import Document, read
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import USAGE


def documents(files: Sequence[Path]) -> list[Document]:
    """What is wrong with any file is told with the rest."""
    found: list[Document] = []
    problems: list[Problem] = []
    for file in _opened(files):
        try:
            found += read(_text(file), str(file))
        except Refused as refused:
            problems += refused.problems
    refuse_all(problems)
    return found


def several(given: Sequence[Path]) -> list[Document]:
    """The documents of folders, and of more than one file; of one file, where it has more than one."""
    if len(given) > 1 or given[0].is_dir():
        return documents(given)
    try:
        found = read(given[0].read_text(), str(given[0]))
    except (OSError, UnicodeDecodeError, Refused):
        # What cannot be read is refused by the desk, on record.
        return []
    return list(found) if len(found) > 1 else []


class Joined(NamedTuple):
    """Documents of several files as one text; and where each line of it stands."""

    text: str
    begin: Sequence[int]
    """The first line of each document."""
    documents: Sequence[Document]

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Joined:
        text = ""
        begin: list[int] = []
        for each in documents:
            begin.append(text.count("\n") + 1)
            text += each.text if each.text.endswith("\n") else f"{each.text}\n"
            text += "---\n"
        return cls(text, begin, documents)

    def placed(self, problem: Problem) -> Problem:
        """Where a person finds it."""
        where = problem.where
        if not where.line:
            return problem
        number = bisect_right(self.begin, where.line) - 1
        document = self.documents[number]
        line = where.line - self.begin[number] + document.lines[()]
        return problem._replace(where=where._replace(file=document.file, line=line))


def _opened(files: Sequence[Path]) -> list[Path]:
    """A folder stands for the YAML files that are in it."""
    found: list[Path] = []
    for file in files:
        found += sorted(file.rglob("*.yaml")) if file.is_dir() else [file]
    if not found:
        raise Refused(Problem(USAGE, f"there is no YAML file in {', '.join(str(each) for each in files)}"))
    return found


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(Problem(USAGE, f"'{file}' cannot be read: {error}")) from error
