"""Chooses the daemon pods to replace next: wave by wave, within the limit of unavailable nodes.

In: the pods of the newest revision and those of former revisions, and the number of nodes. Out: the pods to replace
now, the number of the wave, and what it waits for. Progress is not stored anywhere: it follows from how many nodes
still run a former revision. A node that joins gets the newest revision at once and counts as updated. A wave is
complete when its share of nodes has been ready for the pause; only then the next one starts, so that a revision that
fails reaches no more nodes than its wave has.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import ceil
from typing import NamedTuple

from pincompute.api.daemon import Rollout
from pincompute.objects.content import content_hash
from pincompute.objects.number_sets import scaled_value
from pincompute.planning.observed_pods import Pod


class DaemonWave(NamedTuple):
    """Pods to replace now, or the reason to wait."""

    pods_to_replace: tuple[Pod, ...] = ()
    number: int = 0
    """Number of the wave, counted from 1; 0 if all nodes have the newest revision."""
    waits_for: str = ""
    recheck_after_s: float | None = None


def next_daemon_wave(
    rollout: Rollout, nodes: int, current: tuple[Pod, ...], former: tuple[Pod, ...], now: datetime
) -> DaemonWave:
    """Choose the next pods. `nodes` is the number of nodes that should run the daemon."""
    if not former:
        return DaemonWave()
    pauses_s = [_pause_left_s(rollout, each, now) for each in current if each.ready]
    proven = sum(each <= 0 for each in pauses_s)
    goals = [ceil(nodes * percent / 100) for percent in rollout.waves]
    wave = next((number for number, goal in enumerate(goals, 1) if proven < goal), len(goals))
    left_in_wave = goals[wave - 1] - (nodes - len(former))
    if left_in_wave <= 0:
        return _wait_for_wave(wave, len(goals), pauses_s)
    unavailable = nodes - sum(each.ready for each in (*current, *former))
    pods = _pods_to_replace(former, left_in_wave, max_unavailable_nodes(rollout, nodes) - unavailable)
    waits_for = "" if pods else f"{unavailable} of {nodes} nodes unavailable, which is the limit"
    return DaemonWave(pods, wave, waits_for)


def max_unavailable_nodes(rollout: Rollout, nodes: int) -> int:
    """Nodes on which the daemon may be unavailable at the same time: at least one, or no update would be possible."""
    return max(1, scaled_value(rollout.unavailable, nodes, up=True))


def _pods_to_replace(former: Iterable[Pod], limit: int, budget: int) -> tuple[Pod, ...]:
    """Choose all pods that are not ready, which costs no availability, and ready ones within the budget."""
    ordered = sorted(former, key=_wave_order)
    not_ready = [each for each in ordered if not each.ready][:limit]
    ready = [each for each in ordered if each.ready][: max(0, min(limit - len(not_ready), budget))]
    return (*not_ready, *ready)


def _wave_order(pod: Pod) -> tuple[str, str]:
    """Order by a hash of the node's name: stable, but mixed, so that a wave has nodes of every type."""
    return content_hash(pod.spec.node_name), pod.metadata.name


def _wait_for_wave(wave: int, waves: int, pauses_s: list[float]) -> DaemonWave:
    """Wait until the pods of the wave are ready, and then for the pause."""
    unproven = [each for each in pauses_s if each > 0]
    if not unproven:
        return DaemonWave((), wave, f"wave {wave} of {waves} waits for its nodes to be ready")
    return DaemonWave((), wave, f"wave {wave} of {waves} is under observation", min(unproven))


def _pause_left_s(rollout: Rollout, pod: Pod, now: datetime) -> float:
    """Seconds until the pod has been running for the pause."""
    containers = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    started_at = [each.state.running.started_at for each in containers if each.state.running]
    return (
        rollout.pause_seconds - (now - max(started_at)).total_seconds() if started_at else float(rollout.pause_seconds)
    )
