"""The numbered copies of a StatefulSet: which are as wanted, what holds the others up, and which must make room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pincompute.api.names import CLAIMS, FIXED, WANTED
from pincompute.api.stateful_set import PinterestStatefulSet
from pincompute.base import reasons
from pincompute.base.problem import Problem, Where
from pincompute.objects.content import Object
from pincompute.planning import names
from pincompute.planning.plan import soonest
from pincompute.planning.pods.ailing import ails
from pincompute.planning.pods.pod import Made
from pincompute.planning.snapshot import Native, Pod, Snapshot
from pincompute.planning.steps import Evict
from pincompute.planning.why import Finding, answers, first_cause, waits
from pincompute.planning.why.cause import Cause, Copy, Wait

_SILENT = frozenset({reasons.HEALTH_CHECK_FAILED, reasons.PORT_SILENT, reasons.PROBE_FAILED})


class Copies(NamedTuple):
    """Those that are to be there, the last first, as Kubernetes replaces them."""

    current: tuple[Pod, ...]
    """Of the newest revision, or held back on purpose."""
    former: tuple[Pod, ...]

    @property
    def ready(self) -> int:
        return sum(each.ready for each in (*self.current, *self.former))


def find(owner: PinterestStatefulSet, made: Made, pods: Sequence[Pod]) -> Copies:
    """What is beyond the last copy is on its way out, and left out."""
    placed = sorted(((_place(owner, each), each) for each in pods), key=lambda each: -each[0])
    living = [each for place, each in placed if 0 <= place < owner.spec.replicas]
    current = tuple(each for each in living if each.template == made.digest or _stays(owner, each))
    return Copies(current, tuple(each for each in living if each not in current))


def partition(owner: PinterestStatefulSet) -> int:
    """So many of the first copies stay of the former revision; while it is paused, all do."""
    return owner.spec.replicas if owner.spec.rollout.paused else owner.spec.rollout.partition


def cause(snapshot: Snapshot, copies: Copies) -> Finding:
    """Of the newest revision first; a former copy that fails would hold it up."""
    paused = snapshot.owner.spec.rollout.paused
    if paused:
        what = f"the rollout is paused by {paused}"
        return Finding(Problem(reasons.PAUSED, what, next=f"pin resume {snapshot.owner.metadata.name}"))
    newest = first_cause(snapshot, copies.current)
    if newest.problem:
        return newest
    begins = [each.seconds for each in (_begins(snapshot, pod) for pod in copies.former) if isinstance(each, Wait)]
    return _blocked(snapshot, copies) or newest._replace(look_again=soonest(newest.look_again, *begins))


def held_back(snapshot: Snapshot, wanted: Object) -> tuple[Problem, ...]:
    """A StatefulSet that is made anew forgets what its former revision was."""
    owner, seen = snapshot.owner, _seen(snapshot)
    fixed = wanted["metadata"]["annotations"][FIXED]
    if seen is None or not partition(owner) or seen.metadata.annotations.get(FIXED, fixed) == fixed:
        return ()
    return (
        Problem(
            reasons.CANNOT_CHANGE,
            "neither claims nor order can change while copies are held back",
            Where(object=owner.metadata.place),
            next="take rollout.paused and rollout.partition out first",
        ),
    )


def evictions(snapshot: Snapshot, wanted: Object, copies: Copies) -> tuple[Evict, ...]:
    """Where Kubernetes alone would wait for ever, one at a time.

    It replaces no copy before all answer, though a former one may be beyond that; and it cannot give a copy a claim
    that it was not made with. A revision that fails itself is not brought to more copies.
    """
    owner: PinterestStatefulSet = snapshot.owner
    failing = any(ails(snapshot, each) for each in copies.current)
    if owner.spec.rollout.paused or failing or not _taken_up(snapshot, wanted):
        return ()
    silent = (each for each in copies.former if not each.ready)
    beyond = [
        each for each in silent if _lacks(owner, each) or not each.says("PodScheduled") or _holds_up(snapshot, each)
    ]
    whole = copies.ready == owner.spec.replicas
    lacking = [each for each in copies.former if whole and _lacks(owner, each)]
    return tuple(Evict(each.metadata.name, each.metadata.uid) for each in (*beyond, *lacking)[:1])


def _blocked(snapshot: Snapshot, copies: Copies) -> Finding | None:
    for each in copies.former:
        ailing = _holds_up(snapshot, each)
        if ailing:
            what = f"{each.metadata.name}, of a former revision, holds the newest one up"
            return Finding(Problem(reasons.ROLLOUT_BLOCKED, what, ailing.where, ailing.message(), ailing.next))
    return None


def _holds_up(snapshot: Snapshot, pod: Pod) -> Problem | None:
    """Also what is only slow to begin or to answer: of a former revision it need not do so at all."""
    slow = _begins(snapshot, pod)
    return ails(snapshot, pod) or (slow.problem if isinstance(slow, Cause) else None)


def _begins(snapshot: Snapshot, pod: Pod) -> Cause | Wait | None:
    if pod.ready:
        return None
    copy = Copy(snapshot.owner, pod, snapshot.now, snapshot.runtimes)
    found = next((each for look in (waits.look, answers.look) for each in look(copy)), None)
    if isinstance(found, Cause) and found.problem.reason in _SILENT:
        # How a former revision was asked is not known any more.
        found = found._replace(problem=found.problem._replace(what="its program runs, but does not answer", next=""))
    return found


def _taken_up(snapshot: Snapshot, wanted: Object) -> bool:
    """Kubernetes would make the successor of what is wanted now, and not of what was before."""
    seen = _seen(snapshot)
    return seen is not None and seen.taken_up and seen.wanted == wanted["metadata"]["annotations"][WANTED]


def _seen(snapshot: Snapshot) -> Native | None:
    ours = (each for each in snapshot.natives if each.metadata.controller == snapshot.owner.metadata.uid)
    return next((each for each in ours if each.kind == "StatefulSet"), None)


def _place(owner: PinterestStatefulSet, pod: Pod) -> int:
    """Counted from the first copy, whatever number that has."""
    number = names.ordinal(owner, pod.metadata.name)
    return -1 if number is None else number - owner.spec.ordinals.start


def _stays(owner: PinterestStatefulSet, pod: Pod) -> bool:
    return _place(owner, pod) < owner.spec.rollout.partition


def _lacks(owner: PinterestStatefulSet, pod: Pod) -> bool:
    """It was made without a claim that there is now."""
    return not owner.spec.all_claims.keys() <= set(pod.metadata.annotations.get(CLAIMS, "").split())
