"""What a workload was: read from the records of its revisions, and told by what each changed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import msgspec

from pincompute.api.names import CONFIGURATION, IMAGES, REVISION, RUNTIME
from pincompute.api.wire import spoken
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import REVISION_UNKNOWN
from pincompute.objects.comparison import Change, changes, shortened
from pincompute.objects.content import Object
from pincompute.objects.owners import controller_uid
from pincompute.planning.revision import SPEC, images_of
from pincompute.planning.why.words import masked


class Past(msgspec.Struct, frozen=True, dict=True):
    """One revision, as its record has it."""

    owner: Workload
    number: int
    at: str
    said: Object
    """The spec, as far as it says anything."""
    runtime: int = 0
    images: dict[str, str] = {}
    """The digest that each container's image then had."""

    @property
    def label(self) -> str:
        return f"{self.owner.metadata.name}@{self.number}"

    @cached_property
    def spec(self) -> WorkloadSpec:
        """Refused where it was written by a version that knew other fields."""
        try:
            return msgspec.convert(self.said, type(self.owner.spec))
        except msgspec.ValidationError as error:
            what = f"what {self.label} was cannot be read by this version: {error}"
            raise Refused(Problem(REVISION_UNKNOWN, what, Where(object=self.owner.metadata.place))) from error


def history(owner: Workload, records: Iterable[Object]) -> tuple[Past, ...]:
    """The eldest first; `records` are the ConfigMaps that it became, whole."""
    ours = [each for each in records if controller_uid(each) == owner.metadata.uid]
    files = {each["metadata"]["name"]: each.get("data", {}) for each in ours}
    found = [_past(owner, each, files) for each in ours if SPEC in each.get("data", {})]
    return tuple(sorted(found, key=lambda each: each.number))


def _past(owner: Workload, record: Object, files: dict[str, dict[str, str]]) -> Past:
    annotations = record["metadata"].get("annotations", {})
    said: Object = msgspec.json.decode(record["data"][SPEC])
    if name := annotations.get(CONFIGURATION):
        said["configuration"] = files.get(name, {})
    return Past(
        owner,
        int(annotations[REVISION]),
        record["metadata"].get("creationTimestamp", ""),
        said,
        int(annotations.get(RUNTIME, "0")),
        images_of(annotations.get(IMAGES, "")),
    )


def former(owner: Workload, past: Iterable[Past], number: int = 0) -> Past:
    """The one of that number; without a number the last that was otherwise than now."""
    known = [each for each in past if each.number < owner.metadata.generation]
    now = spoken(owner.spec)
    fitting = [each for each in known if (each.number == number if number else each.said != now)]
    if fitting:
        return fitting[-1]
    name = owner.metadata.name
    what = f"there is no record of {name}@{number}" if number else f"{name} was never otherwise, as far as is recorded"
    there = ", ".join(each.label for each in known)
    note = f"there are {there}" if there else "no former revision is recorded"
    raise Refused(Problem(REVISION_UNKNOWN, what, Where(object=owner.metadata.place), note, f"pin show {name}"))


def moved(target: Past, past: Iterable[Past]) -> tuple[str, ...]:
    """Images that have another content by now, though they are called as they were then."""
    then = _named(target)
    later = {name: each for one in past if one.number > target.number for name, each in _named(one).items()}
    return tuple(
        f"{image} is {later[container][1][:19]} by now, and was {digest[:19]} in {target.label}"
        for container, (image, digest) in sorted(then.items())
        if container in later and later[container][0] == image and later[container][1] != digest
    )


def differences(kind: type[Workload], before: Object, after: Object) -> tuple[str, ...]:
    """In words, such as `replicas 1 -> 3`."""
    unsaid = _unsaid(kind)
    old, new = _level({**unsaid, **before}, {**unsaid, **after})
    found = list(changes(old, new))
    paths = {each.path for each in found}
    # What a person took out is a change of theirs as well.
    gone = [Change(each.path, each.after) for each in changes(new, old) if each.path not in paths]
    return tuple(_difference(each) for each in sorted((*found, *gone), key=lambda each: each.path))


def _level(before: Object, after: Object) -> tuple[Object, Object]:
    """Sets of fields that only one of the two has are told field by field as well."""
    empty: list[Object] = [
        {name: {} for name, value in each.items() if isinstance(value, dict)} for each in (before, after)
    ]
    return {**empty[1], **before}, {**empty[0], **after}


def _difference(change: Change) -> str:
    old, new = ("" if each in ([], {}) else shortened(each) for each in (change.before, change.after))
    return masked(f"{change.path} {old} -> {new or 'gone'}" if old else f"{change.path}: {new}")


def _unsaid(kind: type[Workload]) -> Object:
    """What fields are that nobody speaks of."""
    fields = msgspec.structs.fields(kind.spec_type())
    return {each.encode_name: each.default for each in fields if isinstance(each.default, str | int)}


def _named(past: Past) -> dict[str, tuple[str, str]]:
    """Each container's image by its name, with the digest it had."""
    template = past.said.get("template", {}).get("spec", {})
    given = {each.get("name"): each.get("image", "") for each in template.get("containers", ())}
    images = {**given, past.owner.main: past.said.get("image") or given.get(past.owner.main, "")}
    return {name: (images[name], digest) for name, digest in past.images.items() if images.get(name)}
