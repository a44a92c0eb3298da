"""A document becomes one of our nouns, or everything that is wrong with it, each fault with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

import msgspec

from pincompute.api.documents import Document
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.names import API_VERSION
from pincompute.api.noun import MAX_NAME, NAME_PATTERN, Fault, Noun, annotation_faults, label_faults
from pincompute.api.shape import bare, misfits, perhaps, unknown
from pincompute.api.wire import Metadata, fields_of
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, KIND_UNKNOWN, NAME_TAKEN

N = TypeVar("N", bound=Noun)

_OUTER = ("apiVersion", "kind", "metadata", "spec")
_STAND_INS = {int: 1, str: "a", list: ["a"], dict: {}}
"""For a field that must be there and is wrong, so that the rest can be judged."""
_METADATA = ("name", "project", "namespace", "labels", "annotations")


def admit(document: Document, project: str) -> Noun:
    """What a document describes; what belongs to a project, in its own or else in the given one."""
    content = document.content
    refuse_all(_outer(document))
    noun = KINDS[content["kind"]]
    said = content["metadata"]
    name = str(said.get("name"))
    faults = [*_metadata(noun, said), *noun.name_faults(name), *_spec(noun, content["spec"], name)]
    refuse_all(sorted(_told(document, faults), key=lambda problem: problem.where.line))
    metadata = Metadata(
        name=said["name"],
        namespace="" if noun.CLUSTER_WIDE else said.get("project") or said.get("namespace") or project,
        labels=said.get("labels") or {},
        annotations=said.get("annotations") or {},
    )
    return noun(metadata=metadata, spec=msgspec.convert(content["spec"], noun.spec_type()), kind=noun.__name__)


def admit_all(documents: Sequence[Document], project: str, how: Callable[[Document, str], N] = admit) -> list[N]:
    """A set, taken whole or not at all; a workload's name stands in it once, over all kinds."""
    found = list(admit_each(documents, project, how))
    refuse_all(problem for each in found if isinstance(each, Refused) for problem in each.problems)
    return [each for each in found if not isinstance(each, Refused)]


def admit_each(documents: Sequence[Document], project: str, how: Callable[[Document, str], N]) -> Iterator[N | Refused]:
    """The same of a set, one by one."""
    first: dict[tuple[str, str], Document] = {}
    for document in documents:
        try:
            noun = how(document, project)
        except Refused as refused:
            yield refused
            continue
        metadata = noun.metadata
        place = metadata.namespace if isinstance(noun, Workload) else noun.kind, metadata.name
        if place in first:
            before = first[place].where("metadata", "name")
            there = before if before.file else f"line {before.line}"
            what = f"{'/'.join(place)} stands in this set already, in {there}"
            yield Refused(Problem(NAME_TAKEN, what, document.where("metadata", "name"), next="choose another name"))
            continue
        first[place] = document
        yield noun


def admit_workload(document: Document, project: str) -> Workload:
    """The same, where only what runs will do."""
    kind = document.content.get("kind")
    if kind in KINDS and kind not in WORKLOADS:
        what = f"a {kind} is not a workload"
        raise Refused(Problem(KIND_UNKNOWN, what, document.where("kind"), next="kubectl apply -f FILE"))
    return cast("Workload", admit(document, project))


def _spec(noun: type[Noun], content: dict[str, Any], name: str) -> Iterator[Fault]:
    """What the types say, and then what they cannot say, of the fields that are of the right type."""
    misfitting = list(misfits(noun.spec_type(), content, ("spec",)))
    yield from misfitting
    right = {}
    for field in fields_of(noun.spec_type()):
        if field.required:
            right[field.encode_name] = _STAND_INS[bare(field.type)]
        with suppress(KeyError, msgspec.ValidationError):
            msgspec.convert(content[field.encode_name], field.type)
            right[field.encode_name] = content[field.encode_name]
    try:
        rest = msgspec.convert(right, noun.spec_type())
    except msgspec.ValidationError:
        # No stand-in fits: of the whole nothing can be said.
        return
    wrong = content.keys() - right.keys()
    for fault in rest.faults(name):
        if fault.path[0] not in wrong:
            yield fault._replace(path=("spec", *fault.path))


def _told(document: Document, faults: Iterable[Fault]) -> Iterator[Problem]:
    for each in faults:
        yield Problem(DOCUMENT_INVALID, each.what, document.where(*each.path), each.note, each.next)


def _outer(document: Document) -> Iterator[Problem]:
    content = document.content
    yield from _told(document, unknown(content, _OUTER, ()))
    if content.get("apiVersion") != API_VERSION:
        said = content.get("apiVersion")
        what = f"apiVersion is {said!r}" if said else "apiVersion is missing"
        yield Problem(KIND_UNKNOWN, what, document.where("apiVersion"), next=f"write apiVersion: {API_VERSION}")
    said = content.get("kind")
    if not isinstance(said, str) or said not in KINDS:
        yield Problem(
            KIND_UNKNOWN,
            f"there is no kind {said!r}" if said else "kind is missing",
            document.where("kind"),
            note=f"the kinds are {', '.join(KINDS)}",
            next=perhaps(str(said), KINDS),
        )
    for field in ("metadata", "spec"):
        if not isinstance(content.get(field), dict):
            what = "is missing" if content.get(field) is None else "must be a set of fields"
            yield Problem(DOCUMENT_INVALID, f"{field} {what}", document.where(field))


def _metadata(noun: type[Noun], metadata: dict[str, object]) -> Iterator[Fault]:
    yield from unknown(metadata, _METADATA, ("metadata",))
    yield from _name(metadata.get("name"), "name", noun.NAME_PATTERN, noun.MAX_NAME, noun.NAME_WORDS)
    project, namespace = metadata.get("project"), metadata.get("namespace")
    for field, said in (("project", project), ("namespace", namespace)):
        if said is None:
            continue
        if noun.CLUSTER_WIDE:
            what = f"a {noun.__name__} belongs to no project"
            yield Fault(("metadata", field), what, next=f"leave the {field} out")
        else:
            yield from _name(said, field, NAME_PATTERN, MAX_NAME, Noun.NAME_WORDS)
    for field, faults in (("labels", label_faults), ("annotations", annotation_faults)):
        if metadata.get(field) is not None:
            path, said = ("metadata", field), metadata[field]
            wrong = list(misfits(dict[str, str], said, path))
            yield from wrong or faults(msgspec.convert(said, dict[str, str]), path)
    if project and namespace and project != namespace:
        yield Fault(
            ("metadata", "namespace"),
            f"project {project!r} and namespace {namespace!r} must be the same",
            next="leave the namespace out",
        )


def _name(name: object, field: str, pattern: str, most: int, words: str) -> Iterator[Fault]:
    if not isinstance(name, str) or not re.fullmatch(pattern, name) or len(name) > most:
        yield Fault(
            ("metadata", field),
            f"{name!r} cannot be a name" if name is not None else "the name is missing",
            f"a name has at most {most} {words}",
            f'write "{name}"' if isinstance(name, int) and re.fullmatch(pattern, str(name)) else "",
        )
