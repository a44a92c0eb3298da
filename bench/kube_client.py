"""Kubernetes client: first sync of 20,000 pods, compared with a script of a few lines."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.figures import PYTHON, ROOT, Figure, run_command

PODS = 20_000
RUNS = 5


def figures() -> Iterator[Figure]:
    with _server() as port:
        pairs = [
            (_measure("informer", port, f"ours-{number}"), _measure("dicts", port, f"theirs-{number}"))
            for number in range(RUNS)
        ]
    ours, theirs = ([pair[index] for pair in pairs] for index in (0, 1))
    assert all(each["pods"] == PODS for each in (*ours, *theirs))
    yield Figure("wire.pods", f"first sync of {PODS} pods", [PODS / each["seconds"] for each in ours], unit="pods/s")
    yield Figure(
        "wire.core", "the same, per second of processor time", [PODS / each["cpu"] for each in ours], unit="pods/s"
    )
    yield _ratio(
        "P5.json",
        "pods per second of processor time, ours : dicts by json",
        [PODS / each["cpu"] for each in ours],
        [PODS / each["cpu"] for each in theirs],
    )
    yield Figure("wire.memory", "memory per pod", [each["kept"] / PODS / 1024 for each in ours], unit="KiB")
    yield _ratio("P6.json", "memory per pod, ours : dicts by json", [each["kept"] for each in ours],
                 [each["kept"] for each in theirs])  # fmt: skip
    yield Figure("P7.1", "peak in a first sync : settled", [each["peak"] / each["settled"] for each in ours], 1.5, "x")
    yield Figure("P7.2", "peak in a relist : settled", [each["again"] / each["settled"] for each in ours], 1.5, "x")
    yield Figure(
        "wire.stall",
        "longest stall of the event loop in a first sync",
        [each["stall"] * 1e3 for each in ours],
        100,
        "ms",
    )


def _ratio(id_: str, what: str, ours: list[float], theirs: list[float]) -> Figure:
    ratios = [first / second for first, second in zip(ours, theirs, strict=True)]
    return Figure(id_, what, ratios, None, "x", statistics.median(ours), statistics.median(theirs))


def _measure(way: str, port: str, name: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(
        run_command(PYTHON, "-m", "bench.first_sync", way, port, name).splitlines()[-1]
    )
    return found


@contextmanager
def _server() -> Iterator[str]:
    command = (PYTHON, "-m", "bench.pod_list_server", str(PODS))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()
