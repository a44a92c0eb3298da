"""Reads YAML documents with kubectl's scalar rules and keeps the line of every field for error messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import yaml

from pincompute.api.custom_resource import FieldPath
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DOCUMENT_INVALID
from pincompute.objects.content import Object

MAX_FILE_BYTES = 1 << 20
"""Far above the size of any workload file, and low enough to parse without harm."""
MAX_DEPTH = 64
"""Deeper nesting is rejected: at about a thousand levels recursion would overflow the stack."""
MAX_NUMBER_DIGITS = 1_000
"""Longer numbers stay strings: Python refuses to parse an integer of several thousand digits."""
MAX_PROBLEMS = 100
"""More are not collected: a small file can have one for each of its values."""
MAX_FIELD_CHARS = 1_000
"""Length of a field's location in a problem. Names can be as long as the file, and every field below repeats them."""
_MAX_NAME_CHARS = 400
"""Length of a name that a message quotes."""
_MERGE_KEY = "<<"
MAX_VALUES = 20_000
"""Field names count as values, and an alias as the values it refers to.

A size limit alone is not enough: a small file can hold very many values.
"""


class FileLimits(NamedTuple):
    """Limits of one file."""

    size_bytes: int = MAX_FILE_BYTES
    """Also the length of all names and values together, after aliases are replaced by what they refer to."""
    values: int = MAX_VALUES


FILE_LIMITS = FileLimits()
EXPORT_LIMITS = FileLimits(256 << 20, 5_000_000)
"""For the objects of a whole namespace, which are read on the machine of the user."""


class Document(NamedTuple):
    """One YAML document of a file."""

    content: Object
    file: str
    lines: Mapping[FieldPath, int]
    text: str = ""
    """Source text, from the line on which the document begins."""

    def where(self, *path: str | int) -> Where:
        """Location of a field, or of its nearest ancestor that is written in the file."""
        known = next((path[:size] for size in range(len(path), -1, -1) if path[:size] in self.lines), ())
        return Where(self.file, self.lines.get(known, 0), _field_text(path))


def shorten(text: str, max_chars: int) -> str:
    """The text, cut if it is longer."""
    return text if len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def _field_text(path: FieldPath) -> str:
    """Location of a field for messages: its steps with dots between them, cut if long."""
    steps: list[str] = []
    size = 0
    for step in path:
        steps.append(shorten(str(step), MAX_FIELD_CHARS))
        size += len(steps[-1])
        if size > MAX_FIELD_CHARS:
            break
    return shorten(".".join(steps), MAX_FIELD_CHARS)


def read_documents(text: str, file: str = "", limits: FileLimits = FILE_LIMITS) -> tuple[Document, ...]:
    """Parse every document of the text and report all YAML errors at once."""
    if len(text.encode()) > limits.size_bytes:
        raise Refused(Problem(DOCUMENT_INVALID, f"the file is larger than {limits.size_bytes:,} bytes", Where(file)))
    problems: list[Problem] = []
    documents: list[Document] = []
    try:
        # Collected one by one, so that documents before a syntax error are checked, too.
        for document in _DocumentReader(text, file, problems, limits).documents():
            documents.append(document)  # noqa: PERF402
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        problems.append(Problem(DOCUMENT_INVALID, f"invalid YAML: {error.problem}", Where(file, line)))
    except yaml.YAMLError as error:
        problems.append(Problem(DOCUMENT_INVALID, f"invalid YAML: {error}", Where(file)))
    problems += [
        Problem(DOCUMENT_INVALID, "a document must be a mapping, not a list or a scalar", document.where())
        for document in documents
        if not isinstance(document.content, dict)
    ]
    if problems:
        raise Refused(*problems[: MAX_PROBLEMS + 1])
    if not documents:
        raise Refused(Problem(DOCUMENT_INVALID, "the file is empty", Where(file)))
    return tuple(documents)


def read_document(text: str, file: str = "") -> Document:
    """Parse a text that must hold exactly one document."""
    documents = read_documents(text, file)
    if len(documents) > 1:
        what = f"expected one document, found {len(documents)}"
        raise Refused(Problem(DOCUMENT_INVALID, what, Where(file), next="send one at a time, or all as a document set"))
    return documents[0]


def _is_empty(root: yaml.Event) -> bool:
    return isinstance(root, yaml.ScalarEvent) and not root.value and not root.style


class _Anchored(NamedTuple):
    """A value with an anchor, and what each alias of it costs."""

    value: Any
    values: int
    chars: int
    depth: int


