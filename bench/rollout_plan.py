"""Plan of a runtime rollout over 10,000 workloads, on one core."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from scripts import generate_fleet

from bench.figures import Figure, measure_seconds
from pincompute.api.kinds import KINDS
from pincompute.planning.runtimes.roll_preview import plan_roll
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER

WORKLOADS = 10_000
RUNS = 3
NOW = datetime(2026, 1, 31, tzinfo=UTC)


def figures() -> Iterator[Figure]:
    runtimes = Runtimes.from_resources([_to_resource(each) for each in generate_fleet.runtimes()]).after_roll(42)
    snapshots = [
        Snapshot(_to_resource(each), (), (), LOCAL_CLUSTER, NOW, None, runtimes)
        for each in generate_fleet.workloads(WORKLOADS)
    ]
    times = [measure_seconds(lambda: plan_roll(43, runtimes, snapshots)) for _ in range(RUNS)]
    yield Figure("roll.plan", f"plan of a runtime rollout over {WORKLOADS:,} workloads", times, 10)


def _to_resource(document: dict[str, Any]) -> Any:
    metadata = document["metadata"]
    stored = {**document, "metadata": {"namespace": metadata.get("project", ""), **metadata}}
    return msgspec.convert(stored, KINDS[document["kind"]])
