"""A training job against Kubeflow's own definitions, on a real API server; and what its plan never does."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from control_plane import ControlPlane
from kubeflow_cluster import kubeflow_cluster
from pincompute.api.admission import admit
from pincompute.api.documents import read
from pincompute.api.names import ENGINE, GANG, OPERATOR
from pincompute.api.training_job import PinterestTrainingJob, TrainingJobSpec
from pincompute.api.wire import Metadata
from pincompute.base.problem import Refused
from pincompute.controller.act import act
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import CONFIG_MAPS, PODS, PYTORCH_JOBS, SERVICE_ACCOUNTS, TF_JOBS
from pincompute.objects.content import Object
from pincompute.planning.people.preview import LAPTOP
from pincompute.planning.snapshot import Cluster, Gate, OwnedMetadata, Placed, Pod, PodStatus, Snapshot
from pincompute.planning.steps import Ungate
from pincompute.planning.training.gang import Gang, Member, awaited, lifted
from pincompute.planning.training_job import PACE, plan
from workloads import new_project

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(ROOT.glob("examples/**/training-job*.yaml"))
RESOURCES = {each.kind: each for each in (CONFIG_MAPS, SERVICE_ACCOUNTS, PYTORCH_JOBS, TF_JOBS)}
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def planned(owner: PinterestTrainingJob) -> tuple[Object, ...]:
    return plan(Snapshot(owner, (), (), LAPTOP, NOW)).wanted


def of_example(file: Path, project: str) -> tuple[Object, ...]:
    (document,) = read(file.read_text(), file.name)
    owner: Any = admit(document, project)
    metadata = msgspec.structs.replace(owner.metadata, uid="00000000-0000-0000-0000-000000000001", generation=1)
    return planned(msgspec.structs.replace(owner, metadata=metadata))


async def refused_if_unknown(client: Client, native: Object) -> None:
    """By create and by apply, which judge differently; nothing is kept."""
    resource, project = RESOURCES[native["kind"]], native["metadata"]["namespace"]
    query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": OPERATOR}
    body = msgspec.json.encode(native)
    await client.raw("POST", resource.path(project), query=query, body=body)
    path = resource.path(project, native["metadata"]["name"])
    await client.raw("PATCH", path, query=query, body=body, content="application/apply-patch+yaml")


@pytest.mark.cluster
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
async def test_kubeflow_takes_every_field(plane: ControlPlane, file: Path) -> None:
    async with kubeflow_cluster(plane) as client:
        project = await new_project(client)
        for native in of_example(file, project):
            await refused_if_unknown(client, native)


@pytest.mark.cluster
async def test_a_field_that_we_say_is_dropped_is_dropped(plane: ControlPlane) -> None:
    async with kubeflow_cluster(plane) as client:
        project = await new_project(client)
        job = next(each for each in of_example(EXAMPLES[0], project) if each["kind"] == "PyTorchJob")
        spec = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]
        spec["schedulingGroup"] = {"podGroupName": "a"}
        path = PYTORCH_JOBS.path(project)
        answer = await client.raw("POST", path, query={"dryRun": "All"}, body=msgspec.json.encode(job))
        assert b"schedulingGroup" not in answer
        assert GANG.encode() in answer
        with pytest.raises(Refused, match="schedulingGroup"):
            await refused_if_unknown(client, job)


@pytest.mark.cluster
async def test_a_gate_is_lifted_from_the_pod_that_was_meant_and_others_stay(plane: ControlPlane) -> None:
    async with kubeflow_cluster(plane) as client:
        project = await new_project(client)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "ranking-worker-0", "namespace": project},
            "spec": {
                "containers": [{"name": "pytorch", "image": "a:1"}],
                "schedulingGates": [{"name": "example.com/data"}, {"name": GANG}],
            },
        }
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": project}}
        await client.apply(account, SERVICE_ACCOUNTS, manager=ENGINE)
        made = await client.create(PODS, pod, manager=ENGINE)
        another = Ungate("ranking-worker-0", "00000000-0000-0000-0000-000000000000")
        await act(client, project, another)
        assert len((await client.get(PODS, "ranking-worker-0", project))["spec"]["schedulingGates"]) == 2
        await act(client, project, Ungate("ranking-worker-0", made["metadata"]["uid"], ("example.com/data",)))
        found = await client.get(PODS, "ranking-worker-0", project)
        assert found["spec"]["schedulingGates"] == [{"name": "example.com/data"}]
        await act(client, project, Ungate("ranking-worker-0", made["metadata"]["uid"]))
        assert not (await client.get(PODS, "ranking-worker-0", project))["spec"].get("schedulingGates")
        await client.delete(PODS, "ranking-worker-0", project)
        with pytest.raises(NotFound):
            await client.get(PODS, "ranking-worker-0", project)
        await act(client, project, another)


def training(**spec: Any) -> PinterestTrainingJob:
    said = msgspec.convert({"image": "a:1", "workers": 2, **spec}, TrainingJobSpec)
    return PinterestTrainingJob(metadata=Metadata(name="a", namespace="me", uid="u", generation=1), spec=said)


def fixed(**spec: Any) -> str:
    (job,) = (each for each in planned(training(**spec)) if each["apiVersion"] == "kubeflow.org/v1")
    return str(job["metadata"]["annotations"]["pinterest.com/fixed"])


CHANGES: dict[str, Any] = {
    "suspended": "ann",
    "retries": 9,
    "deadline_seconds": 60,
    "success": "leader",
    "clean_up": "all",
    "keep_seconds": 60,
    "owner": "team-ads",
    "iam_role": "reader",
    "hold": {"runtime": 1, "until": "2027-01-01"},
    "build": "1.4.0",
    "break_glass": {"until": "2027-01-01T04:00:00Z", "by": "ann", "because": "INC-4711"},
}


@pytest.mark.parametrize("field", PACE)
def test_the_pace_never_ends_what_trains(field: str) -> None:
    name = next(each.encode_name for each in msgspec.structs.fields(TrainingJobSpec) if each.name == field)
    assert fixed(**{name: CHANGES[field]}) == fixed()


@pytest.mark.parametrize("change", [{"attempt": 2}, {"workers": 3}, {"script": "a"}, {"gang": False}, {"gpus": 1}])
def test_what_runs_begins_anew_when_it_changes(change: dict[str, Any]) -> None:
    assert fixed(**change) != fixed()


def member(role: str, index: int, phase: str = "Pending", *, gated: bool = True) -> Member:
    pod = Pod(
        metadata=OwnedMetadata(name=f"a-{role}-{index}", uid=f"{role}{index}"),
        spec=Placed(scheduling_gates=[Gate(name=GANG)] if gated else []),
        status=PodStatus(phase=phase),
    )
    return Member((role, index), pod)


SEATS = (("master", 0), ("worker", 0), ("worker", 1))


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
    ids=["nobody", "one-is-missing", "all-are-there", "one-has-failed", "one-was-made-anew"],
)
def test_gates_are_lifted_from_all_or_none(members: tuple[Member, ...], started: list[str]) -> None:
    assert [each.pod for each in lifted(Gang(SEATS, members))] == started


def test_a_parameter_server_is_not_waited_for() -> None:
    spec = msgspec.convert({"framework": "tensorflow", "roles": {"ps": {}}, "workers": 1}, TrainingJobSpec)
    found = Gang((("chief", 0), ("worker", 0), ("ps", 0)), (member("ps", 0),))
    assert awaited(spec, found) == Gang((("chief", 0), ("worker", 0)), ())


def test_the_short_example_is_short() -> None:
    lines = (ROOT / "examples" / "training-job.yaml").read_text().splitlines()
    assert len(lines) <= 12
    assert yaml.safe_load("\n".join(lines))["kind"] == "PinterestTrainingJob"


def test_a_cluster_says_which_neighbours_it_has_or_nothing() -> None:
    facts = {"name": "main", "domain": "localhost", "port": "8080", "nodes": "real"}
    assert Cluster.of(facts).serves is None
    assert Cluster.of({**facts, "serves": "PyTorchJob TFJob"}).serves == ("PyTorchJob", "TFJob")
