"""Decides which changes of a project its caller may make. Pure.

Administrators change everything. Owners manage who works in the project and how it is found; what a project may use
and how its work is reviewed was granted to it. The list is of the fields that owners may change, so that a new field is
closed to them until it is added here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from pincompute.api.identity import Identity
from pincompute.api.names import SUBMISSION_ANNOTATION
from pincompute.api.project import Project
from pincompute.api.structs import struct_fields, without_defaults
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CONFLICT, FORBIDDEN, PROJECT_NOT_EMPTY
from pincompute.objects.comparison import FieldDifference, short_text
from pincompute.planning.expiry import check_expires_later
from pincompute.planning.membership import is_managed, last_owner_problem

OWNER_FIELDS = ("owner", "contact", "costCentre", "description", "members", "expires")
"""Fields of the spec that owners may change."""
_MAX_SUMMARY_CHARS = 1_000
_MAX_LISTED_WORKLOADS = 5


def check_project_change(caller: Identity, before: Project | None, after: Project, now: datetime) -> list[Problem]:
    """Why a caller that may configure the project may not make this change of it; empty if it may.

    Administrators only create projects: `authorize` has refused others if there is none.
    """
    problems = [] if caller.is_admin or before is None else list(_owner_problems(caller, before, after))
    if (before is None or before.spec.expires != after.spec.expires) and (
        problem := check_expires_later(after, before, now)
    ):
        problems.append(problem)
    return problems


def _owner_problems(caller: Identity, before: Project, after: Project) -> Iterator[Problem]:
    # Compared as values: a tier that is opened without a limit, `{}`, must not pass as an empty field.
    name, changed = after.metadata.name, list(project_differences(before, after))
    for field in struct_fields(type(after.spec)):
        path = f"spec.{field.encode_name}"
        if field.encode_name in OWNER_FIELDS or getattr(before.spec, field.name) == getattr(after.spec, field.name):
            continue
        details = [format_difference(each) for each in changed if each.path == path or each.path.startswith(f"{path}.")]
        yield _closed_field(caller, name, path, details)
    for field_name in ("labels", "annotations"):
        if metadata_of(before, field_name) != metadata_of(after, field_name):
            yield _closed_field(caller, name, f"metadata.{field_name}", [])
    if is_managed(before) and not is_managed(after):
        yield last_owner_problem(name)


def _closed_field(caller: Identity, name: str, path: str, details: Sequence[str]) -> Problem:
    what = f"{caller} may not change {path} of project {name}: only platform administrators may"
    note = "\n".join([*details, f"owners change {', '.join(OWNER_FIELDS)}"])
    next_ = f"pin project document {name}, change these fields only, or ask the infrastructure team"
    return Problem(FORBIDDEN, what, Where(object=f"project {name}", field=path), note, next_)


def metadata_of(project: Project, field: str) -> dict[str, str]:
    """Labels or annotations, without the one with which the desk marks its submissions."""
    values: dict[str, str] = getattr(project.metadata, field)
    return {name: value for name, value in values.items() if name != SUBMISSION_ANNOTATION}


def merge_metadata(before: Project | None, document: Project) -> Project:
    """The document with the labels and annotations that others have set: a file need not repeat them."""
    if before is None:
        return document
    merged = {
        field: {**metadata_of(before, field), **metadata_of(document, field)} for field in ("labels", "annotations")
    }
    return replace(document, metadata=replace(document.metadata, **merged))


def content_digest(project: Project) -> str:
    """Equal for projects with the same labels, annotations and spec."""
    return hashlib.sha256(msgspec.json.encode(_content(project))).hexdigest()


def project_differences(before: Project | None, after: Project) -> Iterator[FieldDifference]:
    """Every field that differs, with absent values as None."""
    return _differences(_content(before) if before else {}, _content(after), "")


def _content(project: Project) -> dict[str, Any]:
    # Sorted, as the digest is of the order, too.
    metadata = {
        field: dict(sorted(values.items()))
        for field in ("labels", "annotations")
        if (values := metadata_of(project, field))
    }
    return {"metadata": metadata, "spec": without_defaults(project.spec)}


def _differences(before: Any, after: Any, path: str) -> Iterator[FieldDifference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            yield from _differences(before.get(name), after.get(name), f"{path}.{name}" if path else name)
    elif before != after:
        yield FieldDifference(path, before, after)


def format_difference(difference: FieldDifference) -> str:
    before, after = (short_text(each) or "none" for each in (difference.before, difference.after))
    return f"{difference.path}: {before} -> {after}"


def summarize_change(before: Project | None, after: Project) -> str:
    """The note of the audit log: which fields changed, and from what to what."""
    if before is None:
        return "created"
    text = "; ".join(map(format_difference, project_differences(before, after))) or "unchanged"
    return text if len(text) <= _MAX_SUMMARY_CHARS else f"{text[: _MAX_SUMMARY_CHARS - 1]}…"


def project_changed_problem(name: str) -> Problem:
    what = f"project {name} was changed by another writer in the meantime; nothing was written"
    next_ = f"pin project document {name}, then the same command again"
    return Problem(CONFLICT, what, Where(object=f"project {name}"), next=next_)


def check_project_empty(name: str, workloads: Sequence[str]) -> Problem | None:
    """Why a project cannot be deleted: a deletion would end its workloads, which must be the intent for each."""
    if not workloads:
        return None
    listed = ", ".join(sorted(workloads)[:_MAX_LISTED_WORKLOADS])
    more = f" and {len(workloads) - _MAX_LISTED_WORKLOADS} more" if len(workloads) > _MAX_LISTED_WORKLOADS else ""
    count = f"{len(workloads)} workload{'s' if len(workloads) > 1 else ''}"
    what = f"project {name} has {count}: {listed}{more}"
    next_ = f"pin delete {min(workloads)} -p {name}{', and then the others' if len(workloads) > 1 else ''}"
    return Problem(PROJECT_NOT_EMPTY, what, Where(object=f"project {name}"), next=next_)
