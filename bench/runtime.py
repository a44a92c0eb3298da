"""A runtime rolled over 100 workloads on simulated nodes: how long it takes, what stays where it is, what breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from scripts.roll import Figures, measure

from bench.figures import PIN, Figure, run
from pincompute.base.settings import setting
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load

NAME = "bench-runtime"
WORKLOADS = 100
ROLLS = 3


def figures() -> Iterator[Figure]:
    run(PIN, "up", "--name", NAME, "--simulated", "--nodes", "30", "--no-runtime")
    try:
        found = asyncio.run(_measured())
    finally:
        run(PIN, "down", "--name", NAME, "--purge")
    rolled = f"a runtime rolled over {found.pods} pods of {found.workloads} workloads"
    yield Figure("U7.1", f"{rolled}, to the last of them patched", found.rolls, found.allowed)
    yield Figure("U7.2", "of them, patched where they are", [found.in_place], 0.9, "of 1", at_least=True)
    yield Figure("U7.3", "budgets broken, also by a runtime that fails", [len(found.broken)], 0, "")
    yield Figure("roll.back", f"a failing one taken back, after {found.stopped_after} workloads", [found.back])


async def _measured() -> Figures:
    kubeconfig = Path(setting("state")) / NAME / "kubeconfig"
    async with Client(load(kubeconfig), agent="bench") as client:
        return await measure(client, WORKLOADS, ROLLS)
