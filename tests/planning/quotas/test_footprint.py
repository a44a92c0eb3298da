"""What a workload holds of a quota: every pod that it may have at one time, with all that runs in it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.admission import admit
from pincompute.api.documents import read_one
from pincompute.api.kinds import WORKLOADS
from pincompute.planning.people.preview import LAPTOP, first, settled
from pincompute.planning.quotas.footprint import COUNTED, Footprint, footprint, together
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Snapshot
from worlds import plan, snapshots

NO_SURGE = {"surge": 0, "unavailable": 1}
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
Mi = 1024 * 1024
SIDECAR = """\
apiVersion: pinterest.com/v1
kind: PinterestSidecar
metadata: {name: logs-1}
spec: {image: logs, cpu: 50m, memory: 64Mi}
"""
RUNTIME = 'apiVersion: pinterest.com/v1\nkind: Runtime\nmetadata: {name: "1"}\nspec: {parts: [logs-1]}\n'


def noun(text: str) -> Any:
    return first(admit(read_one(text), "ads"))


def of(kind: str, runtimes: Runtimes = Runtimes(), nodes: int = 1, **spec: Any) -> Footprint:  # noqa: B008
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": f"Pinterest{kind}",
        "metadata": {"name": "web"},
        "spec": {"image": "web:1", **spec},
    }
    snapshot = Snapshot(noun(yaml.safe_dump(document)), (), (), LAPTOP, NOW, None, runtimes)
    return footprint(settled(snapshot), nodes)


def counted(found: Footprint) -> tuple[str, int, int, int, int]:
    return found[:5]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (of("Service", port=80, replicas=4, cpu="1", rollout={"surge": 1}), ("on-demand", 5000, 640 * Mi, 0, 5)),
        (of("Service", port=80, replicas=4, rollout={"surge": "30%"}), ("on-demand", 600, 768 * Mi, 0, 6)),
        (of("Service", port=80, replicas=0, rollout={"surge": 2}), ("on-demand", 0, 0, 0, 0)),
        (of("Service", port=80, tier="reserved", gpus=2, rollout=NO_SURGE), ("reserved", 100, 128 * Mi, 2, 1)),
        (of("JobSet", tasks=100, parallelism=8, cpu=2), ("on-demand", 16000, 1024 * Mi, 0, 8)),
        (of("JobSet", tasks=5, tier="preemptible"), ("preemptible", 500, 640 * Mi, 0, 5)),
        (of("CronJob", schedule="* * * * *", memory="1Gi"), ("on-demand", 100, 1024 * Mi, 0, 1)),
        (of("StatefulSet", port=80, replicas=3), ("on-demand", 300, 384 * Mi, 0, 3)),
        (of("Daemon", nodes=7), ("infrastructure", 700, 896 * Mi, 0, 7)),
    ],
)  # fmt: skip
def test_all_pods_that_there_may_be_at_once(found: Footprint, wanted: tuple[object, ...]) -> None:
    assert counted(found) == wanted
    assert found.bytes > 0


def test_what_is_injected_counts() -> None:
    runtimes = Runtimes.of([noun(SIDECAR), noun(RUNTIME)])
    assert counted(of("Service", runtimes, port=80, rollout=NO_SURGE)) == ("on-demand", 150, 192 * Mi, 0, 1)


def test_what_runs_before_counts_where_it_needs_more_alone() -> None:
    before = {"name": "fill", "image": "fill:1", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "32Mi"}}}
    template = {"spec": {"initContainers": [before]}}
    found = of("Service", port=80, template=template, rollout=NO_SURGE)
    assert counted(found) == ("on-demand", 1000, 128 * Mi, 0, 1)


@pytest.mark.parametrize("kind", sorted(WORKLOADS))
@given(data=st.data())
def test_of_every_document_that_there_is(kind: str, data: st.DataObject) -> None:
    """It can be told, of each state; nothing is negative, and where there are pods there is a tier."""
    found = footprint(plan(data.draw(snapshots(kind))))
    assert min(found[1:]) >= 0
    assert bool(found.tier) or found.pods == 0


def test_of_several_the_most_of_each() -> None:
    several = [Footprint("reserved", 1, 20, 3, 4, 50), Footprint("reserved", 10, 2, 3, 4, 5)]
    assert together(several) == Footprint("reserved", 10, 20, 3, 4, 50)
    assert together([]) == Footprint()
    assert Footprint._fields[1:] == COUNTED
