"""The store: files of lines, `PROJECT/WORKLOAD/POD_UID/CONTAINER/LIFE.log`, which outlive the pods they are of."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec
import structlog

from pincompute.agents.logs import lines
from pincompute.agents.logs.hearers import Hearers
from pincompute.agents.logs.keeping import Limits, Lying, decide
from pincompute.agents.logs.kept import Kept
from pincompute.agents.logs.place import Batch, Position, Stream
from pincompute.agents.logs.pods import Known, Pods, known_of
from pincompute.api.logs import Entry, Fresh, Life
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import LOGS_FULL
from pincompute.objects.times import instant, stamp
from pincompute.planning.pods.lives import Pod

SHORT = 256 << 10
"""Bytes that the last lines of a stream are taken to have, for the sum of all."""
_POD = "pod.json"
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")

log = structlog.get_logger()


class Store:
    def __init__(
        self,
        folder: Path,
        limits: Limits = Limits(),  # noqa: B008  (a value that never changes)
        free: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self.pods = Pods()
        self.hearers = Hearers()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._limits = limits
        self._free = free
        self._kept: dict[Stream, Kept] = {}
        self._room: int | None = None
        """Bytes that may still be taken; not known before its house was kept for the first time."""
        self._owed: dict[str, Known] = {}
        """What could not be written of pods, by their uids, and is tried again."""

    def position(self, stream: Stream, known: Known) -> Position:
        return self._of(stream, known).position

    @property
    def crowded(self) -> bool:
        """Whether its house should be kept soon."""
        return self._room is not None and self._room < self._limits.spare // 2

    def take(self, batch: Batch, known: Known) -> tuple[bool, Position]:
        """Whether it was stored, and where the stream is now; refused where there is no room."""
        if self._room is not None and len(batch.lines) > self._room:
            raise Refused(_full("it holds as much as it may"))
        kept = self._of(batch.stream, known)
        try:
            if not kept.path.parent.exists():
                kept.path.parent.mkdir(parents=True)
                self._remember(known)
            taken = kept.take(batch)
        except OSError as error:
            # Somebody else has filled the disk since it looked.
            self._room = 0
            raise Refused(_full(error.strerror or str(error))) from error
        if taken and self._room is not None:
            self._room -= len(batch.lines)
        life = _life(known, batch.stream.container, batch.stream.restart)
        if taken and life.of_a_file and self.hearers.any(known.project, known.workload):
            self.hearers.tell(known.project, known.workload, Fresh(life, _entries(batch.lines.split(b"\n"))))
        return taken, kept.position

    def see(self, pod: Pod) -> None:
        """Of a pod that has said something, what becomes of it is on disk as well."""
        before = self._recall(pod)
        known = self.pods.see(pod)
        if known != before and self._pod(known).exists():
            self._remember(known)

    def forget(self, pod: Pod, now: datetime) -> None:
        self._recall(pod)
        known = self.pods.forget(pod, stamp(now))
        if self._pod(known).exists():
            self._remember(known)
        for stream in [each for each in self._kept if each.uid == known.uid]:
            del self._kept[stream]

    def catch_up(self, now: datetime) -> None:
        """Pods that went away while nobody looked: told apart once all are seen that there are."""
        for known in list(self._all()):
            if not known.gone and self.pods.get(known.uid) is None:
                self._remember(msgspec.structs.replace(known, gone=stamp(now)))

    def lives(self, project: str, workload: str) -> list[Life]:
        """All that is kept of a workload, whether it is still there or not."""
        found: list[Life] = []
        for pod in sorted(_folders(self._folder / _safe(project) / _safe(workload))):
            known = _read(pod)
            if known is None:
                continue
            for container in sorted(_folders(pod)):
                found += [_life(known, container.name, number) for number in sorted(_numbers(container))]
        return found

    def entries(self, project: str, workload: str, life: Life, *, tail: int, since: int) -> list[Entry]:
        """Its last lines; what a runtime has broken in pieces is one line again."""
        pod = self._folder / _safe(project) / _safe(workload) / f"{_safe(life.pod)}_{_safe(life.uid)}"
        kept = Kept(pod / _safe(life.container) / f"{life.restart}.log")
        found = [each for each in _entries(kept.last()) if not since or instant(each.time) > since]
        return found[-tail:] if tail else []

    def keep_house(self, now: datetime) -> None:
        """By the limits, of which the disk may be one: where others fill it, what they need is given back to them."""
        lying = [*self._lying(now)]
        decision = decide(lying, self._limits._replace(total=self._most(lying)), SHORT)
        # To shorten needs a little room itself.
        for each in decision.removed:
            self._remove(each)
        for each in decision.shortened:
            with _told("not shortened"):
                self._at(each).shorten(self._limits.lines)
        for known in list(self._owed.values()):
            self._remember(known)
        left = [*self._lying(now)]
        self._room = self._most(left) - sum(each.size for each in left)
        if decision.shortened or decision.removed:
            log.info("logs shortened", shortened=len(decision.shortened), removed=len(decision.removed))

    def _most(self, lying: Sequence[Lying]) -> int:
        there = sum(each.size for each in lying)
        return min(self._limits.total, max(0, there + self._free(self._folder) - self._limits.reserve))

    def _remove(self, lying: Lying) -> None:
        """What is gone for good takes its pod's folder with it."""
        kept = self._at(lying)
        kept.path.unlink(missing_ok=True)
        kept.former.unlink(missing_ok=True)
        _remove_empty(kept.path.parent, self._folder)

    def _lying(self, now: datetime) -> Iterator[Lying]:
        for pod in self._pods():
            known = _read(pod)
            gone = now.timestamp() - instant(known.gone) / 1e9 if known and known.gone else -1.0
            for container in _folders(pod):
                for number in _numbers(container):
                    kept = Kept(container / f"{number}.log")
                    place = str(kept.path.relative_to(self._folder))
                    yield Lying(place, pod.name, container.name, number, kept.size(), gone)

    def _at(self, lying: Lying) -> Kept:
        path = self._folder / lying.place
        return next((each for each in self._kept.values() if each.path == path), None) or Kept(path)

    def _of(self, stream: Stream, known: Known) -> Kept:
        kept = self._kept.get(stream)
        if kept is None:
            path = self._pod(known).parent / _safe(stream.container) / f"{stream.restart}.log"
            kept = self._kept[stream] = Kept(path)
        return kept

    def _pod(self, known: Known) -> Path:
        folder = self._folder / _safe(known.project) / _safe(known.workload) / f"{_safe(known.name)}_{_safe(known.uid)}"
        return folder / _POD

    def _remember(self, known: Known) -> None:
        """Soon, where it cannot be now: that a disk is full is nobody's end."""
        path = self._pod(known)
        fresh = path.with_suffix(".new")
        self._owed[known.uid] = known
        with _told("a pod's end is not remembered yet"):
            fresh.write_bytes(msgspec.json.encode(known))
            fresh.replace(path)
            del self._owed[known.uid]

    def _recall(self, pod: Pod) -> Known | None:
        """What was known of it before; also by the process before this one."""
        before = self.pods.get(pod.metadata.uid)
        if before is None:
            before = _read(self._pod(known_of(pod, None)).parent)
            if before is not None:
                self.pods.remember(before)
        return before

    def _pods(self) -> Iterator[Path]:
        for project in _folders(self._folder):
            for workload in _folders(project):
                yield from _folders(workload)

    def _all(self) -> Iterator[Known]:
        return (known for known in map(_read, self._pods()) if known)


