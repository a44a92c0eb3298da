"""A document becomes a workload, or everything that is wrong with it, each fault with its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

import msgspec

from pincompute.api.documents import Document
from pincompute.api.names import API_VERSION
from pincompute.api.service import KINDS, PinterestService
from pincompute.api.workload import MAX_NAME, NAME_PATTERN, Metadata
from pincompute.base.problem import Problem, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, KIND_UNKNOWN

_OUTER = ("apiVersion", "kind", "metadata", "spec")
_METADATA = ("name", "project", "namespace", "labels", "annotations")


def admit(document: Document, project: str) -> PinterestService:
    """The workload that a document describes, in its own project or else in the given one."""
    content = document.content
    refuse_all(_outer(document))
    kind = KINDS[content["kind"]]
    spec = next(field.type for field in msgspec.structs.fields(kind) if field.name == "spec")
    refuse_all([*_metadata(document), *_fields(document, spec, content["spec"], ("spec",))])
    whole = msgspec.convert(content["spec"], spec)
    refuse_all(Problem(DOCUMENT_INVALID, what, document.where("spec", field)) for field, what in whole.faults())
    metadata = content["metadata"]
    return kind(
        metadata=Metadata(
            name=metadata["name"],
            namespace=metadata.get("project") or metadata.get("namespace") or project,
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
        ),
        spec=whole,
    )


def _outer(document: Document) -> Iterator[Problem]:
    content = document.content
    yield from _unknown(document, content, _OUTER, ())
    if content.get("apiVersion") != API_VERSION:
        said = content.get("apiVersion")
        yield Problem(
            KIND_UNKNOWN,
            f"apiVersion is {said!r}" if said else "apiVersion is missing",
            document.where("apiVersion"),
            next=f"write apiVersion: {API_VERSION}",
        )
    said = content.get("kind")
    if not isinstance(said, str) or said not in KINDS:
        yield Problem(
            KIND_UNKNOWN,
            f"there is no kind {said!r}" if said else "kind is missing",
            document.where("kind"),
            note=f"the kinds are {', '.join(KINDS)}",
            next=_perhaps(str(said), KINDS),
        )
    for field in ("metadata", "spec"):
        if not isinstance(content.get(field), dict):
            what = "is missing" if content.get(field) is None else "must be a set of fields"
            yield Problem(DOCUMENT_INVALID, f"{field} {what}", document.where(field))


def _metadata(document: Document) -> Iterator[Problem]:
    metadata = document.content["metadata"]
    yield from _unknown(document, metadata, _METADATA, ("metadata",))
    names = {"name": metadata.get("name"), "project": metadata.get("project") or metadata.get("namespace")}
    for field, name in names.items():
        if name is None and field == "project":
            continue
        if not isinstance(name, str) or not re.match(NAME_PATTERN, name) or len(name) > MAX_NAME:
            yield Problem(
                DOCUMENT_INVALID,
                f"{name!r} cannot be a name" if name is not None else "the name is missing",
                document.where("metadata", field),
                note=f"a name has at most {MAX_NAME} lower-case letters, digits and dashes, and begins with a letter",
            )
    both = metadata.get("project"), metadata.get("namespace")
    if all(both) and both[0] != both[1]:
        yield Problem(
            DOCUMENT_INVALID,
            f"project {both[0]!r} and namespace {both[1]!r} must be the same",
            document.where("metadata", "namespace"),
            next="leave the namespace out",
        )


def _fields(document: Document, struct: type, value: dict[str, Any], path: tuple[str, ...]) -> Iterator[Problem]:
    """Each field by itself, so that the first fault does not hide the others."""
    known = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    yield from _unknown(document, value, known, path)
    for name, field in known.items():
        if name not in value:
            if field.required:
                yield Problem(DOCUMENT_INVALID, f"{name} is missing", document.where(*path, name))
            continue
        try:
            msgspec.convert(value[name], field.type)
        except msgspec.ValidationError as error:
            inner = str(error).partition(" - at `$")
            what = f"{name} is {value[name]!r}: {inner[0][0].lower()}{inner[0][1:]}"
            yield Problem(DOCUMENT_INVALID, what, document.where(*path, name))


def _unknown(
    document: Document, value: dict[str, Any], known: Iterable[str], path: tuple[str, ...]
) -> Iterator[Problem]:
    for name in value:
        if name not in known:
            yield Problem(
                DOCUMENT_INVALID,
                f"there is no field '{name}'",
                document.where(*path, name),
                note=f"the fields here are {', '.join(known)}",
                next=_perhaps(name, known),
            )


def _perhaps(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]}?" if near else ""
