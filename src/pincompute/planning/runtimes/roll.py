"""The plan of a roll: what a runtime would do to every workload, before it does."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from pincompute.api.runtime import Roll
from pincompute.api.status import SUCCEEDED, condition
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.objects.numbers import share_of
from pincompute.planning.planners import PLANNERS
from pincompute.planning.pods.templates import Templated, Use, in_place, same_pods, templates, use
from pincompute.planning.runtimes.runtime import Chosen, Runtimes, began, part_problems, runtime_of
from pincompute.planning.runtimes.waves import Wave, wave_reaching, waves
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.status import pods_of

REPLACING = 30
"""Seconds that we reckon a new copy takes until it answers."""
IN_PLACE = 10
"""Seconds that we reckon a container takes to be restarted with another image."""


class Fate(StrEnum):
    """What becomes of a workload's pods."""

    REFUSED = "refused"
    IN_PLACE = "in place"
    REPLACED = "replaced"
    WHEN_FINISHED = "when finished"
    HELD = "held"
    UNCHANGED = "unchanged"


class Line(NamedTuple):
    """One workload."""

    project: str
    name: str
    kind: str
    owner: str
    tier: str
    fate: Fate
    pods: int = 0
    change: Use = Use()
    """In what all its pods together ask for."""
    wave: int = 0
    """The place of the wave that reaches it, from 0."""
    seconds: int = 0
    """Until all its pods have it, once the wave has come."""
    until: str = ""
    """The last day of its hold."""
    problems: tuple[Problem, ...] = ()


class WavePlan(NamedTuple):
    wave: Wave
    workloads: int
    """That it changes; those it only reaches are not counted."""
    pods: int
    seconds: int


class RollPlan(NamedTuple):
    """Of every workload; `problems` are of the runtime itself."""

    number: int
    before: int
    parts: tuple[str, ...]
    """What is other in it, in words, such as `logs-2 becomes logs-3`."""
    lines: tuple[Line, ...]
    waves: tuple[WavePlan, ...]
    problems: tuple[Problem, ...] = ()
    roll: Roll = Roll()
    """Its own order, or what is usual where it has none yet."""

    @property
    def back(self) -> bool:
        """It takes back what was rolled out since: everybody gets it at once, and there are no waves."""
        return self.number < self.before

    @property
    def seconds(self) -> int:
        if self.back:
            return max((each.seconds for each in self.lines), default=0)
        return sum(each.seconds for each in self.waves)

    def of(self, fate: Fate) -> tuple[Line, ...]:
        return tuple(each for each in self.lines if each.fate == fate)


def plan_roll(number: int, runtimes: Runtimes, snapshots: Iterable[Snapshot]) -> RollPlan:
    """From what everybody has now to what everybody will have; every snapshot is of a workload."""
    after = runtimes.finished(number)
    roll = runtimes.known[number].spec.roll or Roll()
    lines = tuple(_line(each, runtimes, after, roll) for each in snapshots)
    return RollPlan(
        number=number,
        before=runtimes.current,
        parts=_difference(runtimes, number),
        lines=tuple(sorted(lines, key=lambda each: (each.owner, each.tier, each.project, each.name, each.kind))),
        waves=_waves(roll, lines) if number >= runtimes.current else (),
        problems=part_problems(runtimes.known[number], runtimes),
        roll=roll,
    )


def _line(snapshot: Snapshot, before: Runtimes, after: Runtimes, roll: Roll) -> Line:
    owner: Workload = snapshot.owner
    project = snapshot.project.spec.owner if snapshot.project else ""
    line = Line(
        project=owner.metadata.namespace,
        name=owner.metadata.name,
        kind=owner.kind,
        owner=owner.spec.owner or project or owner.metadata.namespace,
        tier=str(owner.spec.tier),
        fate=Fate.UNCHANGED,
        wave=wave_reaching(owner, roll),
    )
    has = runtime_of(owner, before, snapshot.now)
    gets = runtime_of(_next_run(snapshot).owner, after, snapshot.now)
    if gets.problems:
        return line._replace(fate=Fate.REFUSED, problems=gets.problems)
    if gets.held:
        return line._replace(fate=Fate.HELD, until=gets.held)
    if _alike(has, gets) or over(owner):
        return line
    return _rendered(line, snapshot, before, after, roll)


def _rendered(line: Line, snapshot: Snapshot, before: Runtimes, after: Runtimes, roll: Roll) -> Line:
    """By the very planner that makes its natives, with the one runtime and with the other."""
    plan = PLANNERS[line.kind]
    first = plan(snapshot._replace(runtimes=before))
    second = plan(_next_run(snapshot)._replace(runtimes=after))
    if second.problems:
        return line._replace(fate=Fate.REFUSED, problems=second.problems)
    nodes = max(1, len(pods_of(snapshot)))
    old = {each.native: each for each in templates(first.wanted, nodes)}
    new = {each.native: each for each in templates(second.wanted, nodes)}
    fate = _fate(old, new, runs=began(snapshot.owner))
    if fate == Fate.UNCHANGED:
        return line
    pods = sum(each.copies for each in new.values())
    change = _use(new).plus(_use(old), -1) if old else Use()
    return line._replace(fate=fate, pods=pods, change=change, seconds=_seconds(fate, pods, roll))


