"""Numbers of nodes and quotas in the diagnosis of a pod that does not start."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import (
    CLUSTER_REFUSED,
    CRASH_LOOP,
    IMAGE_SLOW,
    NO_NODE_MATCHES,
    NODE_NOT_RESPONDING,
    POD_SETUP_SLOW,
    QUOTA_USED_UP,
    UNSCHEDULABLE,
    Actor,
    Reason,
)
from pincompute.planning.diagnosis.capacity import Node, PodRequirements
from pincompute.planning.diagnosis.evidence import Evidence, add_evidence, who_acts
from pincompute.planning.diagnosis.failed_create import refused_write_problem
from pincompute.planning.diagnosis.free_capacity import ClusterCapacity, candidate_nodes, largest_request_that_fits
from planning.diagnosis.test_explain import owner, snapshot

FORBIDDEN_FIELD = "schedulerName is not allowed in the project me. Remove it from spec.template"
TAINT = {"key": "team", "value": "ads", "effect": "NoSchedule"}


def node(name: str, cpu: str = "4", memory: str = "16Gi", *, labels: dict[str, str] | None = None, **spec: Any) -> Node:
    status = {"allocatable": {"cpu": cpu, "memory": memory}}
    metadata = {"name": name, "labels": labels or {}}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Node)


def pod(name: str = "hello-1", on: str = "", cpu: str = "1", memory: str = "1Gi", **fields: Any) -> PodRequirements:
    container = {"name": "own", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    labels = {"pinterest.com/workload": name.rpartition("-")[0], "pinterest.com/tier": fields.pop("tier", "on-demand")}
    spec = {"nodeName": on, "containers": [container], **fields}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": spec}, PodRequirements)


def explanation(pending: PodRequirements, *nodes: Node, running: tuple[PodRequirements, ...] = ()) -> str:
    problem = Problem(UNSCHEDULABLE, "no node accepts a replica", note="coarse")
    first, *more = add_evidence(
        snapshot(owner()), problem, Evidence(pending, ClusterCapacity(nodes, running))
    ).note.splitlines()
    assert first == "coarse"
    return "".join(more)


@pytest.mark.parametrize(
    ("pending", "text"),
    [
        (pod(cpu="4000"), "a replica requests 4000 cpu, the largest of 2 eligible nodes has 4 cpu"),
        (
            pod(cpu="3", memory="9Gi"),
            (
                "a replica requests 3 cpu, large has 1.5 of 4 cpu free; "
                "a replica requests 9Gi memory, large has 8Gi of 16Gi memory free"
            ),
        ),
        (pod(cpu="2"), "a replica requests 2 cpu, large has 1.5 of 4 cpu free, the most of 2 nodes"),
        (
            pod(nodeSelector={"disk": "ssd"}),
            "it requires disk=ssd, and nodes have disk=hdd",
        ),
        (pod(nodeSelector={"gpu": "big"}), "it requires gpu=big, and none of 3 nodes has the label gpu"),
        # Sidecars count, and so does an init container that requests more than all others.
        (
            pod(initContainers=[{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1500m"}}}]),
            "a replica requests 2.5 cpu, large has 1.5 of 4 cpu free",
        ),
        (
            pod(initContainers=[{"resources": {"requests": {"cpu": "3"}}}]),
            "a replica requests 3 cpu, large has 1.5 of 4 cpu free",
        ),
        # It would fit: the scheduler considers more than these numbers.
        (pod(), ""),
    ],
)
def test_explains_with_the_numbers_of_the_nodes(pending: PodRequirements, text: str) -> None:
    nodes = (node("large"), node("small", "2", "8Gi"), node("ads", labels={"disk": "hdd"}, taints=[TAINT]))
    running = (pod("web-1", "large", "2500m", "8Gi"), pod("db-0", "small", "1", "1Gi"))
    assert explanation(pending, *nodes, running=running) == text


def test_explains_affinity_taints_and_cordoned_nodes() -> None:
    wants = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wants]}}}
    nodes = [node(f"n{each}", labels={"zone": f"z{each}"}) for each in range(7)]
    text = "it requires zone=a or b, and nodes have zone=z0, z1, z2, z3, z4 and 2 more"
    assert explanation(pod(affinity=affinity), *nodes) == text
    assert explanation(pod(), node("ads", taints=[TAINT])) == "node ads: taint team=ads:NoSchedule"
    assert explanation(pod()) == "the cluster has no nodes"
    tolerant = pod(tolerations=[{"key": "team", "operator": "Equal", "value": "ads"}])
    cordoned = node("cordoned", unschedulable=True)
    fit = [node("ads", taints=[TAINT]), node("tight", "500m"), cordoned]
    assert [each.metadata.name for each in candidate_nodes(tolerant, fit)] == ["ads"]
    assert candidate_nodes(pod(), fit) == []


def test_counts_neither_finished_nor_deleted_pods_of_a_used_up_quota() -> None:
    """The rejection counted them, and the users of the quota would contradict that number."""
    (kept, ended, deleted) = (pod(f"ads-{number}") for number in range(3))
    ended = msgspec.convert({**msgspec.to_builtins(ended), "status": {"phase": "Succeeded"}}, PodRequirements)
    gone = msgspec.structs.replace(deleted.metadata, deletion_timestamp="2026-01-31T12:00:00Z")
    evidence = Evidence(project_pods=(kept, ended, msgspec.structs.replace(deleted, metadata=gone)))
    problem = Problem(QUOTA_USED_UP, "q", note="2 of 1 pods used")
    assert add_evidence(snapshot(owner()), problem, evidence).note == "1 of 1 pods used\npods used by ads (1)"


def test_lists_users_of_a_quota_the_largest_first() -> None:
    pods = (pod("web-1", cpu="2"), pod("web-2", cpu="2"), pod("resize-1", cpu="500m"), pod("db-0", tier="reserved"))
    note = "a replica needs 2 cpu, 5 of 5 used"
    for problem, text in (
        (
            Problem(QUOTA_USED_UP, "q", note=note),
            "a replica needs 2 cpu, 4.5 of 5 used\ncpu used by web (4) and resize (0.5)",
        ),
        (
            Problem(QUOTA_USED_UP, "q", note="3 of 3 pods used"),
            "3 of 3 pods used\npods used by web (2) and resize (1)",
        ),
        (Problem(CRASH_LOOP, "q", note=note), note),
        (Problem(NO_NODE_MATCHES, "q", note=note), note),
    ):
        assert add_evidence(snapshot(owner()), problem, Evidence(project_pods=pods)).note == text
    assert add_evidence(snapshot(owner()), Problem(QUOTA_USED_UP, "q", note=note), Evidence()).note == note


@pytest.mark.parametrize(
    ("pending", "nodes", "running", "fits"),
    [
        (pod(cpu="64"), [node("small", "4"), node("large", "32")], [], {"cpu": 32}),
        (pod(cpu="64"), [node("large", "32")], [pod("a-1", "large", cpu="100m")], {"cpu": Fraction("31.9")}),
        (pod(cpu="64", memory="100Gi"), [node("large", "32")], [], {"cpu": 32, "memory": 16 * 2**30}),
        (pod(cpu="3"), [node("large")], [pod("a-1", "large", cpu="3250m")], {"cpu": Fraction("0.75")}),
        # Only more nodes help.
        (pod(cpu="3"), [node("large")], [pod("a-1", "large", cpu="4")], {}),
        (pod(), [], [], {}),
        (pod(nodeSelector={"disk": "ssd"}), [node("large")], [], {}),
    ],
)
def test_next_says_the_most_that_fits(
    pending: PodRequirements, nodes: list[Node], running: list[PodRequirements], fits: dict[str, Fraction]
) -> None:
    assert largest_request_that_fits(pending, ClusterCapacity(nodes, running), "own") == fits


def test_what_sidecars_request_does_not_fit_the_program() -> None:
    sidecar = {"name": "logs", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}
    pending = pod(cpu="8", initContainers=[sidecar])
    assert largest_request_that_fits(pending, ClusterCapacity([node("large")]), "own") == {"cpu": Fraction("3.5")}
    assert largest_request_that_fits(pending, ClusterCapacity([node("large")]), "unknown") == {}


@pytest.mark.parametrize(
    ("reason", "pending", "nodes", "actor"),
    [
        (UNSCHEDULABLE, pod(cpu="64"), [node("large", "32")], Actor.USER),
        (UNSCHEDULABLE, pod(cpu="3"), [node("large")], Actor.INFRASTRUCTURE),
        (NO_NODE_MATCHES, pod(nodeSelector={"disk": "sdd"}), [node("large", labels={"disk": "ssd"})], Actor.USER),
        (NO_NODE_MATCHES, pod(), [node("large", taints=[TAINT])], Actor.INFRASTRUCTURE),
    ],
)
def test_author_of_the_file_acts_on_what_no_node_has(
    reason: Reason, pending: PodRequirements, nodes: list[Node], actor: Actor
) -> None:
    assert who_acts(owner(), Problem(reason, "q"), Evidence(pending, ClusterCapacity(nodes))) is actor


def test_tells_since_when_a_node_is_not_ready() -> None:
    lost = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
    conditions = [{**lost, "lastTransitionTime": "2026-01-31T11:52:00Z"}]
    silent = msgspec.convert({"metadata": {"name": "n-1"}, "status": {"conditions": conditions}}, Node)
    problem = add_evidence(snapshot(owner()), Problem(NODE_NOT_RESPONDING, "q"), Evidence(node=silent))
    assert problem.note == (
        "node n-1 has not been ready since 2026-01-31T11:52:00Z: Kubelet stopped posting node status."
    )
    assert (
        "n-1 is ready"
        in add_evidence(snapshot(owner()), Problem(NODE_NOT_RESPONDING, "q"), Evidence(node=node("n-1"))).note
    )


@pytest.mark.parametrize("waiting", [POD_SETUP_SLOW, IMAGE_SLOW])
def test_node_that_is_not_ready_is_the_cause_of_slow_starts(waiting: Reason) -> None:
    down = {"type": "Ready", "status": "False", "message": "container runtime is down"}
    conditions = [{**down, "lastTransitionTime": "2026-01-31T11:52:00Z"}]
    stopped = msgspec.convert({"metadata": {"name": "n-1"}, "status": {"conditions": conditions}}, Node)
    found = add_evidence(snapshot(owner()), Problem(waiting, "q", note="slow"), Evidence(node=stopped))
    assert (found.reason, found.what) == (
        NODE_NOT_RESPONDING,
        "node n-1 is not ready, and a replica on it cannot start",
    )
    assert found.note == "node n-1 has not been ready since 2026-01-31T11:52:00Z: container runtime is down"
    ready = msgspec.convert({"metadata": {"name": "n-1"}}, Node)
    assert add_evidence(snapshot(owner()), Problem(waiting, "q"), Evidence(node=ready)) == Problem(waiting, "q")


def test_names_the_node_with_the_labels_and_its_state() -> None:
    lost = {"type": "Ready", "status": "Unknown", "message": "silent", "lastTransitionTime": "2026-01-31T11:50:00Z"}
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    raw = {**msgspec.to_builtins(node("a", labels={"pool": "x"}, taints=[taint])), "status": {"conditions": [lost]}}
    pending = pod(nodeSelector={"pool": "x"})
    found = explanation(pending, msgspec.convert(raw, Node), node("b"))
    assert found == "node a: not ready since 2026-01-31T11:50:00Z, silent"
    assert explanation(pending, node("c", labels={"pool": "x"}, unschedulable=True)) == "node c: cordoned"


def test_explains_an_expression_that_compares_numbers() -> None:
    wants = {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["128"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [wants]}}}
    text = "it requires cores > 128, and nodes have cores=64"
    assert explanation(pod(affinity=affinity), node("a", labels={"cores": "64"})) == text
    text = "it requires cores > 128, and none of 1 nodes has the label"
    assert explanation(pod(affinity=affinity), node("a")) == text


@pytest.mark.parametrize(
    ("message", "text", "next_"),
    [
        (
            f"ValidatingAdmissionPolicy 'placement' denied request: {FORBIDDEN_FIELD}",
            "admission policy placement denies deployments me/hello",
            "pin edit hello --remove template.spec.schedulerName",
        ),
        (
            "exceeded quota: few, requested: services=1, used: services=2, limited: services=2",
            "quota few of project me is used up",
            "",
        ),
        (
            'failed calling webhook "check.example.com": failed to call webhook: context deadline exceeded',
            "admission webhook check.example.com does not respond",
            "tell the infrastructure team",
        ),
        ("the server has no time", "the server has no time", ""),
    ],
)
def test_translates_a_refused_write(message: str, text: str, next_: str) -> None:
    refused = Problem(CLUSTER_REFUSED, message, Where(object="deployments me/hello"))
    found = refused_write_problem(snapshot(owner()), refused)
    assert found.what == text
    assert found.where == refused.where
    assert next_ in found.next
