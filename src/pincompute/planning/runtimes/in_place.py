"""What becomes of copies where only the images of sidecars change: they stay, and the kubelet restarts those alone.

Kubernetes replaces copies whose template differs from the one that they were made by. So while it holds still, what it
makes copies by is changed as well: of a Deployment its ReplicaSet, of a StatefulSet the revision that each copy bears.
Nothing is remembered: how far it has come is told by what the copies and their makers bear, so that whoever begins
anew at any point goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pincompute.api.names import PARTS, RAN, TEMPLATE, WANTED
from pincompute.api.runtime import Roll
from pincompute.objects.content import Object
from pincompute.objects.numbers import share_of
from pincompute.planning.natives import EMPTY, Strings
from pincompute.planning.pods.pod import Made
from pincompute.planning.snapshot import Native, Pod, Ran, Snapshot
from pincompute.planning.steps import Renew, Sidecar

_REVISION = "deployment.kubernetes.io/revision"
_CONTROLLER_REVISION = "controller-revision-hash"


WATCHED = 5.0
"""Seconds that the first changed copy is watched: a part that starts, and ends at once, comes to no other."""
WATCHED_AGAIN = 2.0
"""The same where copies of others run well with it: what could be wrong now is only of this workload."""


class Way(NamedTuple):
    """The native as it is wanted now, and what is done beside."""

    native: Object
    steps: tuple[Renew, ...] = ()
    still: bool = False
    """Kubernetes holds still until the copies, or their maker, are as wanted."""
    look_again: float | None = None
    """Seconds after which time alone lets it go on."""


class Change(NamedTuple):
    """From what runs to what is wanted."""

    snapshot: Snapshot
    made: Made
    pods: tuple[Pod, ...]
    copies: int
    """That there are to be."""
    unavailable: int | str
    """Of them that may be away, as their owner says."""

    @property
    def allowed(self) -> int:
        """As many as both their owner and the roll let be away; none where the owner lets none."""
        own = share_of(self.unavailable, self.copies, up=True)
        runtime = self.snapshot.runtimes.known.get(self.made.runtime)
        roll = (runtime.spec.roll if runtime else None) or Roll()
        return min(own, max(1, share_of(roll.unavailable, self.copies, up=False)))

    @property
    def possible(self) -> bool:
        return bool(self.made.sidecars) and self.allowed > 0

    @property
    def former(self) -> tuple[Pod, ...]:
        return tuple(each for each in self.pods if each.template != self.made.digest)

    @property
    def watched(self) -> float | None:
        """Seconds until one of those that were changed has run long enough; nothing where one has, or none was."""
        return self.unproven if self.alike else None

    @property
    def unproven(self) -> float | None:
        """The same, whether or not any are left."""
        now, runtimes = self.snapshot.now, self.snapshot.runtimes
        long = WATCHED_AGAIN if runtimes.proven(self.made.runtime) else WATCHED
        ran = [(now - each.restarted).total_seconds() for each in self.changed if each.restarted]
        return max(0.0, long - max(ran)) or None if ran else None

    @property
    def pace(self) -> int:
        """Copies that may be away by now: one, until it is seen to last."""
        lasts = self.changed and self.watched is None and any(each.ready for each in self.changed)
        return self.allowed if lasts else 0 if self.changed else min(1, self.allowed)

    @property
    def changed(self) -> tuple[Pod, ...]:
        return tuple(each for each in self.pods if each.renewed and each.template == self.made.digest)

    @property
    def alike(self) -> tuple[Pod, ...]:
        """Those of them that can become what is wanted where they are."""
        return tuple(each for each in self.former if each.shape == self.made.shape)


def of_deployment(change: Change, wanted: Object, still: Object) -> Way:
    """Its ReplicaSet becomes what the Deployment would make one of: it finds its own, and makes no other."""
    seen = _seen(change.snapshot, "Deployment")
    sets = [each for each in _sets(change.snapshot, seen) if each.shape == change.made.shape] if seen else []
    if seen is None or not sets or not change.possible:
        return Way(wanted)
    held = _is(seen, still)
    there = next((each for each in sets if each.template == change.made.digest), None)
    if there is None:
        # It must have seen that it is held, or it would make another one of what it last saw.
        newest = max(sets, key=_revision)
        return Way(still, (_template(change.made, newest),) if held and seen.taken_up else (), still=True)
    if held and not there.taken_up:
        return Way(still, still=True)
    return Way(wanted, renewals(change), look_again=change.watched)


def of_stateful_set(change: Change, wanted: Object, still: Object) -> Way:
    """Each copy gets the newest revision's name with its images: what bears it is not replaced."""
    seen = _seen(change.snapshot, "StatefulSet")
    if seen is None or not change.possible or len(change.alike) < len(change.former):
        return Way(wanted)
    held = _is(seen, still)
    known = held and seen.taken_up and seen.status.update_revision != ""
    if not change.former:
        # It would replace copies of which it has not seen yet what they have become.
        waits = held and not (known and seen.status.updated_replicas >= seen.status.replicas)
        return Way(still, still=True) if waits else Way(wanted)
    labels = {_CONTROLLER_REVISION: seen.status.update_revision}
    return Way(still, renewals(change, labels) if known else (), still=True, look_again=change.watched)


