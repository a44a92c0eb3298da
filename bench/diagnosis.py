"""Accuracy of `pin why`: on every fault of the catalogue, and on as many healthy and busy states."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.busybox import IMAGE, write_image

from bench.fault_catalogue import (
    Outcome,
    fault_cases,
    healthy_states,
    open_target_cluster,
    run_faults,
    run_healthy_states,
)
from bench.figures import PIN, Figure, run_command
from bench.outside_interference import edited_with_kubectl, name_taken, quota_used_by_neighbour
from pincompute.base.settings import setting_value

NAME = "bench-diagnosis"
_NODES = "20"


def figures() -> Iterator[Figure]:
    """Shares of faults that are detected, of detected ones that the proposed command fixes, and of false alarms."""
    run_command(PIN, "up", "--name", NAME, "--nodes", _NODES, "--with", "kubeflow")
    try:
        real = bool(json.loads(run_command(PIN, "status", "--name", NAME, "-o", "json"))["nodes"]["real"])
        if real:
            _load_image()
        faults, healthy = asyncio.run(_run_catalogue(real=real))
    finally:
        run_command(PIN, "down", "--name", NAME, "--purge")
    for outcome in (*faults, *healthy):
        if not (outcome.detected and outcome.cured):
            print(outcome, flush=True)
    detected = [each.detected for each in faults]
    fixed = [each.cured for each in faults if each.detected]
    alarms = [not each.detected for each in healthy]
    yield _share(
        "U6.1", f"of {len(detected)} faults, share whose cause pin why names first", detected, 0.95, at_least=True
    )
    yield _share(
        "U6.2", f"of {len(fixed)} detected faults, share fixed by the proposed command", fixed, 0.75, at_least=True
    )
    yield _share("U6.3", f"of {len(alarms)} healthy and busy states, share of false alarms", alarms, 0.05)


def _share(id_: str, what: str, found: list[bool], bar: float, *, at_least: bool = False) -> Figure:
    return Figure(id_, what, [sum(found) / len(found)], bar, "of 1", higher_is_better=at_least)


async def _run_catalogue(*, real: bool) -> tuple[list[Outcome], list[Outcome]]:
    """Runs simulated and real cases one after the other, because they would slow each other down."""
    faults: list[Outcome] = []
    healthy: list[Outcome] = []
    for runs in (False, True) if real else (False,):
        async with open_target_cluster(Path(setting_value("state")), NAME, real=runs) as cluster:
            faults += await run_faults(cluster, fault_cases(real=runs, all_=True))
            healthy += await run_healthy_states(cluster, healthy_states(real=runs, all_=True))
            if not runs:
                faults += [await quota_used_by_neighbour(cluster), await name_taken(cluster)]
                healthy.append(await edited_with_kubectl(cluster))
    return faults, healthy


def _load_image() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "busybox.tar"
        write_image(file)
        run_command(PIN, "image", "load", str(file), "--as", IMAGE, "--name", NAME)
