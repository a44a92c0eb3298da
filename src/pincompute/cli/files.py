"""Reads the files and folders that a command is given, all or none."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pincompute.api.documents import FILE_LIMITS, Document, FileLimits, read_documents
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import USAGE
from pincompute.cli.text_files import read_text_file

MAX_FILES = 1_000
"""More than any set has: a folder such as / must not be read whole."""


def read_files(files: Sequence[Path], limits: FileLimits = FILE_LIMITS) -> list[Document]:
    """Read every document, and refuse with the problems of all files together."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for file in _expand_folders(files):
        try:
            documents += read_documents(read_text_file(file), str(file), limits)
        except Refused as refused:
            problems += refused.problems
    refuse_all(problems)
    return documents


def read_file_set(files: Sequence[Path]) -> list[Document]:
    """Return the documents where there may be several; none for a single document.

    A single file is the desk's to refuse, so that the refusal is on record.
    """
    if len(files) > 1 or files[0].is_dir():
        return read_files(files)
    try:
        documents = read_documents(read_text_file(files[0]), str(files[0]))
    except Refused:
        return []
    return list(documents) if len(documents) > 1 else []


class JoinedDocuments(NamedTuple):
    """Documents of several files as one text, and the origin of each of its lines."""

    text: str
    first_lines: Sequence[int]
    """The first line of each document in the text."""
    documents: Sequence[Document]

    @classmethod
    def join(cls, documents: Sequence[Document]) -> JoinedDocuments:
        text = ""
        first_lines: list[int] = []
        for document in documents:
            first_lines.append(text.count("\n") + 1)
            text += document.text if document.text.endswith("\n") else f"{document.text}\n"
            text += "---\n"
        return cls(text, first_lines, documents)

    def locate(self, problem: Problem) -> Problem:
        """Replace a line of the text by its file and line there."""
        where = problem.where
        if not where.line:
            return problem
        index = bisect_right(self.first_lines, where.line) - 1
        document = self.documents[index]
        line = where.line - self.first_lines[index] + document.lines[()]
        return problem._replace(where=where._replace(file=document.file, line=line))


def _expand_folders(files: Sequence[Path]) -> list[Path]:
    """Replace each folder by the YAML files in it."""
    expanded: list[Path] = []
    for file in files:
        expanded += sorted(islice(file.rglob("*.yaml"), MAX_FILES + 1)) if file.is_dir() else [file]
    if len(expanded) > MAX_FILES:
        raise Refused(Problem(USAGE, f"more than {MAX_FILES:,} YAML files", next="name a smaller folder"))
    if not expanded:
        raise Refused(Problem(USAGE, f"no YAML files in {', '.join(str(each) for each in files)}"))
    return expanded
