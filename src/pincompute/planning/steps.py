"""Steps: the changes that the controller can make to a cluster, as values that can be printed and compared.

A step carries all that its request needs: the whole object to write, and the uid of the object it was computed for.
The uid is a precondition of the request. If the object was deleted and created again in the meantime, the request
fails with a conflict and the next pass plans from what is there by then; it never hits an object that the plan did not
see. Applying a step needs no decision (`controller/apply.py` has one function for each).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pincompute.objects.content import Object, object_label

StringMap = Mapping[str, str]
EMPTY_STRING_MAP: StringMap = MappingProxyType({})


class Create(NamedTuple):
    """Creates an object by POST. "Already exists" is an error: such an object is not owned by the workload."""

    native: Object


class Apply(NamedTuple):
    """Applies an owned object that differs, by server-side apply with the uid of the object seen."""

    native: Object
    uid: str
    only_applied: bool = False
    """True if all our fields are recorded as applied, and none as written by the POST that created the object.

    The fields of that POST are recorded under another operation; server-side apply would never remove them, so that
    they have to be migrated first.
    """


class Adopt(NamedTuple):
    """Takes over an object of another owner, on the user's request, and writes the wanted content."""

    native: Object
    uid: str


class LabelPods(NamedTuple):
    """Adds labels to the existing pods of a ReplicaSet or StatefulSet that is being adopted."""

    name: str
    uid: str
    labels: StringMap


class Delete(NamedTuple):
    """Deletes an owned object. If it is deleted because it cannot be changed, the next pass creates it again."""

    kind: str
    name: str
    uid: str
    orphan_pods: bool = False
    """True if the pods stay, for the new object to adopt them."""


class Evict(NamedTuple):
    """Evicts a pod, with respect for its disruption budget, so that its controller replaces it."""

    pod: str
    uid: str


class Ungate(NamedTuple):
    """Removes our scheduling gate from a pod, so that it can be scheduled."""

    pod: str
    uid: str
    remaining_gates: tuple[str, ...] = ()
    """Scheduling gates of others, which stay."""


class SidecarImage(NamedTuple):
    """New image of one sidecar."""

    index: int
    """Position in the list of init containers."""
    name: str
    image: str


class PatchImages(NamedTuple):
    """Changes the images of sidecars in place: the kubelet restarts those containers and no other.

    The object is a pod, or a ReplicaSet. Patching a ReplicaSet's template changes no running pod; pods created later
    have the new images from the start.
    """

    kind: str
    name: str
    uid: str
    sidecars: tuple[SidecarImage, ...]
    """The sidecars that change."""
    labels: StringMap = EMPTY_STRING_MAP
    annotations: StringMap = EMPTY_STRING_MAP
    """Labels and annotations of the pod, or of the template's pods."""


Step = Create | Apply | Adopt | LabelPods | Delete | Evict | Ungate | PatchImages


def step_text(step: Step) -> str:
    """Short form for logs and the pass history, such as `Apply Deployment/hello`."""
    match step:
        case Create(native) | Apply(native) | Adopt(native):
            target = object_label(native)
        case Delete(kind, name) | PatchImages(kind, name):
            target = f"{kind}/{name}"
        case LabelPods(name):
            target = f"of {name}"
        case Evict(pod) | Ungate(pod):
            target = f"Pod/{pod}"
    return f"{type(step).__name__} {target}"
