"""The plan of a roll over 10,000 workloads, on one core."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from scripts import fleet

from bench.figures import Figure, timed
from pincompute.api.kinds import KINDS
from pincompute.planning.people.preview import LAPTOP
from pincompute.planning.runtimes.roll import plan_roll
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Snapshot

WORKLOADS = 10_000
RUNS = 3
NOW = datetime(2026, 1, 31, tzinfo=UTC)


def figures() -> Iterator[Figure]:
    runtimes = Runtimes.of([_noun(each) for each in fleet.runtimes()]).finished(42)
    snapshots = [Snapshot(_noun(each), (), (), LAPTOP, NOW, None, runtimes) for each in fleet.workloads(WORKLOADS)]
    times = [timed(lambda: plan_roll(43, runtimes, snapshots)) for _ in range(RUNS)]
    yield Figure("roll.plan", f"the plan of a roll over {WORKLOADS:,} workloads", times, 10)


def _noun(document: dict[str, Any]) -> Any:
    metadata = document["metadata"]
    held = {**document, "metadata": {"namespace": metadata.get("project", ""), **metadata}}
    return msgspec.convert(held, KINDS[document["kind"]])
