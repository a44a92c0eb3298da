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
MAX_DEPTH = 64
"""A thousand would end the process of whoever reads it."""
LONGEST_NUMBER = 1_000
"""Digits; what has more is a text: Python itself refuses to read a number of several thousand."""
MAX_VALUES = 20_000
"""Names among them: what is not large can still take long."""

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
    documents: list[Document] = []
    try:
        # As they are found: of a file that breaks off, what came before is looked at, too.
        for document in _Reader(text, file, problems).documents():
            documents.append(document)  # noqa: PERF402
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


def _empty(root: yaml.Event) -> bool:
    return isinstance(root, yaml.ScalarEvent) and not root.value and not root.style


class _Reader:
    """Turns what the parser tells into values as it comes, and remembers lines: what is too much ends it at once."""

    def __init__(self, text: str, file: str, problems: list[Problem]) -> None:
        self._text = text
        self._file = file
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._problems = problems
        self._values = 0
        self._end = 0
        """Of what was read last, in the text."""
        self._lines: dict[Path, int] = {}

    def documents(self) -> Iterator[Document]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._lines = {}
                root = next(self._events)
                content = self._value(root, ())
                if not _empty(root):
                    yield Document(content, self._file, self._lines, self._piece(root))

    def _piece(self, root: yaml.Event) -> str:
        """With what stands before it on its first line: it may be indented."""
        begin = root.start_mark
        assert begin is not None
        return self._text[begin.index - begin.column : self._end]

    def _value(self, event: yaml.Event, path: Path) -> Any:
        line = self._counted(event, path)
        self._lines[path] = line
        if isinstance(event, yaml.AliasEvent):
            # Also of a value alone: one that is long, often, is more than anybody can hold.
            self._problem("anchors and aliases are not for workload files: write it out", line, path)
            return None
        if isinstance(event, yaml.ScalarEvent):
            return event.value if event.style else scalar(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return [self._value(each, (*path, index)) for index, each in enumerate(self._until(yaml.SequenceEndEvent))]
        return dict(self._fields(path))

    def _fields(self, path: Path) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        for key in self._until(yaml.MappingEndEvent):
            line = self._counted(key, path)
            if not isinstance(key, yaml.ScalarEvent):
                self._problem("a field's name must be a text", line, path)
                self._value(key, (*path, "?"))
                self._value(next(self._events), (*path, "?"))
                continue
            name = key.value
            if name in first:
                self._problem(f"'{name}' stands here again, first in line {first[name]}", line, (*path, name))
                self._value(next(self._events), (*path, name))
                continue
            first[name] = line
            yield name, self._value(next(self._events), (*path, name))
            self._lines[(*path, name)] = line

    def _until(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        for event in self._events:
            if isinstance(event, end):
                self._ends(event)
                return
            yield event

    def _counted(self, event: yaml.Event, path: Path) -> int:
        """Its line, where it is not one too many, or too deep."""
        self._ends(event)
        assert event.start_mark is not None
        line = event.start_mark.line + 1
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._too_much(f"the file has more than {MAX_VALUES:,} names and values", line)
        if len(path) > MAX_DEPTH:
            raise self._too_much(f"this is more than {MAX_DEPTH} fields deep", line)
        return line

    def _ends(self, event: yaml.Event) -> None:
        assert event.end_mark is not None
        self._end = event.end_mark.index

    def _too_much(self, what: str, line: int) -> Refused:
        return Refused(Problem(DOCUMENT_INVALID, what, Where(self._file, line)))

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
    if len(text) > LONGEST_NUMBER:
        return text
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
