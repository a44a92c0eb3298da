"""A file becomes documents: YAML as kubectl reads it, with the line of every field remembered."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.objects.content import Object

MAX_BYTES = 1 << 20
"""More than any workload needs, and less than would hurt whoever reads it."""

Path = tuple[str | int, ...]


class Document(NamedTuple):
    """One YAML document of a file."""

    content: Object
    file: str
    lines: Mapping[Path, int]
    text: str = ""
    """As it stands there, from the line on which it begins."""

    def where(self, *path: str | int) -> Where:
        """The place of a field, or of the nearest thing around it that stands in the file."""
        known = next((path[:size] for size in range(len(path), -1, -1) if path[:size] in self.lines), ())
        return Where(self.file, self.lines.get(known, 0), ".".join(str(step) for step in path))


def read(text: str, file: str = "") -> tuple[Document, ...]:
    """Every document of the text; all that is wrong with its YAML is told at once."""
    if len(text.encode()) > MAX_BYTES:
        raise Refused(Problem(DOCUMENT_INVALID, f"the file has more than {MAX_BYTES:,} bytes", Where(file)))
    problems: list[Problem] = []
    documents = []
    try:
        for root in yaml.compose_all(text, Loader=yaml.CSafeLoader):
            if root is not None and not _empty(root):
                lines: dict[Path, int] = {}
                content = _Reader(file, lines, problems).value(root, ())
                documents.append(Document(content, file, lines, _piece(text, root)))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        problems.append(Problem(DOCUMENT_INVALID, f"this is not YAML: {error.problem}", Where(file, line)))
    except yaml.YAMLError as error:
        problems.append(Problem(DOCUMENT_INVALID, f"this is not YAML: {error}", Where(file)))
    problems += [
        Problem(DOCUMENT_INVALID, "a document must be a set of fields, not a list or a value", document.where())
        for document in documents
        if not isinstance(document.content, dict)
    ]
    if problems:
        raise Refused(*problems)
    if not documents:
        raise Refused(Problem(DOCUMENT_INVALID, "the file holds no document", Where(file)))
    return tuple(documents)


def read_one(text: str, file: str = "") -> Document:
    """The only document of the text, where one is asked for."""
    documents = read(text, file)
    if len(documents) > 1:
        what = f"{len(documents)} documents were sent at once"
        raise Refused(Problem(DOCUMENT_INVALID, what, Where(file), next="send one at a time, or all of them as a set"))
    return documents[0]


def _piece(text: str, root: yaml.Node) -> str:
    """With what stands before it on its first line: it may be indented."""
    return text[root.start_mark.index - root.start_mark.column : root.end_mark.index]


def _empty(root: yaml.Node) -> bool:
    return isinstance(root, yaml.ScalarNode) and not root.value and not root.style


class _Reader:
    """Turns nodes into values and remembers lines; an alias is read once and shared, so that none can explode."""

    def __init__(self, file: str, lines: dict[Path, int], problems: list[Problem]) -> None:
        self._file = file
        self._lines = lines
        self._problems = problems
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> Any:
        line = node.start_mark.line + 1
        self._lines[path] = line
        if isinstance(node, yaml.ScalarNode):
            return node.value if node.style else scalar(node.value)
        if id(node) in self._seen:
            self._problem("anchors and aliases are not for workload files: write it out", line, path)
            return None
        self._seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*path, index)) for index, each in enumerate(node.value)]
        return dict(self._fields(node, path))

    def _fields(self, node: yaml.Node, path: Path) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key, value in node.value:
            name, line = key.value, key.start_mark.line + 1
            if not isinstance(name, str):
                self._problem("a field's name must be a text", line, path)
                continue
            if name in first:
                self._problem(f"'{name}' stands here again, first in line {first[name]}", line, (*path, name))
                continue
            first[name] = line
            yield name, self.value(value, (*path, name))
            self._lines[(*path, name)] = line

    def _problem(self, what: str, line: int, path: Path) -> None:
        where = Where(self._file, line, ".".join(str(step) for step in path))
        self._problems.append(Problem(DOCUMENT_INVALID, what, where))


_TRUE = {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
_FALSE = {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"}
_NULL = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_BASED = re.compile(r"[-+]?0(?P<base>[xob]?)(?P<digits>[0-9a-fA-F]+)$")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_BASES = {"x": 16, "o": 8, "": 8, "b": 2}


def scalar(text: str) -> Any:
    """A plain scalar as kubectl's parser takes it: `1e3` is 1000, `017` is 15, `on` is true, a date is a text."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    return _number(text)


def _number(text: str) -> Any:
    if _INTEGER.match(text):
        return int(text)
    based = _BASED.match(text)
    if based:
        try:
            size = int(based["digits"], _BASES[based["base"]])
        except ValueError:
            return text
        return -size if text.startswith("-") else size
    if _REAL.match(text):
        real = float(text)
        return int(real) if real.is_integer() else real
    return text
