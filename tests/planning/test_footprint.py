"""Quota footprint: all pods that a workload may have at the same time, with injected sidecars."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, strategies as st

from pincompute.api.cron_job import CronJobStatus
from pincompute.api.documents import read_document
from pincompute.api.job_set_status import AttemptStatus, JobSetStatus
from pincompute.api.kinds import WORKLOADS
from pincompute.api.project import Quota
from pincompute.api.status import Condition
from pincompute.api.validation import parse_resource
from pincompute.controller.resources import WORKLOAD_NATIVES
from pincompute.planning.footprint import (
    COUNTED_RESOURCES,
    Footprint,
    ObservedCounts,
    current_footprint,
    footprint_of,
    has_ended,
    largest_footprint,
    rollout_surge,
)
from pincompute.planning.object_quota import OBJECT_RESOURCES, RESOURCE_OF_TYPE, object_limits, object_quota
from pincompute.planning.revision import MAX_REVISIONS
from pincompute.planning.revision_number import expected_revision
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
PLAIN_SERVICE = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: web}
spec: {image: "web:1", port: 80}
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


CLAIM = {"size": "1Gi", "path": "/data"}


def objects(found: Footprint) -> dict[str, int]:
    return {name: getattr(found, name) for name in OBJECT_RESOURCES if getattr(found, name)}


@pytest.mark.parametrize(
    ("footprint", "expected"),
    [
        (used_by("Service", port=80), {"services": 1, "ingresses": 1}),
        (used_by("Service", port=80, configuration={"a": "b"}), {"services": 1, "ingresses": 1, "config_maps": 2}),
        (
            used_by("StatefulSet", port=80, replicas=3, storage="1Gi"),
            {"services": 1, "claims": 3, "storage": 3 * 1024 * Mi},
        ),
        (used_by("JobSet", tasks=100, parallelism=8), {"jobs": 1}),
        (
            used_by("JobSet", tasks=5, parallelism=2, claims=[{"name": "out", **CLAIM}]),
            {"jobs": 1, "claims": 2, "storage": 2 * 1024 * Mi},
        ),
        (
            used_by("JobSet", tasks=5, parallelism=2, claims=[{"name": "out", "retained": True, **CLAIM}]),
            # The number of the task is in a file.
            {"jobs": 5, "claims": 5, "storage": 5 * 1024 * Mi, "config_maps": 2},
        ),
        (used_by("CronJob", schedule="* * * * *", keep={"succeeded": 3, "failed": 2}), {"cron_jobs": 1, "jobs": 6}),
        (used_by("Daemon", nodes=7), {}),
    ],
)
def test_counts_objects_and_storage(footprint: Footprint, expected: dict[str, int]) -> None:
    own = {"config_maps": 1, "service_accounts": 1}
    assert objects(footprint) == {**own, **expected}


@pytest.mark.parametrize(
    "ephemeral",
    [
        None,
        {},
        "x",
        {"volumeClaimTemplate": 1},
        {"volumeClaimTemplate": {"spec": {}}},
        *(
            {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": size}}}}}
            for size in ("lots", "-5Gi", [1], {"a": 1}, None)
        ),
    ],
)
def test_invalid_volume_of_a_template_holds_no_storage(ephemeral: Any) -> None:
    """Otherwise one workload that was written past the desk would stop the ledger of all projects."""
    template = {"spec": {"volumes": [{"name": "a", "ephemeral": ephemeral}]}}
    assert used_by("Service", port=80, template=template).storage == 0


def test_counts_the_storage_of_ephemeral_volumes_for_each_pod() -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}}
    template = {"spec": {"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": claim}}]}}
    found = used_by("Service", port=80, replicas=2, rollout={"surge": 1}, template=template)
    assert (found.claims, found.storage) == (3, 3 * 5 * 1024 * Mi)


def test_counts_the_records_of_former_revisions() -> None:
    """A change of the content adds one, up to the number that is retained; a scale adds none."""
    before = parse_one(PLAIN_SERVICE)
    record = converged_plan(Snapshot(before, (), (), LOCAL_CLUSTER, NOW))
    content = expected_revision(before).content
    for revision, recorded, count in ((0, "", 1), (3, content, 3), (3, "other", 4), (40, "other", MAX_REVISIONS)):
        observed = ObservedCounts(revision=revision, content=recorded)
        assert footprint_of(record, observed).config_maps == count


def test_finished_work_holds_its_objects_only() -> None:
    document = PLAIN_SERVICE.replace("Service", "JobSet").replace("port: 80", "tasks: 5")
    owner = parse_one(document)
    done = Condition("Succeeded", "True", "Succeeded", "", NOW.isoformat(), observed_generation=1)
    attempt = AttemptStatus(1, tasks="0-4", ended="2026-01-31T11:59:00+00:00")
    status = JobSetStatus(
        observed_generation=1,
        revision=1,
        content=expected_revision(owner).content,
        conditions=[done],
        attempts=[attempt],
    )
    ended = msgspec.structs.replace(owner, status=status)
    assert has_ended(ended)
    found = current_footprint(Snapshot(ended, (), (), LOCAL_CLUSTER, NOW))
    assert (found.tier, found.pods, found.cpu, found.bytes) == ("", 0, 0, 0)
    assert objects(found) == {"jobs": 1, "config_maps": 1, "service_accounts": 1}


def test_every_object_that_a_project_limits_is_counted() -> None:
    limited = {name.removeprefix("count/") for name in object_quota(Quota(storage="1Gi"))}
    # No workload becomes a Secret.
    assert limited - {"secrets", "requests.storage"} == RESOURCE_OF_TYPE.keys()
    assert {each.plural for each in WORKLOAD_NATIVES.values()} >= {name.partition(".")[0] for name in RESOURCE_OF_TYPE}
    assert [resource for resource, _ in object_limits(Quota(storage="1Gi"))] == list(OBJECT_RESOURCES)


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
