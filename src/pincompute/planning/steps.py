"""What can be done to a cluster: values that can be printed and compared, and that say all."""

from __future__ import annotations

from typing import NamedTuple

from pincompute.objects.content import Object, identity


class Create(NamedTuple):
    """Made by POST: that it exists already would mean that it is not ours."""

    native: Object


class Apply(NamedTuple):
    """Ours, and different: applied to the very object that was seen."""

    native: Object
    uid: str
    applied: bool = False
    """So it was before: nothing is left on record from when it was made."""


class Adopt(NamedTuple):
    """Somebody else's until now, and asked for: it becomes ours with all that was written into it, and as wanted."""

    native: Object
    uid: str


class Mark(NamedTuple):
    """The copies that a ReplicaSet has made bear labels as well that they were not made with."""

    name: str
    uid: str
    labels: dict[str, str]


class Delete(NamedTuple):
    """Ours, and no longer wanted. Where it cannot be changed into what is wanted, the next pass makes it anew."""

    kind: str
    name: str
    uid: str
    pods_stay: bool = False


class Evict(NamedTuple):
    """A pod makes room for its successor, as gently as when its node is emptied."""

    pod: str
    uid: str


class Ungate(NamedTuple):
    """A pod is handed to the scheduler: what it waited for is there."""

    pod: str
    uid: str
    left: tuple[str, ...] = ()
    """Gates of others, which stay."""


class Sidecar(NamedTuple):
    """A container of a part, and which image it is to have."""

    place: int
    """Among the init containers."""
    name: str
    image: str


class Renew(NamedTuple):
    """Sidecars get other images where they are: the kubelet restarts those containers, and no other.

    Of a pod; or of a ReplicaSet's template, so that the pods that it makes have them from the start.
    """

    kind: str
    name: str
    uid: str
    sidecars: tuple[Sidecar, ...]
    """Those that change."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    """Of the pod, or of the template's pods."""


Step = Create | Apply | Adopt | Mark | Delete | Evict | Ungate | Renew


def words(step: Step) -> str:
    """As logs and stories name it: `Apply Deployment/hello`."""
    match step:
        case Create(native) | Apply(native) | Adopt(native):
            thing = identity(native)
        case Delete(kind, name) | Renew(kind, name):
            thing = f"{kind}/{name}"
        case Mark(name):
            thing = f"ReplicaSet/{name}"
        case Evict(pod) | Ungate(pod):
            thing = f"Pod/{pod}"
    return f"{type(step).__name__} {thing}"
