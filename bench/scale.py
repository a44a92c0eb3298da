"""Scale: 1,000 simulated nodes and 5,000 pods, through the desk, the operator and the real scheduler."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import PIN, Figure, run_command

NAME = "bench-size"
NODES = 1000
SERVICES = 10
REPLICAS = 500


def figures() -> Iterator[Figure]:
    run_command(PIN, "down", "--name", NAME, "--purge", check=False)
    output = run_command(PIN, "up", "--name", NAME, "--simulated", "--nodes", str(NODES))
    ready = float(re.search(r"nodes ready in (\d+\.?\d*) s", output)[1])  # type: ignore[index]
    yield Figure("scale.nodes", f"{NODES} nodes ready, from nothing running", [ready])
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(SERVICES):
            _submit(Path(folder) / f"s{number}.yaml", f"s{number}")
    while not all(each.get("done") for each in _workloads()):
        time.sleep(0.5)
    took = time.perf_counter() - began
    pods = SERVICES * REPLICAS
    yield Figure("scale.pods", f"{pods} pods of {SERVICES} services running, per second", [pods / took], unit="pods/s")
    run_command(PIN, "down", "--name", NAME, "--purge")


def _submit(file: Path, name: str) -> None:
    file.write_text(
        "apiVersion: pinterest.com/v1\nkind: PinterestService\n"
        f"metadata: {{name: {name}}}\nspec: {{image: 'none:1', port: 80, replicas: {REPLICAS}}}\n"
    )
    run_command(PIN, "deploy", str(file), "--no-wait", "--name", NAME)


def _workloads() -> list[dict[str, bool]]:
    found: list[dict[str, bool]] = json.loads(run_command(PIN, "get", "-o", "json", "--name", NAME))
    return found
