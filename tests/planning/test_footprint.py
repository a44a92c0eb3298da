"""Quota footprint: all pods that a workload may have at the same time, with injected sidecars."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pincompute.api.cron_job import CronJobStatus
from pincompute.api.documents import read_document
from pincompute.api.kinds import WORKLOADS
from pincompute.api.validation import parse_resource
from pincompute.planning.footprint import (
    COUNTED_RESOURCES,
    Footprint,
    ObservedCounts,
    current_footprint,
    footprint_of,
    largest_footprint,
    rollout_surge,
)
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER, as_first_generation, converged_plan
from snapshot_strategies import plan_snapshot, snapshots

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


def parse_one(text: str) -> Any:
    return as_first_generation(parse_resource(read_document(text), "ads"))


def used_by(kind: str, runtimes: Runtimes = Runtimes(), nodes: int = 1, **spec: Any) -> Footprint:  # noqa: B008
    document = {
        "apiVersion": "pinterest.com/v1",
        "kind": f"Pinterest{kind}",
        "metadata": {"name": "web"},
        "spec": {"image": "web:1", **spec},
    }
    snapshot = Snapshot(parse_one(yaml.safe_dump(document)), (), (), LOCAL_CLUSTER, NOW, None, runtimes)
    return footprint_of(converged_plan(snapshot), ObservedCounts(nodes))


def amounts(found: Footprint) -> tuple[str, int, int, int, int]:
    return found[:5]


@pytest.mark.parametrize(
    ("footprint", "expected"),
    [
        (used_by("Service", port=80, replicas=4, cpu="1", rollout={"surge": 1}), ("on-demand", 5000, 640 * Mi, 0, 5)),
        (used_by("Service", port=80, replicas=4, rollout={"surge": "30%"}), ("on-demand", 600, 768 * Mi, 0, 6)),
        (used_by("Service", port=80, replicas=0, rollout={"surge": 2}), ("on-demand", 0, 0, 0, 0)),
        (used_by("Service", port=80, tier="reserved", gpus=2, rollout=NO_SURGE), ("reserved", 100, 128 * Mi, 2, 1)),
        (used_by("JobSet", tasks=100, parallelism=8, cpu=2), ("on-demand", 16000, 1024 * Mi, 0, 8)),
        (used_by("JobSet", tasks=5, tier="preemptible"), ("preemptible", 500, 640 * Mi, 0, 5)),
        (used_by("CronJob", schedule="* * * * *", memory="1Gi"), ("on-demand", 100, 1024 * Mi, 0, 1)),
        (used_by("CronJob", schedule="*/5 * * * *", deadlineSeconds=3600), ("on-demand", 100, 128 * Mi, 0, 1)),
        (used_by("CronJob", schedule="*/5 * * * *", overlap="allow"), ("on-demand", 100, 128 * Mi, 0, 1)),
        (
            used_by("CronJob", schedule="*/5 * * * *", overlap="allow", deadlineSeconds=3600),
            ("on-demand", 1300, 13 * 128 * Mi, 0, 13),
        ),
        (
            used_by("CronJob", schedule="0,2 3 * * mon", overlap="allow", deadlineSeconds=100),
            ("on-demand", 200, 256 * Mi, 0, 2),
        ),
        (used_by("StatefulSet", port=80, replicas=3), ("on-demand", 300, 384 * Mi, 0, 3)),
        (used_by("Daemon", nodes=7), ("infrastructure", 700, 896 * Mi, 0, 7)),
    ],
)  # fmt: skip
def test_counts_all_pods_that_may_exist_at_once(footprint: Footprint, expected: tuple[object, ...]) -> None:
    assert amounts(footprint) == expected
    assert footprint.bytes > 0


@pytest.mark.parametrize(("replicas", "surge", "more"), [(4, "30%", 2), (4, 1, 1), (4, 0, 0), (0, 2, 0)])
def test_surge_is_the_part_of_the_pods_that_only_a_rollout_needs(replicas: int, surge: int | str, more: int) -> None:
    rollout = {"surge": surge, "unavailable": 1}
    spec = {"image": "web:1", "port": 80, "replicas": replicas, "rollout": rollout}
    document = {"apiVersion": "pinterest.com/v1", "kind": "PinterestService", "metadata": {"name": "web"}, "spec": spec}
    plan = converged_plan(Snapshot(parse_one(yaml.safe_dump(document)), (), (), LOCAL_CLUSTER, NOW))
    assert rollout_surge(plan) == more == footprint_of(plan).pods - replicas


@pytest.mark.parametrize(("overlap", "expected"), [("allow", 4), ("forbid", 3), ("replace", 3)])
def test_counts_active_runs_of_a_periodic_job(overlap: str, expected: int) -> None:
    spec = {"image": "web:1", "schedule": "0 * * * *", "overlap": overlap}
    document = {"apiVersion": "pinterest.com/v1", "kind": "PinterestCronJob", "metadata": {"name": "web"}, "spec": spec}
    owner = parse_one(yaml.safe_dump(document))
    owner = msgspec.structs.replace(owner, status=CronJobStatus(running=["web-1", "web-2", "web-3"]))
    assert current_footprint(Snapshot(owner, (), (), LOCAL_CLUSTER, NOW)).pods == expected


def test_counts_injected_sidecars() -> None:
    runtimes = Runtimes.from_resources([parse_one(SIDECAR), parse_one(RUNTIME)])
    assert amounts(used_by("Service", runtimes, port=80, rollout=NO_SURGE)) == ("on-demand", 150, 192 * Mi, 0, 1)


def test_counts_init_container_that_requests_more_than_all_others() -> None:
    before = {"name": "fill", "image": "fill:1", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "32Mi"}}}
    template = {"spec": {"initContainers": [before]}}
    found = used_by("Service", port=80, template=template, rollout=NO_SURGE)
    assert amounts(found) == ("on-demand", 1000, 128 * Mi, 0, 1)


@pytest.mark.parametrize("kind", sorted(WORKLOADS))
@given(data=st.data())
def test_footprint_of_any_snapshot_is_consistent(kind: str, data: st.DataObject) -> None:
    """No amount is negative, and a footprint with pods has a tier."""
    found = footprint_of(plan_snapshot(data.draw(snapshots(kind))))
    assert min(found[1:]) >= 0
    assert bool(found.tier) or found.pods == 0


def test_largest_footprint_takes_the_maximum_of_each_resource() -> None:
    several = [Footprint("reserved", 1, 20, 3, 4, 50), Footprint("reserved", 10, 2, 3, 4, 5)]
    assert largest_footprint(several) == Footprint("reserved", 10, 20, 3, 4, 50)
    assert largest_footprint([]) == Footprint()
    assert Footprint._fields[1:] == COUNTED_RESOURCES
