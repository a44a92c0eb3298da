"""What a workload was, whole, so that a rollback restores all of it: kept in the cluster, a record a revision."""

from __future__ import annotations

import msgspec

from pincompute.api.names import CONFIGURATION, IMAGES, REVISION, RUNTIME
from pincompute.api.wire import spoken
from pincompute.objects.content import Object
from pincompute.planning import names
from pincompute.planning.natives import native
from pincompute.planning.pods.pod import Made
from pincompute.planning.snapshot import Native, Pod, Snapshot

SPEC = "spec.json"
"""What a record holds, and no other native does."""
HISTORY = 10
"""Revisions that are kept, the present one included."""
RECORD = "ConfigMap"
"""Not a ControllerRevision: what came of a revision is added to its record, and that kind takes no addition to one
whose content holds a `<` or an `&`, as it compares the very bytes in which it was first sent."""


def record(snapshot: Snapshot, made: Made, pods: tuple[Pod, ...]) -> Object:
    """What was asked for never changes; what came of it is added while it is the present revision."""
    owner = snapshot.owner
    known = {
        REVISION: str(owner.metadata.generation),
        RUNTIME: str(made.runtime),
        CONFIGURATION: names.configuration(owner) if owner.spec.configuration else "",
        IMAGES: _images(snapshot, pods),
    }
    # Its files lie in a ConfigMap of their own, and both together could be more than one holds.
    spec = spoken(msgspec.structs.replace(owner.spec, configuration={}))
    text = msgspec.json.format(msgspec.json.encode(spec), indent=1).decode()
    body = {"immutable": True, "data": {SPEC: text}}
    annotations = {name: value for name, value in known.items() if value}
    return native(snapshot, "v1", RECORD, body, name=names.revision(owner), annotations=annotations)


def kept(snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
    """The records of former revisions, as many as are worth keeping, and the files that they were configured by."""
    owner = snapshot.owner
    records = [
        each for each in snapshot.natives if each.kind == RECORD and each.metadata.controller == owner.metadata.uid
    ]
    former = [each for each in records if 0 < _number(each) < owner.metadata.generation]
    worth = sorted(former, key=_number)[-(HISTORY - 1) :]
    files = {each.metadata.annotations.get(CONFIGURATION, "") for each in worth} - {""}
    return (*((RECORD, each.metadata.name) for each in worth), *((RECORD, name) for name in sorted(files)))


def images_of(said: str) -> dict[str, str]:
    """The digest that each container's image had, as a record says it."""
    return dict(each.split("=", 1) for each in said.split() if "=" in each)


def _number(native: Native) -> int:
    said = native.metadata.annotations.get(REVISION, "")
    return int(said) if said.isdigit() else 0


def _images(snapshot: Snapshot, pods: tuple[Pod, ...]) -> str:
    """The digest of each image that runs in pods of ours; of those that are gone the record itself remembers it."""
    name = names.revision(snapshot.owner)
    before = next((each for each in snapshot.natives if (each.kind, each.metadata.name) == (RECORD, name)), None)
    said = before.metadata.annotations.get(IMAGES, "") if before else ""
    known = images_of(said)
    ours = (each for each in pods if snapshot.made(each))
    for pod in sorted(ours, key=lambda each: each.metadata.name):
        for container in pod.status.container_statuses:
            _, at, digest = container.image_id.rpartition("@")
            if at and container.name not in known:
                known[container.name] = digest
    return " ".join(f"{name}={known[name]}" for name in sorted(known))
