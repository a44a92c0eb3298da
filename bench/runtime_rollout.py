"""Runtime rollouts over 100 workloads on simulated nodes: duration, in-place updates, disruption budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from scripts.measure_rollout import RolloutFigures, measure_rollouts

from bench.figures import PIN, Figure, run_command
from pincompute.base.settings import setting_value
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig

NAME = "bench-runtime"
WORKLOADS = 100
ROLLS = 3


def figures() -> Iterator[Figure]:
    run_command(PIN, "up", "--name", NAME, "--simulated", "--nodes", "30", "--no-runtime")
    try:
        found = asyncio.run(_measured())
    finally:
        run_command(PIN, "down", "--name", NAME, "--purge")
    rollout = f"runtime rollout over {found.pods} pods of {found.workloads} workloads"
    yield Figure("U7.1", f"{rollout}, until the last one is patched", found.rolls, found.allowed)
    yield Figure(
        "U7.2", "the same: share of pods updated in place", [found.in_place], 0.9, "of 1", higher_is_better=True
    )
    yield Figure("U7.3", "disruption budgets violated, also by a failing runtime", [len(found.broken)], 0, "")
    yield Figure("roll.back", f"rollback of a failing runtime, after {found.stopped_after} workloads", [found.back])


async def _measured() -> RolloutFigures:
    kubeconfig = Path(setting_value("state")) / NAME / "kubeconfig"
    async with Client(load_kubeconfig(kubeconfig), agent="bench") as client:
        return await measure_rollouts(client, WORKLOADS, ROLLS)
