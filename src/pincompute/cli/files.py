"""What people hand to a command: files and folders of documents, taken whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
