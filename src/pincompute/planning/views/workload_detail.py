"""Detail view of a workload for `pin show`: summary, replicas, Kubernetes objects, events and revisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pincompute.api.names import REGISTERED, SERVERSET_LABEL
from pincompute.api.workload import Workload
from pincompute.api.workload_detail import (
    ContainerDetail,
    Membership,
    NativeDetail,
    ReplicaDetail,
    RevisionDetail,
    WorkloadDetail,
)
from pincompute.objects.content import Object, object_label
from pincompute.objects.times import format_time
from pincompute.planning.observed_pods import ContainerStatus, Pod
from pincompute.planning.revision import SPEC_KEY
from pincompute.planning.snapshot import Snapshot
from pincompute.planning.usage import NodeStats, UsagePod, workload_usage
from pincompute.planning.views.events import Event, EventScope, fold_events
from pincompute.planning.views.history import RevisionRecord, describe_changes
from pincompute.planning.views.summary import summarize

_POD_CONTROLLERS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "PyTorchJob", "TFJob")


def workload_detail(
    snapshot: Snapshot, natives: Sequence[Object], events: Iterable[Event], past: Sequence[RevisionRecord]
) -> WorkloadDetail:
    owner: Workload = snapshot.owner
    scope = event_scope_of(snapshot)
    objects = [
        NativeDetail(name=object_label(native), since=native["metadata"].get("creationTimestamp", ""))
        for native in natives
        # Revision records are shown as the history instead.
        if SPEC_KEY not in native.get("data", {})
    ]
    return WorkloadDetail(
        summary=summarize(owner),
        resource=msgspec.to_builtins(owner),
        replicas=[replica_detail(pod) for pod in sorted(snapshot.pods, key=lambda pod: pod.metadata.name)],
        natives=sorted(objects, key=lambda each: each.name),
        events=fold_events(event for event in events if scope.includes(event)),
        history=revision_details(type(owner), past),
    )


def with_usage(detail: WorkloadDetail, pods: Sequence[UsagePod], stats: Mapping[str, NodeStats]) -> WorkloadDetail:
    """Adds what the workload and each of its replicas use."""
    usages = {each.metadata.name: workload_usage(each.metadata.name, [each], stats) for each in pods}
    replicas = [
        msgspec.structs.replace(
            each,
            cpu_millicores=usages[each.name].cpu.used,
            memory_bytes=usages[each.name].memory.used,
            usage=usages[each.name],
        )
        for each in detail.replicas
    ]
    usage = workload_usage(detail.summary.name, pods, stats)
    return msgspec.structs.replace(detail, replicas=replicas, usage=usage)


def event_scope_of(snapshot: Snapshot) -> EventScope:
    owner: Workload = snapshot.owner
    members = [owner, *snapshot.natives, *snapshot.pods]
    controllers = [native.metadata.name for native in snapshot.natives if native.kind in _POD_CONTROLLERS]
    return EventScope(
        frozenset(each.metadata.uid for each in members if each.metadata.uid),
        frozenset((owner.metadata.name, *controllers)),
    )


def replica_detail(pod: Pod) -> ReplicaDetail:
    started_at = pod.status.start_time
    return ReplicaDetail(
        name=pod.metadata.name,
        node=pod.spec.node_name,
        state=pod_state(pod),
        ready=pod.ready,
        restarts=sum(each.restart_count for each in pod.status.container_statuses),
        since=format_time(started_at) if started_at else pod.metadata.creation_timestamp,
        address=pod.status.pod_ip if SERVERSET_LABEL in pod.metadata.labels else "",
        membership=_membership(pod),
        containers=[
            *(_container_detail(each, is_init=True) for each in pod.status.init_container_statuses),
            *(_container_detail(each, is_init=False) for each in pod.status.container_statuses),
        ],
    )


def _container_detail(container: ContainerStatus, *, is_init: bool) -> ContainerDetail:
    state = container.state
    ended = state.terminated or container.last_state.terminated
    if state.running:
        text = "Running"
    elif state.terminated:
        text = state.terminated.reason or "Terminated"
    else:
        text = state.waiting.reason if state.waiting else "Waiting"
    return ContainerDetail(
        name=container.name,
        state=text,
        ready=container.ready,
        restarts=container.restart_count,
        image=container.image,
        exit_code=ended.exit_code if ended else None,
        is_init=is_init,
    )


def _membership(pod: Pod) -> Membership | None:
    """The condition of the registrar, whose message ends with its session."""
    reported = next((each for each in pod.status.conditions if each.type == REGISTERED), None)
    if reported is None:
        return None
    registered = reported.status == "True"
    session = reported.message.rpartition("session ")[2] if registered else ""
    since = format_time(reported.last_transition_time) if reported.last_transition_time else ""
    return Membership(registered=registered, since=since, session=session, message=reported.message)


def pod_state(pod: Pod) -> str:
    """The state of the pod in one word; a container that cannot start decides over the others."""
    if pod.metadata.deletion_timestamp:
        return "Terminating"
    if pod.status.phase in {"Succeeded", "Failed"}:
        return pod.status.reason or _exit_reason(pod) or pod.status.phase
    waiting = [each.state.waiting.reason for each in _all_containers(pod) if each.state.waiting]
    problems = [reason for reason in waiting if reason not in {"", "ContainerCreating", "PodInitializing"}]
    if problems:
        return problems[0]
    if pod.ready:
        return "Ready"
    if not pod.has_condition("PodScheduled"):
        return "Pending"
    return "Running" if pod.status.phase == "Running" else "Starting"


def _exit_reason(pod: Pod) -> str:
    """The first specific reason of a failed container, such as OOMKilled."""
    exits = [each.state.terminated for each in _all_containers(pod) if each.state.terminated]
    return next((each.reason for each in exits if each.exit_code and each.reason != "Error"), "")


def _all_containers(pod: Pod) -> list[ContainerStatus]:
    return [*pod.status.init_container_statuses, *pod.status.container_statuses]


def revision_details(kind: type[Workload], past: Sequence[RevisionRecord]) -> list[RevisionDetail]:
    """The revisions with their changes; those of the oldest record are unknown, since nothing is left to compare."""
    details: list[RevisionDetail] = []
    before: RevisionRecord | None = None
    for record in past:
        changes = describe_changes(kind, before.raw_spec, record.raw_spec) if before else ()
        details.append(
            RevisionDetail(
                number=record.number,
                created_at=record.created_at,
                changes=list(changes),
                runtime=record.runtime,
                images=record.images,
            )
        )
        before = record
    return details
