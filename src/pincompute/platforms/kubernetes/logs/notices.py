"""Remarks before the first log line: what is missing from the output, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pincompute.api.logs import LogMarker, LogQuery
from pincompute.api.workload import Workload
from pincompute.planning.diagnosis.excerpts import join_first_few
from pincompute.planning.pods.container_runs import LoggedPod, container_runs_of
from pincompute.platforms.kubernetes.logs.container_runs import ContainerHistory


class LogSelection(NamedTuple):
    """The logs of a workload, and those of them that are shown."""

    name: str
    pods: Sequence[LoggedPod]
    """Pods that exist, also without a started container."""
    histories: Sequence[ContainerHistory]
    shown: Sequence[ContainerHistory]
    store_problem: str = ""
    """Why the log store cannot be read; empty if it can."""


def log_notices(workload: Workload | None, query: LogQuery, logs: LogSelection) -> Iterator[LogMarker]:
    """Remarks on all replicas. A workload that was deleted is None."""
    if workload is None:
        yield LogMarker("", "", f"{logs.name} was deleted; these are its last lines")
    if logs.store_problem:
        yield LogMarker("", "", logs.store_problem)
    if query.replica or query.select_run:
        return
    hidden = len(logs.histories) - len(logs.shown)
    if hidden > 0:
        pods = "1 ended pod" if hidden == 1 else f"{hidden} ended pods"
        yield LogMarker("", "", f"logs of {pods} hidden: pin logs {logs.name} --gone, or {logs.name}/REPLICA")
    if workload and (waiting := _not_started_text(logs)):
        yield LogMarker("", "", f"{waiting}; see: pin why {logs.name}")


def _not_started_text(logs: LogSelection) -> str:
    """Names pods that wait: without it, their silence looks like that of a program that prints nothing."""
    waiting = sorted(
        pod.metadata.name
        for pod in logs.pods
        if pod.status.phase == "Pending" and not any(container_runs_of(each) for each in pod.containers)
    )
    if waiting:
        return f"not started, no lines yet: {join_first_few(waiting)}"
    return "" if logs.histories else "no container has started, so there are no lines"