def _fate(old: dict[str, Templated], new: dict[str, Templated], *, runs: bool) -> Fate:
    """The hardest fate of any of its templates."""
    pairs = [(old[each].template if each in old else {"spec": {}}, new[each]) for each in new]
    changed = [(first, second) for first, second in pairs if not same_pods(first, second.template)]
    if not changed:
        return Fate.UNCHANGED
    stay = all(in_place(first, second.template) for first, second in changed)
    if all(second.ends for _, second in changed):
        # What makes its pods cannot change; those that run can, as far as images go.
        return Fate.IN_PLACE if runs and stay else Fate.WHEN_FINISHED
    return Fate.IN_PLACE if stay else Fate.REPLACED


def _use(of: dict[str, Templated]) -> Use:
    total = Use()
    for each in of.values():
        total = total.plus(use(each.template), each.copies)
    return total


def _alike(has: Chosen, gets: Chosen) -> bool:
    """The same parts: nothing of its pods can differ."""
    return not has.problems and [each.metadata.name for each in has.parts] == [
        each.metadata.name for each in gets.parts
    ]


def _next_run(snapshot: Snapshot) -> Snapshot:
    """What ends by itself goes on with what it began with; only when it begins again does it get another runtime."""
    if not began(snapshot.owner):
        return snapshot
    return snapshot._replace(owner=_anew(snapshot.owner), natives=(), pods=())


def _anew(owner: Workload) -> Workload:
    """As if nothing of it had run yet."""
    return type(owner)(metadata=owner.metadata, spec=owner.spec, kind=owner.kind)


def over(owner: Workload) -> bool:
    """It has ended; nothing of it runs."""
    goal = condition(owner.status.conditions, owner.GOAL)
    return owner.GOAL == SUCCEEDED and goal is not None and goal.status == "True"


def _seconds(fate: Fate, pods: int, roll: Roll) -> int:
    """Batch after batch, each as large as the budget; what ends by itself is not waited for."""
    if fate not in {Fate.IN_PLACE, Fate.REPLACED}:
        return 0
    each = IN_PLACE if fate == Fate.IN_PLACE else REPLACING
    return math.ceil(pods / budget(pods, roll.unavailable)) * each


def budget(pods: int, share: int | str) -> int:
    """Copies that may be away at a time; one at least, or it would never end."""
    return max(1, share_of(share, pods, up=False))


def _waves(roll: Roll, lines: tuple[Line, ...]) -> tuple[WavePlan, ...]:
    """Within a wave all workloads go side by side: the longest counts, and then the wave is watched."""
    moving = [each for each in lines if each.fate in {Fate.IN_PLACE, Fate.REPLACED}]
    reached: list[list[Line]] = [[] for _ in waves(roll)]
    for each in moving:
        reached[each.wave].append(each)
    return tuple(
        WavePlan(
            wave,
            len(theirs),
            sum(each.pods for each in theirs),
            max((each.seconds for each in theirs), default=0) + roll.pause_seconds,
        )
        for wave, theirs in zip(waves(roll), reached, strict=True)
    )


def _difference(runtimes: Runtimes, number: int) -> tuple[str, ...]:
    old, new = _versions(runtimes, runtimes.current), _versions(runtimes, number)
    changed = (
        f"{old[part]} becomes {new[part]}" if part in old else f"{new[part]} is new"
        for part in new
        if old.get(part) != new[part]
    )
    return (*changed, *(f"{old[part]} goes" for part in old if part not in new))


def _versions(runtimes: Runtimes, number: int) -> dict[str, str]:
    runtime = runtimes.known.get(number)
    return {each.rpartition("-")[0]: each for each in runtime.spec.parts} if runtime else {}


def shape(plan: RollPlan) -> Object:
    """For programs."""
    return {
        "runtime": plan.number,
        "before": plan.before,
        "parts": list(plan.parts),
        "seconds": plan.seconds,
        "problems": [each.json() for each in plan.problems],
        "waves": [
            {
                "wave": each.wave.words(plan.roll),
                "workloads": each.workloads,
                "pods": each.pods,
                "seconds": each.seconds,
            }
            for each in plan.waves
        ],
        "workloads": [_shape(each) for each in plan.lines],
    }


def _shape(line: Line) -> Object:
    whole: Object = {
        "project": line.project,
        "name": line.name,
        "kind": line.kind,
        "owner": line.owner,
        "tier": line.tier,
        "fate": str(line.fate),
        "wave": line.wave + 1,
        "pods": line.pods,
        "cpu": float(line.change.cpu),
        "memory": int(line.change.memory),
        "until": line.until,
        "problems": [each.json() for each in line.problems],
    }
    return {field: value for field, value in whole.items() if value not in ("", [])}
