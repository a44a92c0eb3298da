"""What every kind of ours has, whatever it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import msgspec

from pincompute.api.names import API_VERSION
from pincompute.api.wire import Metadata, Strict, Wire

MAX_NAME = 50
"""A name of 50 letters leaves room for what Kubernetes appends to a pod's."""
NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"

Path = tuple[str | int, ...]


class Fault(NamedTuple):
    """What is wrong with a field of a document; whoever knows its file adds the line."""

    path: Path
    what: str
    note: str = ""
    next: str = ""


MOST_ANNOTATED = 250_000
"""Bytes of all annotations of an object: Kubernetes takes a little more, and some are written beside them."""

_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = re.compile(rf"((?=[^/]{{1,253}}/){_PART}(\.{_PART})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def label_faults(labels: Mapping[str, str], path: Path) -> Iterator[Fault]:
    """What cannot be the name or the value of a label."""
    for label, value in labels.items():
        if not _LABEL.fullmatch(label):
            yield Fault((*path, label), f"no label can be called '{label}'", "such as disk or example.com/disk")
        elif not _LABEL_VALUE.fullmatch(value):
            yield Fault((*path, label), f"no label can be {value!r}", "letters, digits and - _ . within, at most 63")


def annotation_faults(annotations: Mapping[str, str], path: Path) -> Iterator[Fault]:
    """What cannot be the name of an annotation, or is too much."""
    for name in annotations:
        # Here the domain may have capitals as well.
        if not _LABEL.fullmatch(name.lower()):
            yield Fault((*path, name), f"no annotation can be called '{name}'", "such as note or example.com/note")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    if size > MOST_ANNOTATED:
        yield Fault(path, f"they have {size:,} bytes together", f"{MOST_ANNOTATED:,} is the most")


class Rule(NamedTuple):
    """What spans fields or may not change, in CEL, for those who write past our door."""

    cel: str
    message: str


class Spec(Strict, frozen=True):
    """What a person writes."""

    def faults(self, name: str) -> Iterator[Fault]:
        """What the types cannot say; paths begin below `spec`."""
        del name
        yield from ()


class Noun(Wire, frozen=True, kw_only=True, rename=None):
    """One of our kinds; the class says how it is called, scoped, printed and bounded."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ()
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    """Header, type and JSON path of what `kubectl get` prints."""
    CLUSTER_WIDE: ClassVar[bool] = False
    SCALES: ClassVar[bool] = False
    """It has a number of copies that `kubectl scale` may change."""
    RULES: ClassVar[tuple[Rule, ...]] = ()
    """Seen from the root: `self.spec`."""
    MAX_NAME: ClassVar[int] = MAX_NAME
    NAME_PATTERN: ClassVar[str] = NAME_PATTERN
    NAME_WORDS: ClassVar[str] = "lower-case letters, digits and dashes, and begins with a letter"

    metadata: Metadata
    spec: Spec
    kind: str
    apiVersion: str = API_VERSION  # noqa: N815

    @classmethod
    def plural(cls) -> str:
        return f"{cls.__name__.lower()}s"

    @classmethod
    def name_faults(cls, name: str) -> Iterator[Fault]:
        """Names that look right and are taken all the same; paths begin at the top of the document."""
        del name
        yield from ()

    @classmethod
    def spec_type(cls) -> type[Spec]:
        return _field_type(cls, "spec")

    @classmethod
    def status_type(cls) -> type[Strict] | None:
        return _field_type(cls, "status")


@cache
def _field_type(noun: type[Noun], name: str) -> Any:
    return next((field.type for field in msgspec.structs.fields(noun) if field.name == name), None)
