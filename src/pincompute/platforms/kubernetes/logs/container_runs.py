"""Decides which container runs have log lines, and where each is read: from the kubelet, or from the log store.

A container that restarts has several *runs*, identified by the restart count. The kubelet keeps the lines of the
present run and of the one before, as long as the pod exists; the log store keeps all of them. Runs of both are merged
into one history per container, in which each run is read from one place only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pincompute.api.logs import ContainerRun, LogMarker
from pincompute.api.status import SUCCEEDED
from pincompute.api.workload import Workload
from pincompute.planning.observed_pods import ContainerStatus
from pincompute.planning.pods.container_runs import (
    REPLICA_LABELS,
    LoggedPod,
    PodContainerRun,
    container_runs_of,
    exit_text,
    replica_of,
)


class LogSource(NamedTuple):
    """One container run and where its lines are read."""

    replica: str
    run: ContainerRun
    is_main: bool
    """Whether the container is the workload's own, rather than a sidecar or a log file."""
    stored: bool = False
    """Whether the lines are read from the log store."""
    previous: bool = False
    """Whether the kubelet serves it as the previous run of the container."""

    @property
    def container_label(self) -> str:
        """The container's name as lines show it; empty for the main container."""
        return "" if self.is_main else self.run.container


class ContainerHistory(NamedTuple):
    """The runs of one container in one pod, oldest first."""

    sources: Sequence[LogSource]

    @property
    def replica(self) -> str:
        return self.sources[0].replica

    @property
    def pod_deleted(self) -> bool:
        return bool(self.sources[-1].run.pod_deleted_at)

    @property
    def failed(self) -> bool:
        last = self.sources[-1].run.end
        return last is not None and last.exit_code != 0

    @property
    def last_failure_at(self) -> str:
        """When a run last ended with an error; empty if none has."""
        ends = (each.run.end for each in self.sources)
        return max((each.at for each in ends if each is not None and each.exit_code != 0), default="")

    def end_mark(self, index: int) -> LogMarker | None:
        """The marker after the lines of a run: how it ended, unless it was the last run and ended well."""
        source, restarted = self.sources[index], index + 1 < len(self.sources)
        end, deleted_at = source.run.end, source.run.pod_deleted_at
        ended = f"ended: {exit_text(end)}" if end and (restarted or end.exit_code) else "ended" if restarted else ""
        then = "restarted" if restarted else "pod deleted" if deleted_at else ""
        text = ", ".join(each for each in (ended, then) if each)
        at = (end.at if end else "") or deleted_at
        return LogMarker(source.replica, at, text) if text else None


class LogOwner(NamedTuple):
    """The fields of a workload that its logs depend on. A deleted workload has only its name."""

    name: str
    main_container: str
    attempts: Mapping[int, str] = {}
    """Tasks by attempt number, which name the replicas of a batch."""
    created: str = ""
    """Runs from before belong to an earlier workload of the same name."""
    replaces_pods: bool = False
    """Whether a deleted pod gets a replacement, as in a service."""

    @classmethod
    def of(cls, name: str, workload: Workload | None) -> LogOwner:
        if workload is None:
            return cls(name, name)
        tasks = {each.number: each.tasks for each in getattr(workload.status, "attempts", ())}
        replaces_pods = workload.GOAL != SUCCEEDED
        return cls(name, workload.main_container_name, tasks, workload.metadata.creation_timestamp, replaces_pods)

    def terminated_hidden(self, histories: Sequence[ContainerHistory]) -> list[ContainerHistory]:
        """Histories that are left out unless asked for: of earlier workloads, and of pods that were replaced."""
        any_active = any(not each.pod_deleted for each in histories)
        return [
            each
            for each in histories
            if each.sources[-1].run.created < self.created or (self.replaces_pods and any_active and each.pod_deleted)
        ]


class LogFilter(NamedTuple):
    """Which lines a client follows."""

    project: str
    owner: LogOwner
    container: str = ""
    replica: str = ""

    def matches(self, source: LogSource) -> bool:
        return self.replica in ("", source.replica, source.run.pod)


def container_histories(
    owner: LogOwner, pods: Iterable[LoggedPod], stored_runs: Iterable[ContainerRun], container: str
) -> list[ContainerHistory]:
    """Histories of the named container; by default of the main container and of all files of the log volume."""
    pods = list(pods)
    main_containers = {pod.metadata.uid: main_container_of(pod, owner.main_container) for pod in pods}
    sources = {_run_key(source.run): source for pod in pods for source in live_sources(owner, pod, container)}
    runs = list(stored_runs)
    stored = {(run.uid, run.container) for run in runs}
    for run in runs:
        has_main = (run.uid, owner.main_container) in stored
        known = main_containers.get(run.uid)
        main_containers[run.uid] = known or (owner.main_container if has_main else run.main_container)
    for run in runs:
        is_main = run.container == main_containers[run.uid]
        chosen = run.container == container if container else is_main or run.is_volume_file
        live = sources.get(_run_key(run))
        if chosen and (live is None or live.previous):
            # The kubelet deletes the lines of a previous run at any time, so the store is preferred. But only the pod
            # knows at once how the run ended.
            sources[_run_key(run)] = stored_source(owner, run, is_main=is_main)._replace(run=live.run if live else run)
    by_container: dict[tuple[str, str], list[LogSource]] = {}
    for key in sorted(sources):
        by_container.setdefault(key[:2], []).append(sources[key])
    return [ContainerHistory(each) for each in by_container.values()]


def stored_source(owner: LogOwner, run: ContainerRun, *, is_main: bool = False) -> LogSource:
    """A run that is read from the store. The replica is known from the labels that the store keeps of the pod."""
    return LogSource(_replica(owner, run.pod, run.labels), run, is_main, stored=True)


def live_sources(owner: LogOwner, pod: LoggedPod, container: str) -> list[LogSource]:
    """The runs that the kubelet can serve of a pod."""
    main = main_container_of(pod, owner.main_container)
    wanted = container or main
    return [
        _live_source(owner, pod, status, run, is_main=status.name == main)
        for status in pod.containers
        if status.name == wanted
        for run in container_runs_of(status)
    ]


def main_container_of(pod: LoggedPod, main: str) -> str:
    """The workload's own container, among the sidecars; the first one if none has the expected name."""
    names = [each.name for each in pod.spec.containers]
    return main if main in names else names[0] if names else main


def _live_source(
    owner: LogOwner, pod: LoggedPod, container: ContainerStatus, pod_run: PodContainerRun, *, is_main: bool
) -> LogSource:
    metadata = pod.metadata
    run = ContainerRun(
        pod=metadata.name, uid=metadata.uid, container=container.name, restart=pod_run.restart, end=pod_run.end,
        created=metadata.creation_timestamp,
    )  # fmt: skip
    labels = {name: metadata.labels[name] for name in REPLICA_LABELS if name in metadata.labels}
    return LogSource(_replica(owner, metadata.name, labels), run, is_main, previous=pod_run.previous)


def _replica(owner: LogOwner, pod: str, labels: Mapping[str, str]) -> str:
    return replica_of(owner.name, pod, labels, owner.attempts)


def _run_key(run: ContainerRun) -> tuple[str, str, int]:
    return (run.uid, run.container, run.restart)
