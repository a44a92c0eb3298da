"""The lives of a workload's containers: which copy each was of, how it ended, and how that is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pincompute.api.logs import End
from pincompute.api.names import ATTEMPT
from pincompute.api.wire import Wire
from pincompute.base.reasons import OUT_OF_MEMORY
from pincompute.objects.numbers import parse
from pincompute.planning.snapshot import Container, OwnedMetadata, PodStatus, Terminated

JOB_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = "batch.kubernetes.io/job-name"
TEMPLATE_HASH = "pod-template-hash"
TELLING = (ATTEMPT, JOB_INDEX, JOB_NAME, TEMPLATE_HASH)
"""Labels of a pod that say which copy it is."""

_BY_ITSELF = ("", "Error", "Completed")
_NAMED = {"OOMKilled": OUT_OF_MEMORY.code}


class Named(Wire, frozen=True):
    name: str


class Containers(Wire, frozen=True):
    containers: list[Named] = []
    init_containers: list[Named] = []


class Pod(Wire, frozen=True):
    """The fields of a pod by which its lines are found."""

    metadata: OwnedMetadata
    spec: Containers = Containers()
    status: PodStatus = PodStatus()

    @property
    def containers(self) -> list[Container]:
        return [*self.status.init_container_statuses, *self.status.container_statuses]


class Begun(NamedTuple):
    """One life of a container, as its pod tells of it."""

    restart: int
    end: End | None = None
    """Nothing while it lives."""
    previous: bool = False
    """Whether there is a later one."""


def lives_of(container: Container) -> list[Begun]:
    """The present life and the one before: while the next waits to begin, the number is still that of the last."""
    number, state, last = container.restart_count, container.state, container.last_state.terminated
    if state.running:
        return [*([Begun(number - 1, _end(last), previous=True)] if last else []), Begun(number)]
    if state.terminated:
        before = [Begun(number - 1, _end(last), previous=True)] if last else []
        return [*before, Begun(number, _end(state.terminated))]
    return [Begun(number, _end(last))] if last else []


def copy_of(workload: str, pod: str, labels: Mapping[str, str], attempts: Mapping[int, str]) -> str:
    """12 of `resize/12`, 0 of `db/0`, or the letters that the pod's name ends in.

    The attempts of a batch say which tasks they run: a pod knows no more than its place among them.
    """
    name = pod.removeprefix(f"{workload}-")
    index, job = labels.get(JOB_INDEX, ""), labels.get(JOB_NAME, "")
    alone = job.rpartition("-t")[2]
    if ATTEMPT in labels and job.endswith(f"-t{alone}") and alone.isdigit():
        return alone
    if index:
        number = int(labels.get(ATTEMPT, "1"))
        tasks = sorted(parse(attempts[number])) if number in attempts else []
        if int(index) < len(tasks):
            return str(tasks[int(index)])
        return index if number == 1 else name
    if TEMPLATE_HASH in labels:
        return name.removeprefix(f"{labels[TEMPLATE_HASH]}-")
    return name


def how(end: End) -> str:
    """`OutOfMemory (exit 137)`, as it is told between lines."""
    reason = "" if end.reason in _BY_ITSELF else _NAMED.get(end.reason, end.reason)
    return f"{reason} (exit {end.exit_code})" if reason else f"exit {end.exit_code}"


def _end(ended: Terminated) -> End:
    return End(ended.reason, ended.exit_code, ended.finished_at)
