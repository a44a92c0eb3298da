"""Runs of a workload's containers: the replica each belongs to, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pincompute.api.logs import ContainerExit
from pincompute.api.names import ATTEMPT_LABEL
from pincompute.api.structs import LenientStruct
from pincompute.base.reasons import OUT_OF_MEMORY
from pincompute.objects.number_sets import sorted_numbers
from pincompute.planning.observed_pods import ContainerStatus, OwnedMetadata, PodStatus, Terminated

JOB_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = "batch.kubernetes.io/job-name"
TEMPLATE_HASH = "pod-template-hash"
REPLICA_LABELS = (ATTEMPT_LABEL, JOB_INDEX, JOB_NAME, TEMPLATE_HASH)
"""Labels of a pod from which its replica is derived."""

_GENERIC_REASONS = ("", "Error", "Completed")
_REASON_NAMES = {"OOMKilled": OUT_OF_MEMORY.code}


class NamedContainer(LenientStruct, frozen=True):
    name: str


class LoggedPodSpec(LenientStruct, frozen=True):
    containers: list[NamedContainer] = []
    init_containers: list[NamedContainer] = []
    ephemeral_containers: list[NamedContainer] = []

    @property
    def all_containers(self) -> list[NamedContainer]:
        return [*self.containers, *self.init_containers, *self.ephemeral_containers]


class LoggedPod(LenientStruct, frozen=True):
    """Fields of a pod with which its log files are found."""

    metadata: OwnedMetadata
    spec: LoggedPodSpec = LoggedPodSpec()
    status: PodStatus = PodStatus()

    @property
    def containers(self) -> list[ContainerStatus]:
        return [*self.status.init_container_statuses, *self.status.container_statuses]


class PodContainerRun(NamedTuple):
    """One run of a container, from start to exit, according to the pod's status."""

    restart: int
    end: ContainerExit | None = None
    """None while it is running."""
    previous: bool = False
    """True if there is a later run."""


def container_runs_of(container: ContainerStatus) -> list[PodContainerRun]:
    """The current run and the one before it. While a restart is pending, restartCount is that of the last run."""
    number, state, last = container.restart_count, container.state, container.last_state.terminated
    if state.running:
        return [
            *([PodContainerRun(number - 1, _exit_of(last), previous=True)] if last else []),
            PodContainerRun(number),
        ]
    if state.terminated:
        before = [PodContainerRun(number - 1, _exit_of(last), previous=True)] if last else []
        return [*before, PodContainerRun(number, _exit_of(state.terminated))]
    return [PodContainerRun(number, _exit_of(last))] if last else []


def replica_of(workload: str, pod: str, labels: Mapping[str, str], attempts: Mapping[int, str]) -> str:
    """Short name of a pod's replica: 12 of `resize/12`, 0 of `db/0`, or the suffix of the pod's name.

    A pod of a batch knows only its index in the attempt; `attempts` has the task numbers of each attempt.
    """
    name = pod.removeprefix(f"{workload}-")
    number, index = task_position(labels)
    if index is not None:
        if number == 0:
            return str(index)
        tasks = sorted_numbers(attempts[number]) if number in attempts else ()
        if index < len(tasks):
            return str(tasks[index])
        return str(index) if number == 1 else name
    if TEMPLATE_HASH in labels:
        return name.removeprefix(f"{labels[TEMPLATE_HASH]}-")
    return name


def task_position(labels: Mapping[str, str]) -> tuple[int, int | None]:
    """The attempt of a task's pod, and the position among the tasks of the attempt; None for what is no task.

    The attempt is 0 if the task has a Job of its own, whose name ends with the number of the task.
    """
    index, job = labels.get(JOB_INDEX, ""), labels.get(JOB_NAME, "")
    task = job.rpartition("-t")[2]
    if ATTEMPT_LABEL in labels and job.endswith(f"-t{task}") and task.isdecimal():
        return 0, int(task)
    attempt = labels.get(ATTEMPT_LABEL, "1")
    return int(attempt) if attempt.isdecimal() else 1, int(index) if index.isdecimal() else None


def exit_text(end: ContainerExit) -> str:
    """Text such as `OutOfMemory (exit 137)`, shown between log lines."""
    reason = "" if end.reason in _GENERIC_REASONS else _REASON_NAMES.get(end.reason, end.reason)
    return f"{reason} (exit {end.exit_code})" if reason else f"exit {end.exit_code}"


def _exit_of(terminated: Terminated) -> ContainerExit:
    return ContainerExit(terminated.reason, terminated.exit_code, terminated.finished_at)
