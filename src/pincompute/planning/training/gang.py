"""Gang scheduling: which replicas of a training job exist, and when all of them may be scheduled.

In: the pods of Kubeflow's job. Out: a `Gang`, which lists the wanted replicas and the existing pods, and the steps that
remove scheduling gates.

Replicas that train together are useless one by one, and those that wait for the others occupy GPUs meanwhile. Every pod
is therefore created with a scheduling gate. The invariant: no gate is removed before enough replicas exist (all of
them, or the minimum of an elastic job), and then all gates are removed in one pass. A quota that admits only some of
the pods thus holds back all of them.

The gate does not cover lack of capacity, because planning does not read nodes: if some pods fit and others do not,
those that fit are scheduled, and `training.diagnosis` reports it. A pod that is recreated while the others run finds
them running and is ungated at once.
"""

from __future__ import annotations

from typing import NamedTuple

from pincompute.api.names import GANG_GATE
from pincompute.api.training_job import PARAMETER_SERVER_ROLE, TrainingJobSpec
from pincompute.planning.observed_pods import Pod
from pincompute.planning.snapshot import Native, Snapshot
from pincompute.planning.steps import Ungate

# Labels that Kubeflow sets on its pods.
REPLICA_TYPE_LABEL = "training.kubeflow.org/replica-type"
REPLICA_INDEX_LABEL = "training.kubeflow.org/replica-index"

ReplicaId = tuple[str, int]
"""Role and index, such as worker 0."""


class GangMember(NamedTuple):
    """An existing pod of a replica."""

    replica: ReplicaId
    pod: Pod

    @property
    def succeeded(self) -> bool:
        return self.pod.status.phase == "Succeeded"

    @property
    def failed(self) -> bool:
        return self.pod.status.phase == "Failed"

    @property
    def is_running(self) -> bool:
        return self.pod.is_active and any(each.state.running for each in self.pod.status.container_statuses)

    @property
    def is_gated(self) -> bool:
        return self.pod.is_active and any(each.name == GANG_GATE for each in self.pod.spec.scheduling_gates)


class Gang(NamedTuple):
    """The replicas that should exist, and those that do."""

    replicas: tuple[ReplicaId, ...]
    members: tuple[GangMember, ...] = ()
    min_replicas: int | None = None
    """Number of replicas with which an elastic job can train; None if all are needed."""

    @property
    def missing(self) -> tuple[ReplicaId, ...]:
        """Replicas without a pod. Failed ones are missing: they are recreated, unless the job fails with them."""
        present = {each.replica for each in self.members if each.succeeded or each.pod.is_active}
        return tuple(replica for replica in self.replicas if replica not in present)

    @property
    def can_start(self) -> bool:
        missing = len(self.missing)
        return not missing if self.min_replicas is None else len(self.replicas) - missing >= self.min_replicas

    @property
    def active_pods(self) -> tuple[Pod, ...]:
        return tuple(each.pod for each in self.members if each.pod.is_active)

    @property
    def gated_members(self) -> tuple[GangMember, ...]:
        return tuple(each for each in self.members if each.is_gated)

    def of_role(self, role: str) -> Gang:
        """Part of the gang with one role."""
        return Gang(
            tuple(replica for replica in self.replicas if replica[0] == role),
            tuple(each for each in self.members if each.replica[0] == role),
        )


def find_gang(snapshot: Snapshot, job: Native | None) -> Gang:
    """Find the pods of this job. Those of a former job of the same name are left out: they have another owner."""
    spec: TrainingJobSpec = snapshot.owner.spec
    replicas = tuple((name, index) for name, role in spec.active_roles.items() for index in range(role.replicas))
    min_replicas = spec.elastic.minimum if spec.elastic else None
    if job is None:
        return Gang(replicas, (), min_replicas)
    pods = {
        _replica_id(pod): pod
        for pod in sorted(snapshot.pods, key=lambda each: each.metadata.name)
        if pod.metadata.controller_uid == job.metadata.uid and not pod.metadata.deletion_timestamp
    }
    members = tuple(GangMember(replica, pods[replica]) for replica in replicas if replica in pods)
    return Gang(replicas, members, min_replicas)


def ungate_steps(gang: Gang) -> tuple[Ungate, ...]:
    """Remove all gates if enough replicas exist, otherwise none."""
    if not gang.can_start:
        return ()
    return tuple(
        Ungate(each.pod.metadata.name, each.pod.metadata.uid, _other_gates(each.pod)) for each in gang.gated_members
    )


def awaited_members(spec: TrainingJobSpec, gang: Gang) -> Gang:
    """Part of the gang that has to succeed for the job to succeed."""
    if spec.success == "leader":
        leader = gang.of_role(spec.leader)
        return Gang(leader.replicas[:1], tuple(each for each in leader.members if each.replica in leader.replicas[:1]))
    if spec.elastic:
        # Replicas of an elastic job come and go: only those that exist count.
        return Gang(tuple(each.replica for each in gang.members), gang.members)
    return Gang(
        tuple(replica for replica in gang.replicas if replica[0] != PARAMETER_SERVER_ROLE),
        tuple(each for each in gang.members if each.replica[0] != PARAMETER_SERVER_ROLE),
    )


def replica_text(replica: ReplicaId) -> str:
    return f"{replica[0]} {replica[1]}"


def _replica_id(pod: Pod) -> ReplicaId:
    index = pod.metadata.labels.get(REPLICA_INDEX_LABEL, "")
    return pod.metadata.labels.get(REPLICA_TYPE_LABEL, ""), int(index) if index.isdigit() else -1


def _other_gates(pod: Pod) -> tuple[str, ...]:
    return tuple(each.name for each in pod.spec.scheduling_gates if each.name != GANG_GATE)