@contextmanager
def _told(what: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        log.error(what, why=error.strerror or str(error))


def _full(why: str) -> Problem:
    return Problem(LOGS_FULL, "the store of logs takes no more", note=why, next="make room on its disk")


def _life(known: Known, container: str, number: int) -> Life:
    return Life(
        pod=known.name, uid=known.uid, container=container, restart=number, labels=known.labels, main=known.main,
        created=known.created, gone=known.gone, end=known.ends.get(container, {}).get(number),
    )  # fmt: skip


def _entries(kept: Iterable[bytes]) -> list[Entry]:
    return [*joined(each for each in map(lines.read, kept) if each)]


def joined(found: Iterator[lines.Line]) -> Iterator[Entry]:
    """The pieces of a line follow each other, but for those of the other stream."""
    begun: dict[str, list[str]] = {}
    time = ""
    for each in found:
        time = each.time
        begun.setdefault(each.stream, []).append(each.text)
        if each.whole:
            yield Entry(time, "".join(begun.pop(each.stream)))
    for pieces in begun.values():
        yield Entry(time, "".join(pieces))


def _safe(name: str) -> str:
    """A name of ours, or of a file that somebody chose: never a way out of the folder."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise ValueError(f"{name!r} is no name")
    return name


def _read(pod: Path) -> Known | None:
    try:
        return msgspec.json.decode((pod / _POD).read_bytes(), type=Known)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _folders(folder: Path) -> list[Path]:
    try:
        return [each for each in folder.iterdir() if each.is_dir()]
    except FileNotFoundError:
        return []


def _numbers(container: Path) -> set[int]:
    found = (each.name.partition(".log")[0] for each in container.iterdir())
    return {int(each) for each in found if each.isdigit()}


def _remove_empty(container: Path, root: Path) -> None:
    """And the folders above, as far as nothing else is in them."""
    pod = container.parent
    if not any(container.iterdir()):
        container.rmdir()
    if not _folders(pod):
        shutil.rmtree(pod, ignore_errors=True)
    for folder in (pod.parent, pod.parent.parent):
        if folder != root and folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
