"""Training jobs against Kubeflow's own definitions on a real API server, and the rules of their plan."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from control_plane import ControlPlane
from kubeflow_cluster import kubeflow_cluster
from pincompute.api.documents import read_documents
from pincompute.api.names import ENGINE, GANG_GATE, OPERATOR
from pincompute.api.structs import Metadata
from pincompute.api.training_job import PinterestTrainingJob, TrainingJobSpec
from pincompute.api.validation import parse_resource
from pincompute.base.problem import Refused
from pincompute.controller.apply import apply_step
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import CONFIG_MAPS, PODS, PYTORCH_JOBS, SERVICE_ACCOUNTS, TF_JOBS
from pincompute.objects.content import Object
from pincompute.planning.kinds.training_job import MUTABLE_FIELDS, plan
from pincompute.planning.observed_pods import OwnedMetadata, Pod, PodSpec, PodStatus, SchedulingGate
from pincompute.planning.snapshot import Cluster, Native, Snapshot
from pincompute.planning.steps import Ungate
from pincompute.planning.training.gang import Gang, GangMember, awaited_members, ungate_steps
from pincompute.planning.training.retries import count_failures
from pincompute.planning.views.plan_preview import LOCAL_CLUSTER
from workloads import new_project

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("examples/**/training-job*.yaml"))
RESOURCES = {each.kind: each for each in (CONFIG_MAPS, SERVICE_ACCOUNTS, PYTORCH_JOBS, TF_JOBS)}
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def plan_wanted(owner: PinterestTrainingJob) -> tuple[Object, ...]:
    return plan(Snapshot(owner, (), (), LOCAL_CLUSTER, NOW)).wanted


def wanted_of_example(file: Path, project: str) -> tuple[Object, ...]:
    (document,) = read_documents(file.read_text(), file.name)
    owner: Any = parse_resource(document, project)
    metadata = msgspec.structs.replace(owner.metadata, uid="00000000-0000-0000-0000-000000000001", generation=1)
    return plan_wanted(msgspec.structs.replace(owner, metadata=metadata))


async def check_strictly(client: Client, native: Object) -> None:
    """Dry-run a create and an apply, which validate differently."""
    resource, project = RESOURCES[native["kind"]], native["metadata"]["namespace"]
    query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": OPERATOR}
    body = msgspec.json.encode(native)
    await client.raw("POST", resource.path(project), query=query, body=body)
    path = resource.path(project, native["metadata"]["name"])
    await client.raw("PATCH", path, query=query, body=body, content="application/apply-patch+yaml")


@pytest.mark.cluster
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
async def test_kubeflow_accepts_all_fields(plane: ControlPlane, file: Path) -> None:
    async with kubeflow_cluster(plane) as client:
        project = await new_project(client)
        for native in wanted_of_example(file, project):
            await check_strictly(client, native)


@pytest.mark.cluster
async def test_fields_listed_as_unsupported_are_dropped(plane: ControlPlane) -> None:
    async with kubeflow_cluster(plane) as client:
        project = await new_project(client)
        job = next(each for each in wanted_of_example(EXAMPLES[0], project) if each["kind"] == "PyTorchJob")
        spec = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
        spec["schedulingGroup"] = {"podGroupName": "a"}
        path = PYTORCH_JOBS.path(project)
        response = await client.raw("POST", path, query={"dryRun": "All"}, body=msgspec.json.encode(job))
        assert b"schedulingGroup" not in response
        assert GANG_GATE.encode() in response
        with pytest.raises(Refused, match="schedulingGroup"):
            await check_strictly(client, job)


@pytest.mark.cluster
async def test_ungates_only_the_pod_with_the_uid_and_keeps_other_gates(plane: ControlPlane) -> None:
    async with kubeflow_cluster(plane) as client:
        project = await new_project(client)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "ranking-worker-0", "namespace": project},
            "spec": {
                "containers": [{"name": "pytorch", "image": "a:1"}],
                "schedulingGates": [{"name": "example.com/data"}, {"name": GANG_GATE}],
            },
        }
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": project}}
        await client.apply(account, SERVICE_ACCOUNTS, manager=ENGINE)
        created = await client.create(PODS, pod, manager=ENGINE)
        wrong_uid = Ungate("ranking-worker-0", "00000000-0000-0000-0000-000000000000")
        await apply_step(client, project, wrong_uid)
        assert len((await client.get(PODS, "ranking-worker-0", project))["spec"]["schedulingGates"]) == 2
        await apply_step(client, project, Ungate("ranking-worker-0", created["metadata"]["uid"], ("example.com/data",)))
        found = await client.get(PODS, "ranking-worker-0", project)
        assert found["spec"]["schedulingGates"] == [{"name": "example.com/data"}]
        await apply_step(client, project, Ungate("ranking-worker-0", created["metadata"]["uid"]))
        assert not (await client.get(PODS, "ranking-worker-0", project))["spec"].get("schedulingGates")
        await client.delete(PODS, "ranking-worker-0", project)
        with pytest.raises(NotFound):
            await client.get(PODS, "ranking-worker-0", project)
        await apply_step(client, project, wrong_uid)


def training(**spec: Any) -> PinterestTrainingJob:
    converted = msgspec.convert({"image": "a:1", "workers": 2, **spec}, TrainingJobSpec)
    return PinterestTrainingJob(metadata=Metadata(name="a", namespace="me", uid="u", generation=1), spec=converted)


def immutable_hash(**spec: Any) -> str:
    (job,) = (each for each in plan_wanted(training(**spec)) if each["apiVersion"] == "kubeflow.org/v1")
    return str(job["metadata"]["annotations"]["pinterest.com/fixed"])


CHANGES: dict[str, Any] = {
    "suspended": "ann",
    # Of an earlier attempt: a cancelled one has no job before it begins.
    "cancelled": {"attempt": 1, "by": "ann"},
    "retries": 9,
    "deadline_seconds": 60,
    "success": "leader",
    "clean_up": "all",
    "keep_seconds": 60,
    "owner": "team-ads",
    "hold": {"runtime": 1, "until": "2027-01-01"},
    "build": "1.4.0",
    "break_glass": {"until": "2027-01-01T04:00:00Z", "by": "ann", "because": "INC-4711"},
    "expires": "30d",
}


@pytest.mark.parametrize("field", MUTABLE_FIELDS)
def test_mutable_fields_keep_the_job(field: str) -> None:
    name = next(each.encode_name for each in msgspec.structs.fields(TrainingJobSpec) if each.name == field)
    assert immutable_hash(attempt=2, **{name: CHANGES[field]}) == immutable_hash(attempt=2)


@pytest.mark.parametrize("change", [{"attempt": 2}, {"workers": 3}, {"script": "a"}, {"gang": False}, {"gpus": 1}])
def test_other_fields_replace_the_job(change: dict[str, Any]) -> None:
    assert immutable_hash(**change) != immutable_hash()


def member(role: str, index: int, phase: str = "Pending", *, gated: bool = True) -> GangMember:
    pod = Pod(
        metadata=OwnedMetadata(name=f"a-{role}-{index}", uid=f"{role}{index}"),
        spec=PodSpec(scheduling_gates=(SchedulingGate(name=GANG_GATE),) if gated else ()),
        status=PodStatus(phase=phase),
    )
    return GangMember((role, index), pod)


REPLICAS = (("master", 0), ("worker", 0), ("worker", 1))


@pytest.mark.parametrize(
    ("members", "started"),
    [
        ((), []),
        ((member("master", 0), member("worker", 0)), []),
        (
            (member("master", 0), member("worker", 0), member("worker", 1)),
            ["a-master-0", "a-worker-0", "a-worker-1"],
        ),
        ((member("master", 0), member("worker", 0), member("worker", 1, "Failed")), []),
        (
            (
                member("master", 0, "Succeeded", gated=False),
                member("worker", 0, "Running", gated=False),
                member("worker", 1),
            ),
            ["a-worker-1"],
        ),
    ],
    ids=["none", "one-missing", "complete", "one-failed", "one-recreated"],
)
def test_ungates_all_or_none(members: tuple[GangMember, ...], started: list[str]) -> None:
    assert [each.pod for each in ungate_steps(Gang(REPLICAS, members))] == started


def failing_pod(*, containers: list[Object], **status: Any) -> Pod:
    reference = {"uid": "job-1", "controller": True}
    metadata = {"name": "ranking-worker-0", "uid": "worker-0", "ownerReferences": [reference]}
    built = {"metadata": metadata, "status": {"phase": "Running", "containerStatuses": containers, **status}}
    return msgspec.convert(built, Pod)


def failures_of(*pods: Pod, recorded: dict[str, int] | None = None) -> dict[str, int]:
    owner = training()
    owner = msgspec.structs.replace(owner, status=msgspec.structs.replace(owner.status, failures=recorded or {}))
    job = msgspec.convert({"kind": "PyTorchJob", "metadata": {"name": "ranking", "uid": "job-1"}}, Native)
    return count_failures(Snapshot(owner, (job,), pods, LOCAL_CLUSTER, NOW), job)


RUNNING = {"running": {"startedAt": "2026-01-31T11:59:10Z"}}
FAILED_END = {"terminated": {"exitCode": 1}}
BACKOFF = {"waiting": {"reason": "CrashLoopBackOff"}}
INITIALIZED = [{"type": "Initialized", "status": "True"}]
DISRUPTED = [{"type": "DisruptionTarget", "status": "True"}]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"containers": [{"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}]}, {}),
        ({"containers": [{"name": "a", "restartCount": 2, "state": RUNNING}]}, {"worker-0": 2}),
        ({"containers": [{"name": "a", "restartCount": 2, "state": FAILED_END}]}, {"worker-0": 3}),
        (
            {"containers": [{"name": "a", "restartCount": 2, "state": BACKOFF, "lastState": FAILED_END}]},
            {"worker-0": 3},
        ),
        ({"containers": [{"name": "a", "state": {"terminated": {"exitCode": 0}}}]}, {}),
        ({"containers": [{"name": "a", "restartCount": 2, "state": FAILED_END}], "conditions": DISRUPTED}, {}),
        ({"containers": [], "initContainerStatuses": [{"name": "get", "restartCount": 2}]}, {"worker-0": 2}),
        (
            {
                "containers": [],
                "initContainerStatuses": [{"name": "logs", "restartCount": 2}],
                "conditions": INITIALIZED,
            },
            {},
        ),
    ],
    ids=["starting", "restarted", "failed", "backoff", "succeeded", "disrupted", "init-container", "sidecar"],
)
def test_counts_failed_runs_of_a_pod(status: dict[str, Any], expected: dict[str, int]) -> None:
    assert failures_of(failing_pod(**status)) == expected


def test_failures_of_deleted_pods_stay_counted() -> None:
    pod = failing_pod(containers=[{"name": "a", "state": FAILED_END}])
    assert failures_of(pod, recorded={"worker-of-before": 2}) == {"worker-of-before": 2, "worker-0": 1}
    assert failures_of(recorded={"worker-0": 3}) == {"worker-0": 3}


def test_parameter_servers_are_not_awaited() -> None:
    spec = msgspec.convert({"framework": "tensorflow", "roles": {"ps": {}}, "workers": 1}, TrainingJobSpec)
    gang = Gang((("chief", 0), ("worker", 0), ("ps", 0)), (member("ps", 0),))
    assert awaited_members(spec, gang) == Gang((("chief", 0), ("worker", 0)), ())


def test_short_example_has_at_most_12_lines() -> None:
    lines = (ROOT / "examples" / "training-job.yaml").read_text().splitlines()
    assert len(lines) <= 12
    assert yaml.safe_load("\n".join(lines))["kind"] == "PinterestTrainingJob"


def test_cluster_lists_served_kinds_or_none() -> None:
    facts = {"name": "main", "domain": "localhost", "port": "8080", "nodes": "real"}
    assert Cluster.from_facts(facts).served_kinds is None
    assert Cluster.from_facts({**facts, "serves": "PyTorchJob TFJob"}).served_kinds == ("PyTorchJob", "TFJob")
