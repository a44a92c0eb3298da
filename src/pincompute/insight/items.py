"""Items of the simplified model, made from the objects of a cluster."""

from __future__ import annotations

import msgspec

from pincompute.api.insight import NodeItem, ReplicaItem, WorkloadItem
from pincompute.api.names import KIND_LABEL
from pincompute.api.structs import LenientStruct, Metadata
from pincompute.api.workload import Workload
from pincompute.api.workload_summary import WorkloadSummary
from pincompute.objects.times import format_time
from pincompute.planning.observed_pods import Pod, PodCondition
from pincompute.planning.pods.container_runs import task_position
from pincompute.planning.views.summary import summarize
from pincompute.planning.views.workload_detail import pod_state

_SUMMARY_FIELDS = tuple(each.name for each in msgspec.structs.fields(WorkloadSummary))


class NodeSpec(LenientStruct, frozen=True):
    unschedulable: bool = False


class NodeStatus(LenientStruct, frozen=True):
    conditions: tuple[PodCondition, ...] = ()


class Node(LenientStruct, frozen=True):
    """The fields of a node that insight reads. Heartbeats change none of those that `NodeItem` has."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


def workload_item(workload: Workload, cluster: str) -> WorkloadItem:
    summary = summarize(workload)
    return WorkloadItem(
        **{name: getattr(summary, name) for name in _SUMMARY_FIELDS},
        cluster=cluster,
        runtime=workload.status.runtime,
        tier=str(workload.spec.tier.value),
        owner=workload.spec.owner,
        created_at=workload.metadata.creation_timestamp,
    )


def replica_item(pod: Pod, cluster: str) -> ReplicaItem:
    started_at, labels = pod.status.start_time, pod.metadata.labels
    attempt, index = task_position(labels)
    return ReplicaItem(
        cluster=cluster,
        project=pod.metadata.namespace,
        workload=pod.workload,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        kind=pod.metadata.labels.get(KIND_LABEL, ""),
        state=pod_state(pod),
        ready=pod.ready,
        restarts=sum(each.restart_count for each in pod.status.container_statuses),
        node=pod.spec.node_name,
        since=format_time(started_at) if started_at else pod.metadata.creation_timestamp,
        attempt=attempt,
        index=index,
    )


def node_item(node: Node, cluster: str) -> NodeItem:
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    is_ready = ready is not None and ready.status == "True"
    return NodeItem(
        cluster=cluster,
        name=node.metadata.name,
        uid=node.metadata.uid,
        ready=is_ready,
        schedulable=not node.spec.unschedulable,
        reason="" if is_ready or ready is None else ready.reason,
        message="" if is_ready or ready is None else ready.message,
    )
