"""The causal graph, the walk through it, and the path that it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from fault_corpus import CORPUS, FAULT_FILES, load_fault
from pincompute.base.problem import Problem
from pincompute.base.reasons import GANG_PARTIALLY_SCHEDULED, QUOTA_USED_UP, Reason, pods
from pincompute.cli.why import format_path
from pincompute.planning.diagnosis import POD_CHECKS, first_cause, other_cause
from pincompute.planning.diagnosis.graph import ROOT, VERTICES, below, depth, path_to, vertex_of
from pincompute.planning.diagnosis.path import build_path
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Snapshot

NODE_LOST = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-31T11:50:00Z"}
RUNNING = {"running": {"startedAt": "2026-01-31T11:00:00Z"}}
PULL_FAILS = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
EXITED = {"waiting": {"reason": "CrashLoopBackOff"}}


def first_problem(snapshot: Snapshot, present: tuple[Pod, ...]) -> Problem:
    problem = first_cause(snapshot, present).problem
    assert problem is not None
    return problem


def path_of(name: str) -> list[str]:
    """The path of a fault as `pin why -v` prints it."""
    snapshot, present = load_fault(CORPUS / "faults" / f"{name}.yaml")
    return format_path(build_path(snapshot, first_problem(snapshot, present))).splitlines()


def codes_of(*containers: dict[str, Any], **status: Any) -> list[str]:
    """Reasons of the first and the other cause of a service with one pod."""
    snapshot, (pod,) = load_fault(CORPUS / "faults" / "nothing-listens.yaml")
    raw = {"conditions": [{"type": "PodScheduled", "status": "True"}], "containerStatuses": list(containers), **status}
    present = (msgspec.structs.replace(pod, status=msgspec.convert(raw, type(pod.status))),)
    first = first_problem(snapshot, present)
    other = other_cause(snapshot, present, first)
    return [each.reason.code for each in (first, other) if each]


def test_every_vertex_is_reached_from_the_workload_and_needs_known_ones() -> None:
    assert below(ROOT) == VERTICES.keys() - {ROOT}
    assert all(name not in below(name) for name in VERTICES)
    assert all(depth(need) > depth(name) for name in VERTICES for need in below(name))


def test_every_reason_of_a_pod_stands_at_one_vertex() -> None:
    of_pods = [each for each in vars(pods).values() if isinstance(each, Reason)]
    assert [each.code for each in of_pods if vertex_of(each) == ROOT] == []
    listed = [reason for vertex in VERTICES.values() for reason in vertex.reasons]
    assert len(listed) == len(set(listed))


def test_path_leaves_out_what_another_way_avoids() -> None:
    assert path_to("address") == (ROOT, "address")
    assert path_to("quota")[-2:] == ("pod", "quota")
    assert {"address", "claim", "scheduler"}.isdisjoint(path_to("quota"))


def test_node_explains_the_probe_that_fails_on_it() -> None:
    unready = [{"type": "PodScheduled", "status": "True"}, {"type": "ContainersReady", "status": "True"}, NODE_LOST]
    hello = {"name": "hello", "state": RUNNING}
    assert codes_of(hello, conditions=unready, startTime="2026-01-31T11:00:00Z") == ["NodeLost"]


def test_container_is_not_explained_by_the_image_of_another() -> None:
    other = {"name": "logs", "image": "logs:1", "state": PULL_FAILS}
    hello = {"name": "hello", "restartCount": 3, "state": EXITED}
    assert codes_of(hello, other) == ["CrashLoop", "ImagePullFailed"]
    assert codes_of(hello) == ["CrashLoop"]


def test_order_of_checks_plays_no_role(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [first_cause(*load_fault(file)) for file in FAULT_FILES]
    monkeypatch.setattr("pincompute.planning.diagnosis.POD_CHECKS", POD_CHECKS[::-1])
    assert [first_cause(*load_fault(file)) for file in FAULT_FILES] == before


@pytest.mark.parametrize("file", FAULT_FILES, ids=lambda file: file.stem)
def test_path_leads_from_the_workload_to_the_cause(file: Path) -> None:
    snapshot, present = load_fault(file)
    problem = first_problem(snapshot, present)
    path = build_path(snapshot, problem)
    blocked = [each for each in path if each.blocked]
    assert path[: len(blocked)] == blocked
    assert (blocked[0].vertex, blocked[-1].vertex) == (ROOT, vertex_of(problem.reason))
    assert blocked[-1].evidence[:50] == problem.message()[:50]
    assert [each.vertex for each in blocked] == [each for each in VERTICES if each in {one.vertex for one in blocked}]
    assert {each.vertex for each in path if not each.blocked} <= below(blocked[-1].vertex)
    assert all(each.object and "None" not in each.object for each in path)


def test_path_of_a_quota_ends_at_the_quota() -> None:
    quota = (
        "quota on-demand of project me is used up (4 of 5 replicas missing): "
        "a replica needs 2 cpu, 10 of 10 used; a replica needs 128Mi memory, 1Gi of 1Gi used"
    )
    assert path_of("quota-is-used-up") == [
        "           object                     since  evidence",
        "  blocked  me/hello                          0 of 5 replicas ready",
        "  blocked  deployment hello",
        "  blocked  pods of deployment hello          not all created",
        f"  blocked  quota of deployment hello         {quota}",
    ]


def test_path_of_an_image_ends_with_what_is_well() -> None:
    image = "image helo:dev cannot be pulled: no such image: registry.pincompute/helo:dev: not found"
    assert path_of("image-not-found") == [
        "           object               since  evidence",
        "  blocked  me/hello                    0 of 1 replicas ready",
        "  blocked  pod hello-1                 Pending, not ready",
        "  blocked  container hello             waiting: ImagePullBackOff",
        f"  blocked  image helo:dev              {image}",
        "  well     placement                   the pod has a node",
        "  well     scheduler                   has acted on the pod",
        "  well     creation of the pod         created",
    ]


def test_path_masks_the_secrets_that_a_program_writes() -> None:
    (cause,) = [line for line in path_of("crashes-and-the-last-line-holds-secrets") if "last line" in line]
    assert "***" in cause
    assert len(cause) < 500


def test_path_tells_since_when() -> None:
    lines = path_of("gate-of-the-file")
    assert "  blocked  pod hello-1          2026-01-31T11:58:00Z  Pending, not ready" in lines
    assert "  well     creation of the pod  2026-01-31T11:58:00Z  created" in lines


def test_second_fault_is_the_other_cause() -> None:
    snapshot, present = load_fault(CORPUS / "faults" / "a-crash-before-a-quota.yaml")
    other = other_cause(snapshot, present, first_problem(snapshot, present))
    assert other is not None
    assert other.reason is QUOTA_USED_UP
    # Planning names a lack of capacity differently for a gang: the same cause is not reported twice.
    snapshot, present = load_fault(CORPUS / "faults" / "no-capacity.yaml")
    assert other_cause(snapshot, present, Problem(GANG_PARTIALLY_SCHEDULED, "1 of 2 replicas scheduled")) is None
