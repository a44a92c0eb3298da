"""Runtime rollouts over 100 workloads on simulated nodes, beside the ideal roller over the same pods.

Ours are measured first and the ideal ones afterwards, with a stopped operator: a drift of the machine is in the ratio.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scripts.ideal_roller import IdealRoller
from scripts.measure_rollout import RolloutFigures, measure_rollouts

from bench.figures import PIN, Figure, run_command
from pincompute.base.settings import setting_value
from pincompute.engine.home import home_of
from pincompute.engine.record import read_record
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig

NAME = "bench-runtime"
PROJECT = "me"
WORKLOADS = 100
ROLLS = 5


def figures() -> Iterator[Figure]:
    run_command(PIN, "up", "--name", NAME, "--simulated", "--nodes", "30", "--no-runtime")
    try:
        found = asyncio.run(_measured())
    finally:
        _signal_operator(signal.SIGCONT)
        run_command(PIN, "down", "--name", NAME, "--purge")
    rollout = f"runtime rollout over {found.pods} pods of {found.workloads} workloads"
    ratios = [ours / ideal for ours, ideal in zip(found.rolls, found.ideal, strict=True)]
    medians = (statistics.median(found.rolls), statistics.median(found.ideal))
    yield Figure("U7.1", f"{rollout} : ideal roller, until the last one is patched", ratios, 1.25, "x", *medians)
    yield Figure("roll", f"{rollout}, until the last one is patched", found.rolls, found.allowed)
    yield Figure("roll.ideal", "the same by the ideal roller", found.ideal)
    yield Figure(
        "U7.2", "the same: share of pods updated in place", [found.in_place], 0.9, "of 1", higher_is_better=True
    )
    yield Figure("U7.3", "disruption budgets violated, also by a failing runtime", [len(found.broken)], 0, "")
    yield Figure("roll.back", f"rollback of a failing runtime, after {found.stopped_after} workloads", [found.back])


async def _measured() -> RolloutFigures:
    kubeconfig = Path(setting_value("state")) / NAME / "kubeconfig"
    async with Client(load_kubeconfig(kubeconfig), agent="bench") as client:

        async def roll_ideally(image: str, budgets: Mapping[str, int], waves: Sequence[int]) -> None:
            # The operator would take these patches for drift.
            _signal_operator(signal.SIGSTOP)
            await IdealRoller(client, PROJECT, image).roll(budgets, waves)

        return await measure_rollouts(client, WORKLOADS, ROLLS, PROJECT, peer=roll_ideally)


def _signal_operator(number: signal.Signals) -> None:
    record = read_record(home_of(NAME, Path(setting_value("state"))))
    if record is not None and (operator := record.processes.get("operator")):
        os.kill(operator.pid, number)