class _DocumentReader:
    """Builds values from parser events, recording lines and enforcing the limits while parsing.

    An alias becomes a copy of its value, as if the value were written there, and counts like it.
    """

    def __init__(self, text: str, file: str, problems: list[Problem], limits: FileLimits) -> None:
        self._text = text
        self._limits = limits
        self._file = file
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._problems = problems
        self._values = 0
        self._chars = 0
        self._deepest = 0
        """Depth of the deepest value since the last anchor began."""
        self._anchors: dict[str, _Anchored] = {}
        self._end = 0
        """Offset in the text at which the last event ended."""
        self._lines: dict[FieldPath, int] = {}

    def documents(self) -> Iterator[Document]:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                self._lines = {}
                self._anchors = {}
                root = next(self._events)
                content = self._value(root, ())
                if not _is_empty(root):
                    yield Document(content, self._file, self._lines, self._source(root))

    def _source(self, root: yaml.Event) -> str:
        """Source of a document from the start of its first line, which keeps the indentation consistent."""
        start = root.start_mark
        assert start is not None
        return self._text[start.index - start.column : self._end]

    def _value(self, event: yaml.Event, path: FieldPath) -> Any:
        values, chars, outer_deepest = self._values, self._chars, self._deepest
        line = self._checked_line(event, path)
        self._lines[path] = line
        if isinstance(event, yaml.AliasEvent):
            return self._expand_alias(event.anchor or "", line, path)
        assert isinstance(event, yaml.NodeEvent)
        if event.anchor is None:
            return self._node(event, path)
        self._deepest = len(path)
        value = self._node(event, path)
        depth = self._deepest - len(path)
        # Known only from here on, so that no value can contain itself.
        self._anchors[event.anchor] = _Anchored(value, self._values - values, self._chars - chars, depth)
        self._deepest = max(outer_deepest, self._deepest)
        return value

    def _expand_alias(self, anchor: str, line: int, path: FieldPath) -> Any:
        anchored = self._anchors.get(anchor)
        if anchored is None:
            self._add_problem(f"alias *{shorten(anchor, _MAX_NAME_CHARS)} has no anchor before it", line, path)
            return None
        self._count(anchored.values - 1, anchored.chars, len(path) + anchored.depth, line)
        return deepcopy(anchored.value)

    def _node(self, event: yaml.Event, path: FieldPath) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return event.value if event.style else parse_scalar(event.value)
        if isinstance(event, yaml.SequenceStartEvent):
            return [self._value(each, (*path, index)) for index, each in enumerate(self._until(yaml.SequenceEndEvent))]
        return dict(self._fields(path))

    def _fields(self, path: FieldPath) -> Iterator[tuple[str, Any]]:
        first: dict[str, int] = {}
        merged: list[dict[str, Any]] = []
        for key in self._until(yaml.MappingEndEvent):
            line = self._checked_line(key, path)
            if not isinstance(key, yaml.ScalarEvent):
                self._add_problem("a field name must be a string", line, path)
                self._value(key, (*path, "?"))
                self._value(next(self._events), (*path, "?"))
                continue
            name = key.value
            if name == _MERGE_KEY and not key.style:
                merged.append(self._merged_fields(path, line))
                continue
            if name in first:
                what = f"duplicate field '{shorten(name, _MAX_NAME_CHARS)}', first set in line {first[name]}"
                self._add_problem(what, line, (*path, name))
                self._value(next(self._events), (*path, name))
                continue
            first[name] = line
            yield name, self._value(next(self._events), (*path, name))
            self._lines[(*path, name)] = line
        # A field that is written here overrides a merged one, and the first of several merged mappings the others.
        for fields in merged:
            for name, value in fields.items():
                if name not in first:
                    first[name] = self._lines[path]
                    yield name, value

    def _merged_fields(self, path: FieldPath, line: int) -> dict[str, Any]:
        """Read the value of a merge key: a mapping, or a list of mappings of which the first has precedence."""
        value = self._value(next(self._events), (*path, _MERGE_KEY))
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(each, dict) for each in mappings):
            self._add_problem("<< must be followed by a mapping or a list of mappings", line, path)
            return {}
        return {name: each for mapping in reversed(mappings) for name, each in mapping.items()}

    def _until(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        for event in self._events:
            if isinstance(event, end):
                self._set_end(event)
                return
            yield event

    def _checked_line(self, event: yaml.Event, path: FieldPath) -> int:
        """Line of the event; raises when the limit of values or depth is exceeded."""
        self._set_end(event)
        assert event.start_mark is not None
        line = event.start_mark.line + 1
        self._count(1, len(event.value) if isinstance(event, yaml.ScalarEvent) else 0, len(path), line)
        return line

    def _count(self, values: int, chars: int, depth: int, line: int) -> None:
        self._values += values
        self._chars += chars
        self._deepest = max(self._deepest, depth)
        size_bytes, values_limit = self._limits
        if self._values > values_limit:
            raise self._limit_exceeded(f"the file has more than {values_limit:,} names and values", line)
        if self._chars > size_bytes:
            raise self._limit_exceeded(f"the file has more than {size_bytes:,} characters with aliases", line)
        if depth > MAX_DEPTH:
            raise self._limit_exceeded(f"more than {MAX_DEPTH} levels of nesting", line)

    def _set_end(self, event: yaml.Event) -> None:
        assert event.end_mark is not None
        self._end = event.end_mark.index

    def _limit_exceeded(self, what: str, line: int) -> Refused:
        return Refused(Problem(DOCUMENT_INVALID, what, Where(self._file, line)))

    def _add_problem(self, what: str, line: int, path: FieldPath) -> None:
        if len(self._problems) > MAX_PROBLEMS:
            return
        if len(self._problems) == MAX_PROBLEMS:
            what = f"more than {MAX_PROBLEMS} errors: this one and later ones are not described"
        self._problems.append(Problem(DOCUMENT_INVALID, what, Where(self._file, line, _field_text(path))))


_TRUE = {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}
_FALSE = {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"}
_NULL = {"", "~", "null", "Null", "NULL"}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_WITH_BASE = re.compile(r"[-+]?0(?P<base>[xob]?)(?P<digits>[0-9a-fA-F]+)$")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
_BASES = {"x": 16, "o": 8, "": 8, "b": 2}


def parse_scalar(text: str) -> Any:
    """Parse a plain scalar as kubectl does: `1e3` is 1000, `017` is 15, `on` is true, and a date is a string."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    return _parse_number(text)


def _parse_number(text: str) -> Any:
    if len(text) > MAX_NUMBER_DIGITS:
        return text
    if _INTEGER.match(text):
        return int(text)
    with_base = _WITH_BASE.match(text)
    if with_base:
        try:
            size = int(with_base["digits"], _BASES[with_base["base"]])
        except ValueError:
            return text
        return -size if text.startswith("-") else size
    if _REAL.match(text):
        real = float(text)
        return int(real) if real.is_integer() else real
    return text
