"""Converts a document into a custom resource, or reports every error in it with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any, TypeVar, cast

import msgspec

from pincompute.api.custom_resource import (
    CustomResource,
    FieldError,
    Spec,
    annotation_errors,
    label_errors,
)
from pincompute.api.documents import Document, shorten
from pincompute.api.kinds import KINDS, WORKLOADS
from pincompute.api.names import API_VERSION
from pincompute.api.policy_rules import policy_errors
from pincompute.api.project import ProjectSpec
from pincompute.api.structs import Metadata, struct_fields
from pincompute.api.type_errors import container_type, did_you_mean, type_errors, unknown_field_errors
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import DOCUMENT_INVALID, KIND_UNKNOWN, NAME_TAKEN

N = TypeVar("N", bound=CustomResource)

_TOP_LEVEL_FIELDS = ("apiVersion", "kind", "metadata", "spec")
_METADATA_FIELDS = ("name", "project", "namespace", "labels", "annotations")
_MAX_PROBLEMS = 50
"""More are not collected: a document that is not a workload file at all can have one for each of its values."""
_MAX_PROBLEM_CHARS = 400
"""Length of a problem's text, which may quote a name or a value of any length."""
_FOREIGN_VERSION = re.compile(r"v1|(apps|batch|autoscaling|policy|kubeflow\.org|[a-z.-]+\.k8s\.io)/v[0-9a-z]+")
"""API versions of Kubernetes' own kinds, and of other operators whose objects may be mistaken for workloads."""
_IMPORTED_KINDS = {"Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "PyTorchJob", "TFJob"}
"""Kinds of other versions for which there are workloads; `pin import` converts them."""
_PLACEHOLDERS = {int: 1, str: "a", list: ["a"], dict: {}}
"""Valid values that stand in for required fields that are wrong, so that the other fields can still be checked."""


def parse_resource(document: Document, project: str) -> CustomResource:
    """Parse one document. A namespaced resource without a project of its own gets `project`."""
    content = document.content
    refuse_all(_document_problems(document))
    kind = KINDS[content["kind"]]
    metadata = content["metadata"]
    name = str(metadata.get("name"))
    errors = chain(
        _metadata_errors(kind, metadata), kind.reserved_name_errors(name), _spec_errors(kind, content["spec"], name)
    )
    refuse_all(sorted(_problems(document, errors), key=lambda problem: problem.where.line))
    namespace = metadata.get("project") or metadata.get("namespace") or project
    return kind(
        metadata=Metadata(
            name=metadata["name"],
            namespace="" if kind.CLUSTER_SCOPED else namespace,
            labels=metadata.get("labels") or {},
            annotations=metadata.get("annotations") or {},
        ),
        spec=msgspec.convert(content["spec"], kind.spec_type()),
        kind=kind.__name__,
    )


def parse_resources(
    documents: Sequence[Document], project: str, how: Callable[[Document, str], N] = parse_resource
) -> list[N]:
    """Parse a set of documents, all or nothing. A workload name must be unique in the set, over all kinds."""
    found = list(parse_each_resource(documents, project, how))
    refuse_all(problem for each in found if isinstance(each, Refused) for problem in each.problems)
    return [each for each in found if not isinstance(each, Refused)]


def parse_each_resource(
    documents: Sequence[Document], project: str, how: Callable[[Document, str], N]
) -> Iterator[N | Refused]:
    """Parse documents one by one, yielding for each its resource or its errors."""
    first: dict[tuple[str, str], Document] = {}
    for document in documents:
        try:
            resource = how(document, project)
        except Refused as refused:
            yield refused
            continue
        metadata = resource.metadata
        key = metadata.namespace if isinstance(resource, Workload) else resource.kind, metadata.name
        if key in first:
            where = first[key].where("metadata", "name")
            what = f"duplicate name {'/'.join(key)}, first used in {where if where.file else f'line {where.line}'}"
            yield Refused(Problem(NAME_TAKEN, what, document.where("metadata", "name"), next="choose another name"))
            continue
        first[key] = document
        yield resource


def parse_workload(document: Document, project: str) -> Workload:
    """Parse one document and reject kinds that are not workloads."""
    kind = document.content.get("kind")
    if kind in KINDS and kind not in WORKLOADS:
        what = f"a {kind} is not a workload"
        raise Refused(Problem(KIND_UNKNOWN, what, document.where("kind"), next=_other_kind_command(str(kind))))
    return cast("Workload", parse_resource(document, project))


def _other_kind_command(kind: str) -> str:
    return f"pin deploy FILE, with the file of the {kind} alone"


def _document_problems(document: Document) -> Iterator[Problem]:
    """Problems that prevent any further check: unknown version or kind, and missing sections."""
    content = document.content
    yield from _problems(document, unknown_field_errors(content, _TOP_LEVEL_FIELDS, ()))
    version = content.get("apiVersion")
    if isinstance(version, str) and _FOREIGN_VERSION.fullmatch(version) and content.get("kind") not in KINDS:
        kind = shorten(str(content.get("kind")), _MAX_PROBLEM_CHARS)
        next_ = "pin import -f FILE" if kind in _IMPORTED_KINDS else "kubectl apply -f FILE"
        what = f"this is a {kind} of {version}, not a workload of {API_VERSION}"
        yield Problem(KIND_UNKNOWN, what, document.where("kind"), next=next_)
        return
    if version != API_VERSION:
        what = f"apiVersion is {version!r}" if version else "apiVersion is missing"
        yield Problem(KIND_UNKNOWN, what, document.where("apiVersion"), next=f"write apiVersion: {API_VERSION}")
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        yield Problem(
            KIND_UNKNOWN,
            f"unknown kind {kind!r}" if kind else "kind is missing",
            document.where("kind"),
            note=f"kinds: {', '.join(KINDS)}",
            next=did_you_mean(str(kind), KINDS),
        )
    for section in ("metadata", "spec"):
        if not isinstance(content.get(section), dict):
            what = "is missing" if content.get(section) is None else "must be a mapping"
            yield Problem(DOCUMENT_INVALID, f"{section} {what}", document.where(section))


def _metadata_errors(kind: type[CustomResource], metadata: dict[str, object]) -> Iterator[FieldError]:
    yield from unknown_field_errors(metadata, _METADATA_FIELDS, ("metadata",))
    yield from _name_errors(metadata.get("name"), "name", kind)
    project, namespace = metadata.get("project"), metadata.get("namespace")
    for field, value in (("project", project), ("namespace", namespace)):
        if value is None:
            continue
        if kind.CLUSTER_SCOPED:
            what = f"{kind.__name__} is cluster-scoped and has no {field}"
            yield FieldError(("metadata", field), what, next=f"remove {field}")
        else:
            yield from _name_errors(value, field, CustomResource)
    for field, errors in (("labels", label_errors), ("annotations", annotation_errors)):
        if metadata.get(field) is not None:
            path, value = ("metadata", field), metadata[field]
            mismatches = list(type_errors(dict[str, str], value, path))
            yield from mismatches or errors(msgspec.convert(value, dict[str, str]), path)
    if project and namespace and project != namespace:
        yield FieldError(
            ("metadata", "namespace"),
            f"project {project!r} and namespace {namespace!r} must be equal",
            next="remove namespace",
        )


def _name_errors(name: object, field: str, kind: type[CustomResource]) -> Iterator[FieldError]:
    valid = isinstance(name, str) and re.fullmatch(kind.NAME_PATTERN, name) and len(name) <= kind.MAX_NAME_LENGTH
    if not valid:
        yield FieldError(
            ("metadata", field),
            f"invalid name {name!r}" if name is not None else "the name is missing",
            f"a name has at most {kind.MAX_NAME_LENGTH} {kind.NAME_RULE}",
            f'write "{name}"' if isinstance(name, int) and re.fullmatch(kind.NAME_PATTERN, str(name)) else "",
        )


def _spec_errors(kind: type[CustomResource], content: dict[str, Any], name: str) -> Iterator[FieldError]:
    """Errors against the field types, then errors between fields.

    The latter are checked on a spec with the valid fields only, so that one wrong type does not hide them.
    """
    spec_type = kind.spec_type()
    yield from type_errors(spec_type, content, ("spec",))
    valid = {}
    for field in struct_fields(spec_type):
        if field.required:
            valid[field.encode_name] = _PLACEHOLDERS[container_type(field.type)]
        with suppress(KeyError, msgspec.ValidationError):
            msgspec.convert(content[field.encode_name], field.type)
            valid[field.encode_name] = content[field.encode_name]
    try:
        spec = msgspec.convert(valid, spec_type)
    except msgspec.ValidationError:
        # A required field is wrong and no placeholder has its type. The type errors above must suffice.
        return
    invalid = content.keys() - valid.keys()
    for error in chain(spec.field_errors(name), _policy_errors(spec)):
        if error.path[0] not in invalid:
            yield error._replace(path=("spec", *error.path))


def _policy_errors(spec: Spec) -> Iterator[FieldError]:
    """Errors in a project's policies.

    They are checked here and not in ProjectSpec, because a rule may read fields of every kind, including Project.
    """
    if isinstance(spec, ProjectSpec):
        yield from policy_errors(spec.policies, ("policies",))


def _problems(document: Document, errors: Iterable[FieldError]) -> Iterator[Problem]:
    """Field errors with their location in the file, up to a limited number."""
    remaining = iter(errors)
    for error in islice(remaining, _MAX_PROBLEMS):
        yield Problem(DOCUMENT_INVALID, _shorten(error.what), _where(document, error), error.note, error.next)
    if more := next(remaining, None):
        what = f"more than {_MAX_PROBLEMS} errors: this one and later ones are not described"
        yield Problem(DOCUMENT_INVALID, what, _where(document, more), next="fix the others first")


def _where(document: Document, error: FieldError) -> Where:
    return document.where(*(_shorten(each) if isinstance(each, str) else each for each in error.path))


def _shorten(text: str) -> str:
    return shorten(text, _MAX_PROBLEM_CHARS)
