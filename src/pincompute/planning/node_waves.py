"""Which copies of a daemon make room next: wave by wave, within what may be away, and only while all goes well.

Nothing is remembered: how far it has come is told by the nodes that still have a former revision. A node that joins
has the newest one from the start, and counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import ceil
from typing import NamedTuple

from pincompute.api.daemon import Rollout
from pincompute.objects.content import digest
from pincompute.objects.numbers import share_of
from pincompute.planning.snapshot import Pod


class Turn(NamedTuple):
    """What comes next, and what it waits for."""

    next: tuple[Pod, ...] = ()
    wave: int = 0
    """Counted from 1; 0 when every node has the newest revision."""
    waits: str = ""
    look_again: float | None = None


def turn(rollout: Rollout, nodes: int, current: tuple[Pod, ...], former: tuple[Pod, ...], now: datetime) -> Turn:
    """`nodes` are to have it; `current` are of the newest revision."""
    if not former:
        return Turn()
    left = [_left(rollout, each, now) for each in current if each.ready]
    proved = sum(each <= 0 for each in left)
    goals = [ceil(nodes * percent / 100) for percent in rollout.waves]
    wave = next((number for number, goal in enumerate(goals, 1) if proved < goal), len(goals))
    room = goals[wave - 1] - (nodes - len(former))
    if room <= 0:
        return _waiting(wave, len(goals), left)
    away = nodes - sum(each.ready for each in (*current, *former))
    chosen = _within(former, room, allowed(rollout, nodes) - away)
    waits = "" if chosen else f"{away} of {nodes} nodes are without it, and no more may be"
    return Turn(chosen, wave, waits)


def allowed(rollout: Rollout, nodes: int) -> int:
    """How many nodes may be without it at a time: at least one, as else nothing could ever change."""
    return max(1, share_of(rollout.unavailable, nodes, up=True))


def _within(former: Iterable[Pod], room: int, budget: int) -> tuple[Pod, ...]:
    """Nobody misses a copy that does not answer; of the others, as many as may be away."""
    ordered = sorted(former, key=_turn_of)
    silent = [each for each in ordered if not each.ready][:room]
    answering = [each for each in ordered if each.ready][: max(0, min(room - len(silent), budget))]
    return (*silent, *answering)


def _turn_of(pod: Pod) -> tuple[str, str]:
    """By chance as it were, so that a wave meets nodes of every sort, and always the same."""
    return digest(pod.spec.node_name), pod.metadata.name


def _waiting(wave: int, waves: int, left: list[float]) -> Turn:
    """For the copies of this wave to be ready, and then to have run for a while."""
    unproved = [each for each in left if each > 0]
    if not unproved:
        return Turn((), wave, f"wave {wave} of {waves} waits until its nodes are ready")
    return Turn((), wave, f"wave {wave} of {waves} is watched", min(unproved))


def _left(rollout: Rollout, pod: Pod, now: datetime) -> float:
    """Seconds until it has run for long enough."""
    containers = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    began = [each.state.running.started_at for each in containers if each.state.running]
    return rollout.pause_seconds - (now - max(began)).total_seconds() if began else float(rollout.pause_seconds)
