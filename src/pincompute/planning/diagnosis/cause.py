"""Results of a check, and the context in which a pod is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from pincompute.api.pod_template import main_container
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import RUNTIME_PART_FAILING
from pincompute.objects.content import Object
from pincompute.planning.observed_pods import ContainerStatus, Pod, PodCondition
from pincompute.planning.runtimes.selection import Runtimes


class Rank(IntEnum):
    """Order in which causes are reported."""

    PERMANENT = 0
    """Cannot resolve by itself."""
    TRANSIENT = 1
    """May resolve by itself, and has taken longer than it should."""
    SYMPTOM = 2
    """Follows from another cause; reported only if that one is not found."""


class Cause(NamedTuple):
    """A problem, and how important it is."""

    problem: Problem
    rank: Rank = Rank.PERMANENT
    start_order: int = 0
    """Position of the container in the start order: a container that fails often makes the later ones fail, too."""
    container: str = ""
    """The container at which it was found; empty if it is the pod's or the workload's."""


class Recheck(NamedTuple):
    """Nothing is wrong yet, but may be after some time without any change in the cluster."""

    after_s: float


Causes = Iterator[Cause | Recheck]


class PodContext(NamedTuple):
    """A pod under diagnosis, with its workload."""

    owner: Workload
    pod: Pod
    now: datetime
    runtimes: Runtimes = Runtimes()

    @property
    def containers(self) -> tuple[ContainerStatus, ...]:
        """All containers in start order."""
        status = self.pod.status
        return (*status.init_container_statuses, *status.container_statuses)

    @property
    def replica(self) -> str:
        """Singular word for a pod of the workload: `replica`, `task` or `run`."""
        return self.owner.REPLICA_NOUN[0]

    @property
    def where(self) -> Where:
        return Where(object=f"pod {self.pod.metadata.name}")

    def is_init_container(self, container: ContainerStatus) -> bool:
        """True for init containers, including those that keep running as sidecars."""
        return any(each.name == container.name for each in self.pod.status.init_container_statuses)

    def subject(self, container: ContainerStatus) -> str:
        """The container as the subject of a sentence."""
        if self.runtime_part(container):
            return f"its container {container.name}"
        if self.is_init_container(container) and not self.pod.has_condition("Initialized"):
            return f"init container {container.name}"
        return "the program" if is_main_container(self.owner, container.name) else f"container {container.name}"

    def logs_command(self, container: ContainerStatus) -> str:
        if is_main_container(self.owner, container.name):
            return f"pin logs {self.owner.metadata.name}"
        return f"kubectl logs {self.pod.metadata.name} -c {container.name} -n {self.owner.metadata.namespace}"

    @property
    def show_command(self) -> str:
        """The command that lists the events of the workload."""
        return f"pin show {self.owner.metadata.name}"

    @property
    def disruption(self) -> PodCondition | None:
        return find_disruption(self.pod)

    def runtime_part(self, container: ContainerStatus) -> str:
        """The runtime part that injected the container, such as `logs-2`; empty for containers of the workload."""
        return next((part for part in self.pod.parts if container.name in _part_containers(part, self.runtimes)), "")

    def gate_contact(self, message: str) -> str:
        """The contact for a closed readiness gate: the runtime part that declares a gate has to open it."""
        known = (part for part in self.pod.parts if part in self.runtimes.parts)
        part = next(
            (
                part
                for part in known
                if any(f'"{gate}"' in message for gate in self.runtimes.parts[part].spec.readiness_gates)
            ),
            "",
        )
        return f"tell the infrastructure team{f' that {part} does not open it' if part else ''}"

    def container_cause(self, container: ContainerStatus, problem: Problem, rank: Rank = Rank.PERMANENT) -> Cause:
        """The cause at one container. In a container of a runtime part, the infrastructure team has to act."""
        part = self.runtime_part(container)
        return self.own_cause(container, _part_problem(problem, part) if part else problem, rank)

    def own_cause(self, container: ContainerStatus, problem: Problem, rank: Rank = Rank.PERMANENT) -> Cause:
        """The cause at one container, with the reason that the container itself reports."""
        where = Where(object=f"{self.where} container {container.name}")
        start_order = [each.name for each in self.containers].index(container.name)
        return Cause(problem._replace(where=where), rank, start_order, container.name)

    @property
    def kubelet_has_acted(self) -> bool:
        return bool(self.pod.status.start_time or self.containers)

    def pod_started_at(self) -> datetime | None:
        """Time at which the kubelet accepted the pod, or of its creation before that."""
        created = self.pod.metadata.creation_timestamp
        return self.pod.status.start_time or (datetime.fromisoformat(created) if created else None)

    def seconds_since(self, moment: datetime | None) -> float:
        """Seconds since then; 0 for an unknown moment, so that nothing is reported too early."""
        return (self.now - moment).total_seconds() if moment else 0.0


PodCheck = Callable[[PodContext], Causes]


def find_disruption(pod: Pod) -> PodCondition | None:
    """The condition that Kubernetes sets on a pod which it evicts, preempts or deletes with its node."""
    found = (each for each in pod.status.conditions if (each.type, each.status) == ("DisruptionTarget", "True"))
    return next(found, None)


def is_main_container(owner: Workload, name: str) -> bool:
    """True for the container that the short form of the file describes."""
    main = main_container(owner.spec.template, owner.main_container_name, own=bool(owner.spec.image))
    return name == (main or {}).get("name", owner.main_container_name)


def template_container(owner: Workload, name: str) -> Object:
    """The container in the workload's own template; empty if the template does not have it."""
    spec = owner.spec.template.get("spec", {})
    containers = (*spec.get("initContainers", ()), *spec.get("containers", ()))
    return next((each for each in containers if each.get("name") == name), {})


def _part_containers(part: str, runtimes: Runtimes) -> tuple[str, ...]:
    """Names of a part's containers. The short form has one, with the name of the part without its version."""
    known = runtimes.parts.get(part)
    containers = (*known.spec.init_containers, *known.spec.sidecars) if known else ()
    return (part.rpartition("-")[0], *(str(each.get("name")) for each in containers))


def _part_problem(problem: Problem, part: str) -> Problem:
    return Problem(
        RUNTIME_PART_FAILING,
        f"runtime part {part} fails",
        note=problem.message(),
        next=f"tell the infrastructure team that {part} fails: {problem.reason.code}",
    )
