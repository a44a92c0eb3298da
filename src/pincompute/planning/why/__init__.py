"""Why a workload is not as wanted: one cause, with its evidence and what to type next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from pincompute.base.problem import Problem
from pincompute.planning.snapshot import Pod, Snapshot
from pincompute.planning.why import answers, ends, images, nodes, places, refusals, starts, waits
from pincompute.planning.why.cause import Cause, Copy, Look, Rank, Wait

LOOKS: tuple[Look, ...] = (places.look, images.look, starts.look, ends.look, waits.look, answers.look, nodes.look)
"""At each pod, in the order of its life."""


class Finding(NamedTuple):
    """Nothing is wrong without a problem; time alone could change that."""

    problem: Problem | None = None
    look_again: float | None = None


class Found(NamedTuple):
    """A cause, and where it was found."""

    cause: Cause
    stage: int
    name: str


def first_cause(snapshot: Snapshot, pods: tuple[Pod, ...]) -> Finding:
    """What can never end well is told before what may only be slow, and what many suffer from before what one does."""
    seen = [*_of_natives(snapshot), *_of_pods(snapshot, pods)]
    again = min((each.seconds for _, _, each in seen if isinstance(each, Wait)), default=None)
    alike: defaultdict[tuple[Rank, int, int, str], list[Found]] = defaultdict(list)
    for stage, name, each in seen:
        if isinstance(each, Cause):
            alike[each.rank, each.turn, stage, each.problem.reason.code].append(Found(each, stage, name))
    if not alike:
        return Finding(None, again)
    first = min(alike.values(), key=_order)
    return Finding(_counted(snapshot, first, len(pods)), again)


def _of_natives(snapshot: Snapshot) -> Iterator[tuple[int, str, Cause | Wait]]:
    """Before all pods: without them there are none; and what only tells that time has passed, after all."""
    for stage, look in ((-1, refusals.look), (len(LOOKS), nodes.stuck), (len(LOOKS) + 1, refusals.late)):
        yield from ((stage, "", each) for each in look(snapshot))


def _of_pods(snapshot: Snapshot, pods: tuple[Pod, ...]) -> Iterator[tuple[int, str, Cause | Wait]]:
    """Of those that are not as they should be."""
    for pod in pods:
        if pod.ready:
            continue
        copy = Copy(snapshot.owner, pod, snapshot.now, snapshot.runtimes)
        for stage, look in enumerate(LOOKS):
            yield from ((stage, pod.metadata.name, each) for each in look(copy))


def _order(alike: list[Found]) -> tuple[Rank, int, int, int, str, str]:
    first = min(alike, key=lambda each: each.name)
    cause = first.cause
    return cause.rank, -len(alike), cause.turn, first.stage, cause.problem.reason.code, first.name


def _counted(snapshot: Snapshot, alike: list[Found], pods: int) -> Problem:
    """The first by name speaks for all of them."""
    first = min(alike, key=lambda each: each.name)
    problem = first.cause.problem
    if not first.name or pods == 1:
        return problem
    return problem._replace(what=f"{problem.what} ({len(alike)} of {pods} {snapshot.owner.COPY[1]})")
