"""What a workload takes over that was there before it, in an order in which no copy ends and none is missed.

Both sides ask for it: the workload names each native with its uid, and each native bears the workload's label. Nothing
is remembered: how far it has come is told by what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pincompute.api.names import ADOPTS, KIND
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import CHANGED_MEANWHILE
from pincompute.objects.content import Object, identity
from pincompute.planning.natives import labels
from pincompute.planning.plan import Taking
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.steps import Delete, Mark, Renew, Step

MAKER, SET = "Deployment", "ReplicaSet"


class Asked(NamedTuple):
    """One native that is to become the workload's."""

    native: str
    """`Deployment/web`."""
    uid: str
    generation: int = 0

    @classmethod
    def all(cls, said: str) -> tuple[Asked, ...]:
        """As the annotation says it."""
        entries = (each.partition("=") for each in said.split())
        parted = ((native, *rest.partition("@")) for native, _, rest in entries)
        return tuple(cls(native, uid, int(number)) for native, uid, _, number in parted if number.isdigit())

    def __str__(self) -> str:
        return f"{self.native}={self.uid}@{self.generation}"


def asking(natives: Iterable[Object]) -> str:
    """What the annotation says of those that were found."""
    metadata = ((identity(each), each["metadata"]) for each in natives)
    return " ".join(str(Asked(name, each["uid"], each.get("generation", 0))) for name, each in metadata)


def of(snapshot: Snapshot, wanted: Sequence[Object]) -> Taking:
    """First what makes copies lets go of them, then they are marked as ours, and then who leads to them follows."""
    asked = {each.uid: each for each in Asked.all(snapshot.owner.metadata.annotations.get(ADOPTS, ""))}
    if not any(each.native.startswith(f"{MAKER}/") for each in asked.values()):
        return Taking()
    foreign = [each for each in snapshot.natives if each.metadata.uid in asked and _is_foreign(snapshot.owner, each)]
    later = tuple(each.metadata.uid for each in foreign)
    makers = [each for each in foreign if each.kind == MAKER]
    if makers:
        problems = tuple(_changed(snapshot.owner, each, asked) for each in makers if _is_changed(each, asked))
        return Taking(later=later, steps=tuple(_gone(each) for each in makers), problems=problems)
    sets = [each for each in snapshot.natives if each.kind == SET and _is_left(snapshot, each)]
    steps = tuple(step for each in sets for step in _marked(snapshot.owner, each))
    if steps or not _are_ready(snapshot, sets, asked):
        return Taking(later=later, steps=steps)
    there = {identity(each) for each in wanted}
    kept = [each for each in foreign if _called(each) in there]
    return Taking(
        tuple(each.metadata.uid for each in kept), steps=tuple(_gone(each) for each in foreign if each not in kept)
    )


def _gone(native: Native) -> Delete:
    """Where ours takes the place of it; its pods never go with it."""
    return Delete(native.kind, native.metadata.name, native.metadata.uid, pods_stay=native.kind == MAKER)


def _is_foreign(owner: Workload, native: Native) -> bool:
    """What makes copies becomes that of our own native, and not ours."""
    return native.kind != SET and native.metadata.controller != owner.metadata.uid


def _ours(snapshot: Snapshot) -> list[Native]:
    owner = snapshot.owner.metadata.uid
    return [each for each in snapshot.natives if each.kind == MAKER and each.metadata.controller == owner]


def _is_left(snapshot: Snapshot, native: Native) -> bool:
    """Left alone by who made it, or ours again already; it bears our label, or it would not be seen."""
    return native.metadata.controller in {"", *(each.metadata.uid for each in _ours(snapshot))}


def _marked(owner: Workload, native: Native) -> Iterator[Step]:
    """What it makes copies by first, so that none comes after that would have to be marked."""
    metadata, said = native.metadata, labels(owner)
    if KIND not in metadata.labels:
        yield Renew(native.kind, metadata.name, metadata.uid, (), said)
    elif native.taken_up and native.status.fully_labeled_replicas < native.status.replicas:
        yield Mark(metadata.name, metadata.uid, said)


def _are_ready(snapshot: Snapshot, sets: Sequence[Native], asked: dict[str, Asked]) -> bool:
    """Of each kind another moment may be seen: that something is not there proves nothing."""
    ready = {each.metadata.uid for each in sets if each.metadata.controller and each.taken_up}
    making = {uid for uid, each in asked.items() if each.native.startswith(f"{SET}/")}
    copies = getattr(snapshot.owner.spec, "replicas", 0)
    return bool(_ours(snapshot)) and (making <= ready or copies == 0)


def _is_changed(native: Native, asked: dict[str, Asked]) -> bool:
    return (
        native.metadata.generation != asked[native.metadata.uid].generation and not native.metadata.deletion_timestamp
    )


def _changed(owner: Workload, native: Native, asked: dict[str, Asked]) -> Problem:
    name = native.metadata.name
    generation = asked[native.metadata.uid].generation
    return Problem(
        CHANGED_MEANWHILE,
        f"{_called(native)} was changed since it was imported, and is left alone",
        Where(object=owner.metadata.place),
        f"its generation is {native.metadata.generation}, and was {generation}",
        f"pin delete {owner.metadata.name}, which ends nothing that runs; then pin import deployment/{name} --adopt",
    )


def _called(native: Native) -> str:
    return f"{native.kind}/{native.metadata.name}"
