"""Previews a roll: the effect of a runtime on every workload, computed before the roll begins.

Each workload is planned twice by its own planner, with the current and with the new runtime, and the pod templates are
compared. The preview therefore cannot differ from what the roll does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from pincompute.api.runtime import Roll
from pincompute.api.status import SUCCEEDED, find_condition
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem
from pincompute.objects.content import Object
from pincompute.objects.number_sets import scaled_value
from pincompute.planning.kinds.planners import PLANNERS
from pincompute.planning.pods.templates import (
    NativeTemplate,
    ResourceUse,
    can_update_in_place,
    pod_templates,
    resource_use,
    same_pod_spec,
)
from pincompute.planning.runtimes.daemon_pins import missing_pin_problems, pin_of
from pincompute.planning.runtimes.selection import (
    ChosenRuntime,
    Runtimes,
    choose_runtime,
    has_started,
    missing_part_problems,
)
from pincompute.planning.runtimes.waves import DAEMONS_FIRST, RollWave, roll_waves, wave_index_of
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.status import active_pods_of

DAEMONS_INDEX = -1
"""Wave index of daemons that get another revision by the roll: they come before the first wave."""
REPLACE_ESTIMATE_S = 30
"""Estimated time until a new pod is ready."""
IN_PLACE_ESTIMATE_S = 10
"""Estimated time to restart a container with another image."""


class RollEffect(StrEnum):
    """Effect of a roll on the pods of a workload."""

    REFUSED = "refused"
    IN_PLACE = "in place"
    REPLACED = "replaced"
    WHEN_FINISHED = "when finished"
    HELD = "held"
    UNCHANGED = "unchanged"


class WorkloadEffect(NamedTuple):
    """Effect of a roll on one workload."""

    project: str
    name: str
    kind: str
    owner: str
    tier: str
    effect: RollEffect
    pods: int = 0
    resource_change: ResourceUse = ResourceUse()
    """Change of the requests of all its pods together."""
    wave_index: int = 0
    """Index, from 0, of the wave that reaches it; `DAEMONS_INDEX` for a daemon that the runtime pins."""
    seconds: int = 0
    """Estimated time from the start of the wave until all its pods have the runtime."""
    held_until: str = ""
    """Last day of its hold."""
    problems: tuple[Problem, ...] = ()


class WavePlan(NamedTuple):
    """Effects of one wave."""

    wave: RollWave
    names: tuple[str, ...]
    """Project and name of the workloads that it changes, sorted, without those it reaches and leaves unchanged."""
    pods: int
    seconds: int

    @property
    def workloads(self) -> int:
        return len(self.names)


class RollPlan(NamedTuple):
    """Effects of a roll on all workloads. `problems` are those of the runtime itself."""

    number: int
    previous: int
    part_changes: tuple[str, ...]
    """Changed parts as text, such as `logs-2 becomes logs-3`."""
    effects: tuple[WorkloadEffect, ...]
    waves: tuple[WavePlan, ...]
    problems: tuple[Problem, ...] = ()
    roll: Roll = Roll()
    """Roll of the runtime, or the default if it has none yet."""

    @property
    def is_rollback(self) -> bool:
        """True if the runtime is older than the current one. All workloads then get it at once, without waves."""
        return self.number < self.previous

    @property
    def seconds(self) -> int:
        if self.is_rollback:
            return max((each.seconds for each in self.effects), default=0)
        return sum(each.seconds for each in self.waves)

    def with_effect(self, effect: RollEffect) -> tuple[WorkloadEffect, ...]:
        return tuple(each for each in self.effects if each.effect == effect)


def plan_roll(number: int, runtimes: Runtimes, snapshots: Iterable[Snapshot]) -> RollPlan:
    """Plan the roll from the current runtime to this one. Each snapshot is that of a workload."""
    snapshots, after = list(snapshots), runtimes.after_roll(number)
    roll = runtimes.by_number[number].spec.roll or Roll()
    effects = tuple(_workload_effect(each, runtimes, after, roll) for each in snapshots)
    return RollPlan(
        number=number,
        previous=runtimes.current,
        part_changes=(*_part_changes(runtimes, number), *_pin_changes(runtimes, number)),
        effects=tuple(sorted(effects, key=lambda each: (each.owner, each.tier, each.project, each.name, each.kind))),
        waves=_wave_plans(roll, effects) if number >= runtimes.current else (),
        problems=(
            *missing_part_problems(runtimes.by_number[number], runtimes),
            *missing_pin_problems(runtimes.by_number[number], (each.owner for each in snapshots)),
        ),
        roll=roll,
    )


def _workload_effect(snapshot: Snapshot, before: Runtimes, after: Runtimes, roll: Roll) -> WorkloadEffect:
    owner: Workload = snapshot.owner
    project = snapshot.project.spec.owner if snapshot.project else ""
    unchanged = WorkloadEffect(
        project=owner.metadata.namespace,
        name=owner.metadata.name,
        kind=owner.kind,
        owner=owner.spec.owner or project or owner.metadata.namespace,
        tier=str(owner.spec.tier),
        effect=RollEffect.UNCHANGED,
        wave_index=wave_index_of(owner, roll),
    )
    has = choose_runtime(owner, before, snapshot.now)
    gets = choose_runtime(_next_run(snapshot).owner, after, snapshot.now)
    if gets.problems:
        return unchanged._replace(effect=RollEffect.REFUSED, problems=gets.problems)
    if gets.held_until:
        return unchanged._replace(effect=RollEffect.HELD, held_until=gets.held_until)
    if _running_revision(owner, before) != _running_revision(owner, after):
        pods = owner.status.progress.wanted if owner.status.progress else 1
        seconds = _estimate_s(RollEffect.REPLACED, pods, roll)
        return unchanged._replace(effect=RollEffect.REPLACED, pods=pods, seconds=seconds, wave_index=DAEMONS_INDEX)
    if _has_same_parts(has, gets) or has_finished(owner):
        return unchanged
    return _compare_plans(unchanged, snapshot, before, after, roll)


def _running_revision(owner: Workload, runtimes: Runtimes) -> int:
    """The revision that a pin leads to; that of the file without one."""
    pin = pin_of(owner, runtimes)
    return pin.revision if pin else owner.status.revision


def _compare_plans(
    unchanged: WorkloadEffect, snapshot: Snapshot, before: Runtimes, after: Runtimes, roll: Roll
) -> WorkloadEffect:
    """Compare the pod templates of two plans, with the current and with the new runtime."""
    plan = PLANNERS[unchanged.kind]
    first = plan(snapshot._replace(runtimes=before))
    second = plan(_next_run(snapshot)._replace(runtimes=after))
    if second.problems:
        return unchanged._replace(effect=RollEffect.REFUSED, problems=second.problems)
    nodes = max(1, len(active_pods_of(snapshot)))
    old = {each.key: each for each in pod_templates(first.wanted, nodes)}
    new = {each.key: each for each in pod_templates(second.wanted, nodes)}
    effect = _template_effect(old, new, in_progress=has_started(snapshot.owner))
    if effect == RollEffect.UNCHANGED:
        return unchanged
    pods = sum(each.replicas for each in new.values())
    change = _total_use(new.values()).plus(_total_use(old.values()), -1) if old else ResourceUse()
    seconds = _estimate_s(effect, pods, roll)
    return unchanged._replace(effect=effect, pods=pods, resource_change=change, seconds=seconds)


def _template_effect(
    old: dict[str, NativeTemplate], new: dict[str, NativeTemplate], *, in_progress: bool
) -> RollEffect:
    """Most severe effect on any of the templates."""
    pairs = [(old[each].template if each in old else {"spec": {}}, new[each]) for each in new]
    changed = [(first, second) for first, second in pairs if not same_pod_spec(first, second.template)]
    if not changed:
        return RollEffect.UNCHANGED
    in_place = all(can_update_in_place(first, second.template) for first, second in changed)
    if all(second.is_finite for _, second in changed):
        # Templates of Jobs are immutable, but images of running pods can be changed.
        return RollEffect.IN_PLACE if in_progress and in_place else RollEffect.WHEN_FINISHED
    return RollEffect.IN_PLACE if in_place else RollEffect.REPLACED


def _total_use(templates: Iterable[NativeTemplate]) -> ResourceUse:
    total = ResourceUse()
    for template in templates:
        total = total.plus(resource_use(template.template), template.replicas)
    return total


def _has_same_parts(has: ChosenRuntime, gets: ChosenRuntime) -> bool:
    """True if the parts are the same, so that the templates are, too."""
    return not has.problems and [each.metadata.name for each in has.parts] == [
        each.metadata.name for each in gets.parts
    ]


def _next_run(snapshot: Snapshot) -> Snapshot:
    """Snapshot of the next run. Work in progress keeps its runtime, so that only its next run shows the effect."""
    if not has_started(snapshot.owner):
        return snapshot
    owner = snapshot.owner
    without_status = type(owner)(metadata=owner.metadata, spec=owner.spec, kind=owner.kind)
    return snapshot._replace(owner=without_status, natives=(), pods=())


def has_finished(owner: Workload) -> bool:
    """True for work that has run to completion."""
    goal = find_condition(owner.status.conditions, owner.GOAL)
    return owner.GOAL == SUCCEEDED and goal is not None and goal.status == "True"


def _estimate_s(effect: RollEffect, pods: int, roll: Roll) -> int:
    """Estimated time for all pods, in batches of the unavailability limit. The end of finite work is not waited for."""
    if effect not in {RollEffect.IN_PLACE, RollEffect.REPLACED}:
        return 0
    batch_s = IN_PLACE_ESTIMATE_S if effect == RollEffect.IN_PLACE else REPLACE_ESTIMATE_S
    return math.ceil(pods / unavailable_budget(pods, roll.unavailable)) * batch_s


def unavailable_budget(pods: int, share: int | str) -> int:
    """Pods that may be unavailable at a time: at least one, or the roll would never end."""
    return max(1, scaled_value(share, pods, up=False))


def _wave_plans(roll: Roll, effects: tuple[WorkloadEffect, ...]) -> tuple[WavePlan, ...]:
    """Workloads of a wave change in parallel: the slowest one and the pause determine its duration."""
    daemons = [each for each in effects if each.wave_index == DAEMONS_INDEX]
    waves = (*((RollWave("", "", DAEMONS_FIRST),) if daemons else ()), *roll_waves(roll))
    by_wave: list[list[WorkloadEffect]] = [*([daemons] if daemons else []), *([] for _ in roll_waves(roll))]
    for effect in effects:
        if effect.effect in {RollEffect.IN_PLACE, RollEffect.REPLACED} and effect not in daemons:
            by_wave[effect.wave_index + bool(daemons)].append(effect)
    return tuple(
        WavePlan(
            wave,
            tuple(sorted(f"{each.project}/{each.name}" for each in changed)),
            sum(each.pods for each in changed),
            max((each.seconds for each in changed), default=0) + roll.pause_seconds,
        )
        for wave, changed in zip(waves, by_wave, strict=True)
    )


def _part_changes(runtimes: Runtimes, number: int) -> tuple[str, ...]:
    old, new = _versions(runtimes, runtimes.current), _versions(runtimes, number)
    changed = (
        f"{old[part]} becomes {new[part]}" if part in old else f"{new[part]} is new"
        for part in new
        if old.get(part) != new[part]
    )
    return (*changed, *(f"{old[part]} is removed" for part in old if part not in new))


def _pin_changes(runtimes: Runtimes, number: int) -> tuple[str, ...]:
    known = runtimes.by_number
    old = {each.daemon: each for each in known[runtimes.current].spec.daemon_pins} if runtimes.current in known else {}
    new = {each.daemon: each for each in known[number].spec.daemon_pins}
    changed = (
        f"{old[daemon]} becomes {pin}" if daemon in old else f"{pin} is pinned"
        for daemon, pin in new.items()
        if old.get(daemon) != pin
    )
    return (*changed, *(f"{pin} is not pinned any more" for daemon, pin in old.items() if daemon not in new))


def _versions(runtimes: Runtimes, number: int) -> dict[str, str]:
    runtime = runtimes.by_number.get(number)
    return {each.rpartition("-")[0]: each for each in runtime.spec.parts} if runtime else {}


def roll_plan_json(plan: RollPlan) -> Object:
    """JSON form, for API responses and `--output json`."""
    return {
        "runtime": plan.number,
        "before": plan.previous,
        "parts": list(plan.part_changes),
        "seconds": plan.seconds,
        "problems": [each.json() for each in plan.problems],
        "waves": [
            {
                "wave": each.wave.text(plan.roll),
                "workloads": each.workloads,
                "names": list(each.names),
                "pods": each.pods,
                "seconds": each.seconds,
            }
            for each in plan.waves
        ],
        "workloads": [_effect_json(each) for each in plan.effects],
    }


def _effect_json(effect: WorkloadEffect) -> Object:
    fields: Object = {
        "project": effect.project,
        "name": effect.name,
        "kind": effect.kind,
        "owner": effect.owner,
        "tier": effect.tier,
        "fate": str(effect.effect),
        "wave": effect.wave_index + 1,
        "pods": effect.pods,
        "cpu": float(effect.resource_change.cpu),
        "memory": int(effect.resource_change.memory),
        "until": effect.held_until,
        "problems": [each.json() for each in effect.problems],
    }
    return {field: value for field, value in fields.items() if value not in ("", [])}
