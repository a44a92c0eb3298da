"""Which lives of which containers there are lines of, and where each is read: from its pod, or from the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pincompute.api.logs import Life, Mark
from pincompute.api.status import SUCCEEDED
from pincompute.api.workload import Workload
from pincompute.planning.pods.lives import TELLING, Begun, Pod, copy_of, how, lives_of
from pincompute.planning.snapshot import Container


class Turn(NamedTuple):
    """One life, whose lines are read at one place."""

    copy: str
    life: Life
    program: bool
    """Whether it is the workload's own program."""
    stored: bool = False
    """Whether its pod can no longer tell."""
    previous: bool = False
    """Whether its pod tells it as the life before."""

    @property
    def container(self) -> str:
        """As lines name it; nothing where it goes without saying."""
        return "" if self.program else self.life.container


class Series(NamedTuple):
    """The lives of one container in one pod, in their order."""

    turns: Sequence[Turn]

    @property
    def copy(self) -> str:
        return self.turns[0].copy

    @property
    def gone(self) -> bool:
        return bool(self.turns[-1].life.gone)

    @property
    def failed(self) -> bool:
        last = self.turns[-1].life.end
        return last is not None and last.exit_code != 0

    @property
    def ended_badly(self) -> str:
        """When that was the last time; empty where it never has."""
        ends = (each.life.end for each in self.turns)
        return max((each.at for each in ends if each is not None and each.exit_code != 0), default="")

    def mark(self, index: int) -> Mark | None:
        """What is told behind the lines of one life: how it ended, where that was not well or not the end."""
        turn, later = self.turns[index], index + 1 < len(self.turns)
        end, gone = turn.life.end, turn.life.gone
        ended = f"ended: {how(end)}" if end and (later or end.exit_code) else "ended" if later else ""
        then = "started again" if later else "its pod is gone" if gone else ""
        said = ", ".join(each for each in (ended, then) if each)
        at = (end.at if end else "") or gone
        return Mark(turn.copy, at, said) if said else None


class Whose(NamedTuple):
    """A workload as far as its lines are concerned; one that was deleted has no attempts to tell tasks by."""

    name: str
    main: str
    attempts: Mapping[int, str] = {}
    created: str = ""
    """What ran before is of another one, which had the same name."""
    goes_on: bool = False
    """Whether a copy that is gone has a successor."""

    @classmethod
    def of(cls, name: str, workload: Workload | None) -> Whose:
        if workload is None:
            return cls(name, name)
        tasks = {each.number: each.tasks for each in getattr(workload.status, "attempts", ())}
        goes_on = workload.GOAL != SUCCEEDED
        return cls(name, workload.main, tasks, workload.metadata.creation_timestamp, goes_on)

    def leaves_out(self, series: Sequence[Series]) -> list[Series]:
        """What nobody means who names no copy: those that were, while others are there in their place."""
        before = [each for each in series if each.turns[-1].life.created < self.created]
        there = any(not each.gone for each in series)
        return [each for each in series if each in before or (self.goes_on and there and each.gone)]


class Asked(NamedTuple):
    """Which lines somebody wants to hear of."""

    project: str
    whose: Whose
    container: str = ""
    copy: str = ""

    def takes(self, turn: Turn) -> bool:
        return self.copy in ("", turn.copy, turn.life.pod)


def series_of(whose: Whose, pods: Iterable[Pod], kept: Iterable[Life], container: str) -> list[Series]:
    """Of the named container, or of the program and all files of the log volume."""
    pods = list(pods)
    mains = {pod.metadata.uid: program_of(pod, whose.main) for pod in pods}
    found = {_key(turn.life): turn for pod in pods for turn in turns_of(whose, pod, container)}
    lives = list(kept)
    for life in lives:
        mains.setdefault(life.uid, "")
        mains[life.uid] = mains[life.uid] or _main(whose, life, lives)
    for life in lives:
        program = life.container == mains[life.uid]
        chosen = life.container == container if container else program or life.of_a_file
        told = found.get(_key(life))
        if chosen and (told is None or told.previous):
            # A node forgets a former life when it likes; how it ended, its pod knows at once.
            ended = told.life if told else life
            found[_key(life)] = kept_turn(whose, life, program=program)._replace(life=ended)
    together: dict[tuple[str, str], list[Turn]] = {}
    for key in sorted(found):
        together.setdefault(key[:2], []).append(found[key])
    return [Series(turns) for turns in together.values()]


def kept_turn(whose: Whose, life: Life, *, program: bool = False) -> Turn:
    """Of what is read from the store: which copy it was, the labels say that are kept of its pod."""
    return Turn(_copy(whose, life.pod, life.labels), life, program, stored=True)


def turns_of(whose: Whose, pod: Pod, container: str) -> list[Turn]:
    """What a pod that is there tells by itself."""
    main = program_of(pod, whose.main)
    wanted = container or main
    return [
        _turn(whose, pod, each, begun, program=each.name == main)
        for each in pod.containers
        if each.name == wanted
        for begun in lives_of(each)
    ]


def program_of(pod: Pod, main: str) -> str:
    """The container of the workload's own, among those that stand beside it."""
    names = [each.name for each in pod.spec.containers]
    return main if main in names else names[0] if names else main


def _turn(whose: Whose, pod: Pod, container: Container, begun: Begun, *, program: bool) -> Turn:
    metadata = pod.metadata
    life = Life(
        pod=metadata.name, uid=metadata.uid, container=container.name, restart=begun.restart, end=begun.end,
        created=metadata.creation_timestamp,
    )  # fmt: skip
    labels = {name: metadata.labels[name] for name in TELLING if name in metadata.labels}
    return Turn(_copy(whose, metadata.name, labels), life, program, previous=begun.previous)


def _copy(whose: Whose, pod: str, labels: Mapping[str, str]) -> str:
    return copy_of(whose.name, pod, labels, whose.attempts)


def _main(whose: Whose, life: Life, lives: Sequence[Life]) -> str:
    beside = {each.container for each in lives if each.uid == life.uid}
    return whose.main if whose.main in beside else life.main


def _key(life: Life) -> tuple[str, str, int]:
    return (life.uid, life.container, life.restart)
