"""What a look at a pod or a native brings: a cause, or that it is too early to tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from pincompute.api.pod import main_container
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where
from pincompute.base.reasons import RUNTIME_PART_FAILING
from pincompute.objects.content import Object
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Container, Pod, PodCondition


class Rank(IntEnum):
    """What is told first."""

    FINAL = 0
    """It can never end well by itself."""
    SLOW = 1
    """It may yet end well, and has taken longer than it should."""
    LAST = 2
    """It is so because of something else, which is told where it is known."""


class Cause(NamedTuple):
    problem: Problem
    rank: Rank = Rank.FINAL
    turn: int = 0
    """Which container in the order of their start: what starts first is often the cause of what comes after."""


class Wait(NamedTuple):
    """So far nothing is wrong; time alone can change that."""

    seconds: float


Seen = Iterator[Cause | Wait]


class Copy(NamedTuple):
    """One pod, and whose it is."""

    owner: Workload
    pod: Pod
    now: datetime
    runtimes: Runtimes = Runtimes()

    @property
    def containers(self) -> tuple[Container, ...]:
        """In the order of their start."""
        status = self.pod.status
        return (*status.init_container_statuses, *status.container_statuses)

    @property
    def where(self) -> Where:
        return Where(object=f"pod {self.pod.metadata.name}")

    def prepares(self, container: Container) -> bool:
        """It runs before the program does, or beside it as a part."""
        return any(each.name == container.name for each in self.pod.status.init_container_statuses)

    def subject(self, container: Container) -> str:
        """What a sentence about it begins with."""
        if self.part(container):
            return f"its container {container.name}"
        if self.prepares(container) and not self.pod.says("Initialized"):
            return f"{container.name}, which runs before the program,"
        return "the program" if is_main(self.owner, container.name) else f"the container {container.name}"

    def logs(self, container: Container) -> str:
        """What to type to read what it printed."""
        if is_main(self.owner, container.name):
            return f"pin logs {self.owner.metadata.name}"
        return f"kubectl logs {self.pod.metadata.name} -c {container.name} -n {self.owner.metadata.namespace}"

    @property
    def describe(self) -> str:
        """What to type to see the events."""
        return f"pin show {self.owner.metadata.name}"

    @property
    def disruption(self) -> PodCondition | None:
        """That somebody ends it, and who."""
        return next(
            (each for each in self.pod.status.conditions if each.type == "DisruptionTarget" and each.status == "True"),
            None,
        )

    def part(self, container: Container) -> str:
        """The part of the runtime that the container belongs to, such as `logs-2`."""
        return next((each for each in self.pod.parts if container.name in _brought(each, self.runtimes)), "")

    def opener(self, words: str) -> str:
        """Whom to tell of a readiness gate: the part that brought it opens it."""
        brought = (each for each in self.pod.parts if each in self.runtimes.parts)
        part = next(
            (
                each
                for each in brought
                if any(f'"{gate}"' in words for gate in self.runtimes.parts[each].spec.readiness_gates)
            ),
            "",
        )
        return f"tell the infrastructure team{f' that {part} does not open it' if part else ''}"

    def cause(self, container: Container, problem: Problem, rank: Rank = Rank.FINAL) -> Cause:
        """Said of one container; what a part does is not for the workload's owner to mend."""
        where = Where(object=f"{self.where} container {container.name}")
        part = self.part(container)
        turn = [each.name for each in self.containers].index(container.name)
        return Cause((_blamed(problem, part) if part else problem)._replace(where=where), rank, turn)

    def since(self) -> datetime | None:
        """When the node took it."""
        made = self.pod.metadata.creation_timestamp
        return self.pod.status.start_time or (datetime.fromisoformat(made) if made else None)

    def age(self, since: datetime | None) -> float:
        """Seconds; what is not known has just begun."""
        return (self.now - since).total_seconds() if since else 0.0


Look = Callable[[Copy], Seen]


def is_main(owner: Workload, name: str) -> bool:
    """The container that the short form speaks of."""
    main = main_container(owner.spec.template, owner.main, own=bool(owner.spec.image))
    return name == (main or {}).get("name", owner.main)


def given(owner: Workload, name: str) -> Object:
    """What the workload's own template says of a container."""
    spec = owner.spec.template.get("spec", {})
    containers = (*spec.get("initContainers", ()), *spec.get("containers", ()))
    return next((each for each in containers if each.get("name") == name), {})


def _brought(part: str, runtimes: Runtimes) -> tuple[str, ...]:
    """The containers of a part: in the short form one, which is called as the part without its version."""
    known = runtimes.parts.get(part)
    more = (*known.spec.init_containers, *known.spec.sidecars) if known else ()
    return (part.rpartition("-")[0], *(str(each.get("name")) for each in more))


def _blamed(problem: Problem, part: str) -> Problem:
    return Problem(
        RUNTIME_PART_FAILING,
        f"{part}, a part of the runtime, fails",
        note=problem.message(),
        next=f"tell the infrastructure team that {part} fails: {problem.reason.code}",
    )
