"""Records of revisions in the cluster, one ConfigMap each, from which a rollback restores a workload completely."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from pincompute.api.names import (
    CONFIGURATION_ANNOTATION,
    CONTENT_ANNOTATION,
    IMAGES_ANNOTATION,
    MUTABLE_FIELDS_ANNOTATION,
    REVISION_ANNOTATION,
    RUNTIME_ANNOTATION,
)
from pincompute.api.structs import struct_fields
from pincompute.api.workload import WorkloadSpec
from pincompute.objects.content import Object
from pincompute.planning import names
from pincompute.planning.natives import build_native
from pincompute.planning.observed_pods import Pod
from pincompute.planning.pods.pod import BuiltTemplate
from pincompute.planning.revision_number import (
    EDITED_FIELDS,
    MUTABLE_JOB_SET_FIELDS,
    edits_of,
    keep_edits,
    present_revision,
    revised_fields,
    revision_content,
)
from pincompute.planning.snapshot import Native, Snapshot

SPEC_KEY = "spec.json"
"""Key under which a record stores the spec. No other native object has it."""
MAX_REVISIONS = 10
"""Number of revisions retained, including the current one."""
RECORD_KIND = "ConfigMap"
"""A ControllerRevision would be the obvious kind, but annotations are added to a record later, and the API server
refuses any update of a ControllerRevision if its data contains `<` or `&`: it compares the bytes of the first request
with its own encoding, which escapes these characters."""


def revision_record(snapshot: Snapshot, built: BuiltTemplate, pods: tuple[Pod, ...]) -> Object:
    """Record of the current revision. Its spec never changes; image hashes are added as its pods start."""
    owner = snapshot.owner
    revision = present_revision(snapshot)
    name = names.revision(owner, revision.number)
    facts = {
        REVISION_ANNOTATION: str(revision.number),
        CONTENT_ANNOTATION: revision.content,
        RUNTIME_ANNOTATION: str(built.runtime),
        CONFIGURATION_ANNOTATION: names.configuration(owner) if owner.spec.configuration else "",
        IMAGES_ANNOTATION: _images(snapshot, name, pods),
        MUTABLE_FIELDS_ANNOTATION: _mutable_fields(owner.spec),
    }
    # The configuration files have a ConfigMap of their own; together they could exceed the size limit of one.
    spec = {name: value for name, value in revised_fields(owner.spec).items() if name != "configuration"}
    text = msgspec.json.format(msgspec.json.encode(spec), indent=1).decode()
    body = {"immutable": True, "data": {SPEC_KEY: text}}
    annotations = {name: value for name, value in facts.items() if value}
    return build_native(snapshot, "v1", RECORD_KIND, body, name=name, annotations=annotations)


def _mutable_fields(spec: WorkloadSpec) -> str:
    """Fields that may change within a revision, and that a rollback restores as they were last; empty without any."""
    mutable = MUTABLE_JOB_SET_FIELDS - EDITED_FIELDS
    names = {field.encode_name for field in struct_fields(type(spec)) if field.name in mutable}
    fields = {name: value for name, value in edits_of(spec).items() if name in names}
    return msgspec.json.encode(fields, order="sorted").decode() if fields else ""


def retained_revisions(snapshot: Snapshot, pinned: Collection[int] = ()) -> tuple[tuple[str, str], ...]:
    """Kind and name of the newest records of former revisions, and of the ConfigMaps with their configuration files."""
    newest = _retained_records(snapshot, pinned)
    files = {each.metadata.annotations.get(CONFIGURATION_ANNOTATION, "") for each in newest} - {""}
    return (*((RECORD_KIND, each.metadata.name) for each in newest), *((RECORD_KIND, name) for name in sorted(files)))


def retained_numbers(snapshot: Snapshot, pinned: Collection[int] = ()) -> list[int]:
    """Revisions that have a record after this pass, which writes that of the present one."""
    former = map(_revision_number, _retained_records(snapshot, pinned))
    return sorted({*former, present_revision(snapshot).number})


def _retained_records(snapshot: Snapshot, pinned: Collection[int]) -> list[Native]:
    """The newest records of former revisions, oldest first; those that runtimes pin however old they are."""
    present = present_revision(snapshot).number
    former = [each for each in _owned_records(snapshot) if _revision_number(each) != present]
    former.sort(key=_revision_number)
    newest = len(former) - (MAX_REVISIONS - 1)
    return [each for index, each in enumerate(former) if index >= newest or _revision_number(each) in pinned]


def _owned_records(snapshot: Snapshot) -> list[Native]:
    """Records of the revisions of this very workload."""
    owner = snapshot.owner
    return [
        each
        for each in snapshot.natives
        if each.kind == RECORD_KIND and each.metadata.controller_uid == owner.metadata.uid and _revision_number(each)
    ]


def recorded_spec(snapshot: Snapshot, number: int) -> WorkloadSpec | None:
    """The spec of a recorded revision, with the present replicas, restarts and the like.

    None if there is no record that can be decoded and has its content.
    """
    owner, records = snapshot.owner, _owned_records(snapshot)
    record = next((each for each in records if _revision_number(each) == number), None)
    if record is None or SPEC_KEY not in record.data:
        return None
    files = {each.metadata.name: each.data for each in snapshot.natives if each.kind == RECORD_KIND}
    try:
        fields: Object = msgspec.json.decode(record.data[SPEC_KEY])
        if name := record.metadata.annotations.get(CONFIGURATION_ANNOTATION):
            fields["configuration"] = files.get(name, {})
        recorded: WorkloadSpec = msgspec.convert(fields, type(owner.spec))
    except msgspec.MsgspecError:
        return None
    is_whole = revision_content(recorded) == record.metadata.annotations.get(CONTENT_ANNOTATION)
    return keep_edits(owner.spec, recorded) if is_whole else None  # type: ignore[no-any-return]


def parse_images(annotation: str) -> dict[str, str]:
    """Image digest of each container, from the annotation of a record."""
    return dict(each.split("=", 1) for each in annotation.split() if "=" in each)


def _revision_number(record: Native) -> int:
    return record.int_annotation(REVISION_ANNOTATION)


def _images(snapshot: Snapshot, name: str, pods: tuple[Pod, ...]) -> str:
    """Image digests of the revision: those already recorded, and those of its pods. The first one recorded stays."""
    record = next((each for each in snapshot.natives if (each.kind, each.metadata.name) == (RECORD_KIND, name)), None)
    known = parse_images(record.metadata.annotations.get(IMAGES_ANNOTATION, "") if record else "")
    ours = (each for each in pods if snapshot.owns_pod(each))
    for pod in sorted(ours, key=lambda each: each.metadata.name):
        for container in pod.status.container_statuses:
            _, at, digest = container.image_id.rpartition("@")
            if at and container.name not in known:
                known[container.name] = digest
    return " ".join(f"{name}={known[name]}" for name in sorted(known))
