"""History of a workload: its revisions as recorded in the cluster, and the changes between them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import msgspec

from pincompute.api.names import (
    CONFIGURATION_ANNOTATION,
    CONTENT_ANNOTATION,
    IMAGES_ANNOTATION,
    MUTABLE_FIELDS_ANNOTATION,
    REVISION_ANNOTATION,
    RUNTIME_ANNOTATION,
)
from pincompute.api.structs import without_defaults
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import REVISION_UNKNOWN
from pincompute.objects.comparison import FieldDifference, field_differences, short_text
from pincompute.objects.content import Object
from pincompute.objects.owners import controller_uid
from pincompute.planning.diagnosis.excerpts import mask_secrets
from pincompute.planning.revision import SPEC_KEY, parse_images
from pincompute.planning.revision_number import expected_revision


class RevisionRecord(msgspec.Struct, frozen=True, dict=True):
    """A recorded revision."""

    owner: Workload
    number: int
    created_at: str
    raw_spec: Object
    """The spec as JSON, without fields that have their default."""
    runtime: int = 0
    images: dict[str, str] = {}
    """Image digest of each container at that time."""
    content: str = ""
    """Hash of its content; empty in a record of an earlier version."""

    def differs(self, owner: Workload) -> bool:
        """Whether the workload has other content now."""
        if self.content:
            return self.content != expected_revision(owner).content
        return self.raw_spec != without_defaults(owner.spec)

    @property
    def label(self) -> str:
        return f"{self.owner.metadata.name}@{self.number}"

    @cached_property
    def spec(self) -> WorkloadSpec:
        """The decoded spec; refused if another version of the platform has written fields that this one lacks."""
        try:
            return msgspec.convert(self.raw_spec, type(self.owner.spec))
        except msgspec.ValidationError as error:
            what = f"revision {self.label} cannot be decoded by this version: {error}"
            raise Refused(Problem(REVISION_UNKNOWN, what, Where(object=self.owner.metadata.key))) from error


def read_history(owner: Workload, records: Iterable[Object]) -> tuple[RevisionRecord, ...]:
    """The recorded revisions, oldest first. `records` are the complete ConfigMaps of the workload."""
    owned = [each for each in records if controller_uid(each) == owner.metadata.uid]
    files = {each["metadata"]["name"]: each.get("data", {}) for each in owned}
    revisions = [_parse_record(owner, each, files) for each in owned if SPEC_KEY in each.get("data", {})]
    return tuple(sorted(revisions, key=lambda each: each.number))


def _parse_record(owner: Workload, record: Object, files: dict[str, dict[str, str]]) -> RevisionRecord:
    annotations = record["metadata"].get("annotations", {})
    raw_spec: Object = msgspec.json.decode(record["data"][SPEC_KEY])
    raw_spec |= msgspec.json.decode(annotations.get(MUTABLE_FIELDS_ANNOTATION, "{}"))
    if name := annotations.get(CONFIGURATION_ANNOTATION):
        # Configuration files are recorded once, in a ConfigMap of their own, and not with each revision.
        raw_spec["configuration"] = files.get(name, {})
    return RevisionRecord(
        owner,
        int(annotations[REVISION_ANNOTATION]),
        record["metadata"].get("creationTimestamp", ""),
        raw_spec,
        int(annotations.get(RUNTIME_ANNOTATION, "0")),
        parse_images(annotations.get(IMAGES_ANNOTATION, "")),
        annotations.get(CONTENT_ANNOTATION, ""),
    )


def find_revision(owner: Workload, past: Iterable[RevisionRecord], number: int = 0) -> RevisionRecord:
    """The revision of that number; without a number the newest with other content than the workload has now."""
    present = expected_revision(owner).number
    earlier = [each for each in past if each.number < present]
    matching = [each for each in earlier if (each.number == number if number else each.differs(owner))]
    if matching:
        return matching[-1]
    name = owner.metadata.name
    what = f"no record of revision {name}@{number}" if number else f"no earlier revision of {name} that differs"
    labels = ", ".join(each.label for each in earlier)
    note = f"recorded revisions: {labels}" if labels else "no earlier revision is recorded"
    raise Refused(Problem(REVISION_UNKNOWN, what, Where(object=owner.metadata.key), note, f"pin show {name}"))


def describe_moved_tags(target: RevisionRecord, past: Iterable[RevisionRecord]) -> tuple[str, ...]:
    """Images of the target revision with a tag that has moved to another digest since."""
    then = _images_by_container(target)
    later = {
        container: image
        for record in past
        if record.number > target.number
        for container, image in _images_by_container(record).items()
    }
    return tuple(
        f"tag {image} has moved: {digest[:19]} in {target.label}, {later[container][1][:19]} now"
        for container, (image, digest) in sorted(then.items())
        if container in later and later[container][0] == image and later[container][1] != digest
    )


def describe_changes(kind: type[Workload], before: Object, after: Object) -> tuple[str, ...]:
    """The changed fields as text, such as `replicas 1 -> 3`."""
    defaults = _scalar_defaults(kind)
    old, new = _with_same_mappings({**defaults, **before}, {**defaults, **after})
    changed = list(field_differences(old, new))
    paths = {each.path for each in changed}
    # `field_differences` reports only fields of its second argument, so removed fields need the comparison in reverse.
    removed = [FieldDifference(each.path, each.after) for each in field_differences(new, old) if each.path not in paths]
    return tuple(_difference_text(each) for each in sorted((*changed, *removed), key=lambda each: each.path))


def _with_same_mappings(before: Object, after: Object) -> tuple[Object, Object]:
    """Adds empty mappings, so that one which only one side has is compared field by field as well."""
    before_empty, after_empty = (_empty_mappings(fields) for fields in (before, after))
    return {**after_empty, **before}, {**before_empty, **after}


def _empty_mappings(fields: Object) -> Object:
    empty: Object = {}
    return {name: empty for name, value in fields.items() if isinstance(value, dict)}


def _difference_text(change: FieldDifference) -> str:
    old, new = ("" if each in ([], {}) else short_text(each) for each in (change.before, change.after))
    return mask_secrets(f"{change.path} {old} -> {new or 'removed'}" if old else f"{change.path}: {new}")


def _scalar_defaults(kind: type[Workload]) -> Object:
    """Defaults of the scalar fields, which records leave out."""
    fields = msgspec.structs.fields(kind.spec_type())
    return {each.encode_name: each.default for each in fields if isinstance(each.default, str | int)}


def _images_by_container(record: RevisionRecord) -> dict[str, tuple[str, str]]:
    """Image name and digest of each container with a recorded digest."""
    template = record.raw_spec.get("template", {}).get("spec", {})
    in_template = {each.get("name"): each.get("image", "") for each in template.get("containers", ())}
    main = record.owner.main_container_name
    images = {**in_template, main: record.raw_spec.get("image") or in_template.get(main, "")}
    return {name: (images[name], digest) for name, digest in record.images.items() if images.get(name)}
