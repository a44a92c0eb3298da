"""All that is known of one workload, put together for a person: its copies, natives, events and history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from pincompute.api.account import Account, CopyAccount, NativeAccount, RevisionAccount
from pincompute.api.workload import Workload
from pincompute.objects.content import Object, identity
from pincompute.objects.times import stamp
from pincompute.planning.people.events import Event, Family, folded
from pincompute.planning.people.history import Past, differences
from pincompute.planning.people.summary import summarize
from pincompute.planning.revision import SPEC
from pincompute.planning.snapshot import Container, Pod, Snapshot


def account(snapshot: Snapshot, natives: Sequence[Object], events: Iterable[Event], past: Sequence[Past]) -> Account:
    owner: Workload = snapshot.owner
    kin = family(snapshot)
    return Account(
        summary=summarize(owner),
        resource=msgspec.to_builtins(owner),
        copies=[copy(each) for each in sorted(snapshot.pods, key=lambda pod: pod.metadata.name)],
        natives=sorted(
            (
                NativeAccount(name=identity(each), since=each["metadata"].get("creationTimestamp", ""))
                for each in natives
                if SPEC not in each.get("data", {})
            ),
            key=lambda each: each.name,
        ),
        events=folded(each for each in events if kin.has(each)),
        history=revisions(type(owner), past),
    )


def family(snapshot: Snapshot) -> Family:
    owner: Workload = snapshot.owner
    members = [owner, *snapshot.natives, *snapshot.pods]
    makers = [each.metadata.name for each in snapshot.natives if each.kind in _MAKERS]
    return Family(
        frozenset(each.metadata.uid for each in members if each.metadata.uid),
        frozenset((owner.metadata.name, *makers)),
    )


_MAKERS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "PyTorchJob", "TFJob")


def copy(pod: Pod) -> CopyAccount:
    since = pod.status.start_time
    return CopyAccount(
        name=pod.metadata.name,
        node=pod.spec.node_name,
        state=state(pod),
        ready=pod.ready,
        restarts=sum(each.restart_count for each in pod.status.container_statuses),
        since=stamp(since) if since else pod.metadata.creation_timestamp,
    )


def state(pod: Pod) -> str:
    """In one word, that of the container which is worst off."""
    if pod.metadata.deletion_timestamp:
        return "Ending"
    if pod.status.phase in {"Succeeded", "Failed"}:
        return pod.status.reason or _ended(pod) or pod.status.phase
    waiting = [each.state.waiting.reason for each in _containers(pod) if each.state.waiting]
    troubles = [each for each in waiting if each not in {"", "ContainerCreating", "PodInitializing"}]
    if troubles:
        return troubles[0]
    if pod.ready:
        return "Ready"
    if not pod.says("PodScheduled"):
        return "Waiting"
    return "Running" if pod.status.phase == "Running" else "Starting"


def _ended(pod: Pod) -> str:
    ends = [each.state.terminated for each in _containers(pod) if each.state.terminated]
    return next((each.reason for each in ends if each.exit_code and each.reason != "Error"), "")


def _containers(pod: Pod) -> list[Container]:
    return [*pod.status.init_container_statuses, *pod.status.container_statuses]


def revisions(kind: type[Workload], past: Sequence[Past]) -> list[RevisionAccount]:
    """Each with what it changed; of the eldest that is recorded nothing is known to compare it with."""
    before: Past | None = None
    told: list[RevisionAccount] = []
    for each in past:
        changes = differences(kind, before.said, each.said) if before else ()
        told.append(
            RevisionAccount(
                number=each.number, at=each.at, changes=list(changes), runtime=each.runtime, images=each.images
            )
        )
        before = each
    return told
