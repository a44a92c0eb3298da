"""Numbers of revisions. A revision is the content of a workload: what runs, and not how many of it or whether now.

The number is one more than that of the content before, and no number is used twice. It needs no counter of its own. The
status has the number and the hash of the newest content, and so has every object that a pass writes for a revision. A
pass that was interrupted before it wrote the status is thus continued with the same number.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from pincompute.api.job_set import JobSetSpec, PinterestJobSet
from pincompute.api.names import CONTENT_ANNOTATION, REVISION_ANNOTATION, WORK_HASH_ANNOTATION
from pincompute.api.structs import default_of, struct_fields, without_defaults
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.objects.content import Object, content_hash
from pincompute.planning.snapshot import Native, Snapshot

EDITED_FIELDS = frozenset({"replicas", "parallelism", "suspended", "cancelled", "attempts", "attempt", "expires"})
"""Fields that commands such as `pin scale` change without a new revision, and the end of the workload's life."""
MUTABLE_JOB_SET_FIELDS = frozenset(
    {
        "parallelism", "suspended", "cancelled", "deadline_seconds", "max_failed", "keep_seconds", "attempts", "owner",
        "hold", "build", "break_glass", "expires",
    }
)  # fmt: skip
"""Fields that may change while a batch runs, because they do not affect the result of a task."""


def revised_fields(spec: WorkloadSpec) -> Object:
    """The fields of which any change requires a new revision, as JSON without defaults."""
    compared: Any = spec
    if elastic := getattr(spec, "elastic", None):
        compared = compared.with_workers(elastic.minimum)
    return without_defaults(msgspec.structs.replace(compared, **_unrevised_defaults(spec)))  # type: ignore[no-any-return]


def edits_of(spec: WorkloadSpec) -> Object:
    """The fields of the spec that make no revision, as JSON without defaults."""
    revised = revised_fields(spec)
    fields: Object = without_defaults(spec)
    return {name: value for name, value in fields.items() if revised.get(name) != value}


def keep_edits(present: WorkloadSpec, restored: Any) -> Any:
    """The restored spec with the replicas, attempts, restarts and the like of the present one."""
    old: Any = present
    kept = {name: getattr(old, name) for name in default_edits(restored)}
    if "rollout" in kept:
        kept["rollout"] = msgspec.structs.replace(restored.rollout, restarts=old.rollout.restarts)
    if getattr(restored, "elastic", None) and getattr(old, "elastic", None):
        restored = restored.with_workers(old.active_roles["worker"].replicas)
    return msgspec.structs.replace(restored, **kept)


def revision_content(spec: WorkloadSpec) -> str:
    """Hash of the fields that make a revision."""
    return content_hash(revised_fields(spec))


def default_edits(spec: Any, names: Collection[str] = EDITED_FIELDS) -> dict[str, Any]:
    """Defaults of these fields, and the rollout without pause and restarts."""
    defaults = {field.name: default_of(field) for field in struct_fields(type(spec)) if field.name in names}
    if rollout := getattr(spec, "rollout", None):
        defaults["rollout"] = msgspec.structs.replace(rollout, paused="", restarts=0)
    return defaults


def _unrevised_defaults(spec: WorkloadSpec) -> dict[str, Any]:
    """Defaults of all fields that make no revision."""
    return default_edits(spec, MUTABLE_JOB_SET_FIELDS if isinstance(spec, JobSetSpec) else EDITED_FIELDS)


class Revision(NamedTuple):
    """The present revision of a workload."""

    number: int
    content: str


def expected_revision(owner: Workload) -> Revision:
    """The present revision, for a reader without the objects of the workload."""
    status, content = owner.status, revision_content(owner.spec)
    before = status.content or (owner.status.work if isinstance(owner, PinterestJobSet) else "")
    if before:
        is_new = before != content
    else:
        # A status of an earlier version, whose number was the generation, or none yet.
        is_new = not status.revision or status.observed_generation != owner.metadata.generation
    return Revision(status.revision + is_new, content)


def present_revision(snapshot: Snapshot) -> Revision:
    """The present revision."""
    owner, recorded = snapshot.owner, snapshot.owner.status.revision
    expected = expected_revision(owner)
    owned = [native for native in snapshot.natives if native.metadata.controller_uid == owner.metadata.uid]
    newest = max((native.int_annotation(REVISION_ANNOTATION) for native in owned), default=0)
    if expected.number == recorded or newest <= recorded:
        return expected
    # It was written by a pass that did not come to write the status.
    written = [native for native in owned if native.int_annotation(REVISION_ANNOTATION) == newest]
    is_present = any(_content_of(native) == expected.content for native in written)
    return expected._replace(number=newest if is_present else newest + 1)


def _content_of(native: Native) -> str:
    annotations = native.metadata.annotations
    return annotations.get(CONTENT_ANNOTATION) or annotations.get(WORK_HASH_ANNOTATION, "")