def of_work(changes: Iterable[Change]) -> Way:
    """Work that runs keeps what makes its pods, which can never change: so pods that come later are changed as well.

    One maker after the other, so that where a part fails the others keep what they have.
    """
    changes = [each for each in changes if each.possible]
    waits = [each.unproven for each in changes if each.changed]
    if waits and all(waits):
        return Way({}, look_again=min(each for each in waits if each))
    for each in changes:
        steps = renewals(each)
        if steps or each.alike or not all(pod.ready for pod in each.changed):
            return Way({}, steps, look_again=each.watched)
    return Way({})


def renewals(change: Change, labels: Strings = EMPTY) -> tuple[Renew, ...]:
    """Nobody misses a copy that does not answer; of the others one first, and then as many as may be away."""
    ordered = sorted(change.alike, key=lambda each: each.metadata.name)
    away = change.copies - sum(each.ready for each in change.pods)
    silent = [each for each in ordered if not each.ready]
    answering = [each for each in ordered if each.ready][: max(0, change.pace - away)]
    return tuple(renewal(change.made, each, labels) for each in (*silent, *answering))


def renewal(made: Made, pod: Pod, labels: Strings = EMPTY) -> Renew:
    wanted = {each.name: each.image for each in _sidecars(made)}
    places = enumerate(pod.spec.init_containers)
    changed = tuple(
        Sidecar(place, each.name, wanted[each.name])
        for place, each in places
        if each.name in wanted and each.image != wanted[each.name]
    )
    annotations = {PARTS: " ".join(made.parts), RAN: " ".join(map(str, _left(pod, changed)))}
    return Renew("Pod", pod.metadata.name, pod.metadata.uid, changed, {**labels, TEMPLATE: made.digest}, annotations)


def _left(pod: Pod, changed: Iterable[Sidecar]) -> Iterator[Ran]:
    """What still runs, which may be what ran before an earlier change that the kubelet has not come to."""
    before = {each.name: each for each in Ran.all(pod.metadata.annotations.get(RAN, ""))}
    runs = {each.name: each for each in pod.status.init_container_statuses if each.state.running}
    images = {each.name: each.image for each in pod.spec.init_containers}
    for each in changed:
        container = runs.get(each.name)
        if container is None:
            continue
        ran = before.get(each.name)
        waiting = ran is not None and container.restart_count <= ran.restarts
        yield ran if ran and waiting else Ran(each.name, container.restart_count, images[each.name])


def _template(made: Made, seen: Native) -> Renew:
    """All of them: what of them it has is not known."""
    annotations = {PARTS: " ".join(made.parts)}
    metadata = seen.metadata
    return Renew(seen.kind, metadata.name, metadata.uid, _sidecars(made), {TEMPLATE: made.digest}, annotations)


def _sidecars(made: Made) -> tuple[Sidecar, ...]:
    containers: Sequence[Object] = made.template["spec"]["initContainers"]
    places = enumerate(containers)
    return tuple(Sidecar(place, each["name"], each["image"]) for place, each in places if each["name"] in made.sidecars)


def _seen(snapshot: Snapshot, kind: str) -> Native | None:
    ours = (each for each in snapshot.natives if each.metadata.controller == snapshot.owner.metadata.uid)
    return next((each for each in ours if each.kind == kind), None)


def _sets(snapshot: Snapshot, deployment: Native) -> Iterator[Native]:
    return (
        each
        for each in snapshot.natives
        if each.kind == "ReplicaSet" and each.metadata.controller == deployment.metadata.uid
    )


def _revision(native: Native) -> tuple[int, str]:
    said = native.metadata.annotations.get(_REVISION, "")
    return int(said) if said.isdigit() else 0, native.metadata.name


def _is(seen: Native, wanted: Object) -> bool:
    return seen.wanted == wanted["metadata"]["annotations"][WANTED]
