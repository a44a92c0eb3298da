"""Base of all custom resource kinds: naming, scope, validation rules and printer columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, NamedTuple

import msgspec

from pincompute.api.names import API_VERSION
from pincompute.api.structs import LenientStruct, Metadata, StrictStruct

MAX_NAME_LENGTH = 50
"""Leaves room for the suffixes that Kubernetes appends to pod names."""
NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"

FieldPath = tuple[str | int, ...]


class FieldError(NamedTuple):
    """An error in a field of a document. The caller adds file and line."""

    path: FieldPath
    what: str
    note: str = ""
    next: str = ""


MAX_ANNOTATIONS_BYTES = 250_000
"""Total size of annotations in bytes. Slightly below the limit of Kubernetes, because the operator adds its own."""

_DOMAIN_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = re.compile(
    rf"((?=[^/]{{1,253}}/){_DOMAIN_PART}(\.{_DOMAIN_PART})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?"
)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def label_errors(labels: Mapping[str, str], path: FieldPath) -> Iterator[FieldError]:
    """Invalid label names and values."""
    for label, value in labels.items():
        if not _LABEL.fullmatch(label):
            yield FieldError((*path, label), f"invalid label name '{label}'", "such as disk or example.com/disk")
        elif not _LABEL_VALUE.fullmatch(value):
            note = "at most 63 letters, digits and - _ ., beginning and ending with a letter or digit"
            yield FieldError((*path, label), f"invalid label value {value!r}", note)


def annotation_errors(annotations: Mapping[str, str], path: FieldPath) -> Iterator[FieldError]:
    """Invalid annotation names, and annotations that are too large in total."""
    for name in annotations:
        # In annotations the domain may have capitals, in labels it may not.
        if not _LABEL.fullmatch(name.lower()):
            yield FieldError((*path, name), f"invalid annotation name '{name}'", "such as note or example.com/note")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    if size > MAX_ANNOTATIONS_BYTES:
        yield FieldError(path, f"annotations have {size:,} bytes together", f"the maximum is {MAX_ANNOTATIONS_BYTES:,}")


class ValidationRule(NamedTuple):
    """CEL validation rule of the CRD, for constraints over several fields and for immutability.

    Applies to writes with kubectl, too.
    """

    cel: str
    message: str


class Spec(StrictStruct, frozen=True):
    """Base of specs: the part of a resource that users write."""

    def field_errors(self, name: str) -> Iterator[FieldError]:
        """Errors that types cannot express. Paths begin below `spec`."""
        del name
        yield from ()


class CustomResource(LenientStruct, frozen=True, kw_only=True, rename=None):
    """Base of our kinds. Class variables hold short names, scope, printer columns and validation rules."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ()
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    """Header, type and JSON path of each column of `kubectl get`."""
    CLUSTER_SCOPED: ClassVar[bool] = False
    SCALABLE: ClassVar[bool] = False
    """Has the scale subresource, so that `kubectl scale` works."""
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = ()
    """CEL rules, evaluated at the root: `self.spec`."""
    MAX_NAME_LENGTH: ClassVar[int] = MAX_NAME_LENGTH
    NAME_PATTERN: ClassVar[str] = NAME_PATTERN
    NAME_RULE: ClassVar[str] = "lower-case letters, digits and dashes, and begins with a letter"

    metadata: Metadata
    spec: Spec
    kind: str
    apiVersion: str = API_VERSION  # noqa: N815

    @classmethod
    def plural(cls) -> str:
        return f"{cls.__name__.lower()}s"

    @classmethod
    def reserved_name_errors(cls, name: str) -> Iterator[FieldError]:
        """Valid names that are reserved. Paths begin at the top of the document."""
        del name
        yield from ()

    @classmethod
    def spec_type(cls) -> type[Spec]:
        return _field_type(cls, "spec")

    @classmethod
    def status_type(cls) -> type[StrictStruct] | None:
        return _field_type(cls, "status")


@cache
def _field_type(kind: type[CustomResource], name: str) -> Any:
    return next((field.type for field in msgspec.structs.fields(kind) if field.name == name), None)
