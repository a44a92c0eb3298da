"""PinterestJobSet: many tasks that run the same program, each on its part of the work, to the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from pincompute.api.job_set_status import JobSetStatus
from pincompute.api.noun import Fault, Rule
from pincompute.api.status import SUCCEEDED
from pincompute.api.task import FAILED, Attempt, TaskClaim
from pincompute.api.wire import share
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.objects.numbers import parse, share_of

MAX_TASKS = 10_000
MAX_RETAINED = 100
"""Tasks that keep claims of their own: each is a Job of its own then."""
MAX_TOLD = 450_000
"""Bytes that the tasks are told; with the names of so many files it is what one object holds."""
MAX_FILES = 20_000
NUMBER, ITEM = "number", "item"
"""The files in which each task finds what it is."""
VARIABLE = "$(PIN_TASK)"
"""The same as a variable, in a command."""


class JobSetSpec(WorkloadSpec, frozen=True, kw_only=True):
    """What runs, on which parts of the work, and when it is done."""

    tasks: Annotated[
        int, Meta(description="How many tasks there are, such as 500, numbered from 0.", ge=1, le=MAX_TASKS)
    ] = 0
    items: Annotated[
        list[Annotated[str, Meta(max_length=65_536)]],
        Meta(
            description="A task for each of these, such as [2026-01.csv, 2026-02.csv], in the file `item` of taskPath.",
            min_length=1,
            max_length=MAX_TASKS,
        ),
    ] = []
    task_path: Annotated[
        str,
        Meta(
            description="The folder in which a task finds the files `number` and `item`; /etc/task by default. "
            "Where a chosen few run again, only the file tells the number, and no variable.",
            pattern="^/[^:]*[^/:]$",
            max_length=256,
        ),
    ] = "/etc/task"
    task_configuration: Annotated[
        dict[str, Annotated[str, Meta(max_length=65_536)]],
        Meta(
            description="Further files of taskPath, in which $(PIN_TASK), $(PIN_TASKS) and $(PIN_ITEM) stand for the "
            "task's own, such as job.ini: shard = $(PIN_TASK).",
            max_length=32,
        ),
    ] = {}
    parallelism: Annotated[
        int, Meta(description="Tasks that run at the same time, such as 20; all by default.", ge=1, le=MAX_TASKS)
    ] = 0
    retries: Annotated[
        int,
        Meta(
            description="How often a task that failed is tried again, such as 5; 2 by default. "
            "What a node or the platform ended does not count.",
            ge=0,
            le=100,
        ),
    ] = 2
    retry_exit_codes: Annotated[
        list[Annotated[int, Meta(ge=1, le=255)]],
        Meta(description="Exit codes that are worth a retry, such as [75]; all but 0 by default.", max_length=64),
    ] = []
    deadline_seconds: Annotated[
        int,
        Meta(
            description="Seconds that an attempt may take in all, such as 7200; no end by default.", ge=1, le=31_536_000
        ),
    ] = 0
    task_deadline_seconds: Annotated[
        int, Meta(description="Seconds that each task may take, such as 600; no end by default.", ge=1, le=31_536_000)
    ] = 0
    enough: Annotated[
        int | str, share("Tasks that must be done for it to have succeeded, such as 450 or 90%; all by default.")
    ] = ""
    max_failed: Annotated[
        int | str, share("Failed tasks that are borne, such as 10 or 5%: one more ends the attempt; any by default.")
    ] = ""
    keep_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which what has ended can be looked at, such as 3600; 86400 by default. "
            "The results stay in the status.",
            ge=60,
            le=31_536_000,
        ),
    ] = 86_400
    suspended: Annotated[
        str,
        Meta(
            description="Who keeps it still, and why, such as ann: input is wrong. What runs is ended and begins anew.",
            max_length=256,
        ),
    ] = ""
    claims: Annotated[
        list[TaskClaim],
        Meta(description="Storage of each task, such as - {name: scratch, path: /scratch, size: 10Gi}.", max_length=8),
    ] = []
    attempts: Annotated[
        list[Attempt],
        Meta(
            description="What runs again, one attempt after the other, such as - {tasks: failed, memory: 1Gi}. "
            "What has begun stays as it was; add another. A task that runs again reads its number from the file "
            "`number` in taskPath: it has no variable for it.",
            max_length=20,
        ),
    ] = []

    @property
    def count(self) -> int:
        return len(self.items) or self.tasks

    @property
    def retained(self) -> bool:
        """Whether each task has claims that outlive it, and is a Job of its own therefore."""
        return any(each.retained for each in self.claims)

    @property
    def needed(self) -> int:
        """How many tasks must be done for it to have succeeded."""
        return self.count if self.enough == "" else share_of(self.enough, self.count, up=True)

    def faults(self, name: str) -> Iterator[Fault]:
        yield from super().faults(name)
        if bool(self.tasks) == bool(self.items):
            what = "tasks and items both say how many there are" if self.tasks else "neither tasks nor items are given"
            yield Fault(("tasks",), what, next="write tasks: NUMBER, or items: [...]")
            return
        yield from _bounds(self)
        yield from _files(self)
        yield from _claims(self)
        for index, attempt in enumerate(self.attempts):
            yield from _attempt(self, attempt, index)
        yield from _unnumbered(self)


def _bounds(spec: JobSetSpec) -> Iterator[Fault]:
    """What is larger than the whole."""
    if spec.parallelism > spec.count:
        yield Fault(
            ("parallelism",),
            f"parallelism is {spec.parallelism:,}, and there are {spec.count:,} tasks",
            next="leave it out",
        )
    for field, said in (("enough", spec.enough), ("maxFailed", spec.max_failed)):
        if said != "" and share_of(said, spec.count, up=True) > spec.count:
            yield Fault((field,), f"{field} is {said}, and there are {spec.count:,} tasks")
    if spec.enough != "" and share_of(spec.enough, spec.count, up=True) == 0:
        yield Fault(
            ("enough",), "enough is 0: it would have succeeded before it began", next="leave it out: all must be done"
        )
    pod = spec.template.get("spec")
    if spec.task_deadline_seconds and isinstance(pod, dict) and "activeDeadlineSeconds" in pod:
        what = "how long a task may take stands here and in the template's activeDeadlineSeconds"
        yield Fault(("taskDeadlineSeconds",), what, next="leave one of the two out")
    if 0 < spec.deadline_seconds < spec.task_deadline_seconds:
        yield Fault(
            ("taskDeadlineSeconds",),
            f"a task may take {spec.task_deadline_seconds} seconds, and all together only {spec.deadline_seconds}",
        )


def _files(spec: JobSetSpec) -> Iterator[Fault]:
    for file in spec.task_configuration:
        if file in {NUMBER, ITEM}:
            yield Fault(("taskConfiguration", file), f"the file '{file}' of a task is ours to write")
        elif not file.strip(".") or not all(each.isascii() and (each.isalnum() or each in "-_.") for each in file):
            note = "letters, digits and - _ . are allowed"
            yield Fault(("taskConfiguration", file), f"no file can be called '{file}'", note)
        elif len(file) > 200:
            yield Fault(("taskConfiguration", file), f"the file's name has {len(file)} letters, 200 are the most")
    yield from _told(spec)


def _told(spec: JobSetSpec) -> Iterator[Fault]:
    """What all tasks are told lies in one object of the cluster, which has its bounds."""
    path = ("items",) if spec.items else ("taskConfiguration",)
    files = sum(len(each.encode()) for each in spec.task_configuration.values()) * spec.count
    size = sum(len(each.encode()) for each in spec.items) + files
    if size > MAX_TOLD:
        what = f"what the {spec.count:,} tasks are told has {size:,} bytes together, {MAX_TOLD:,} is the most"
        yield Fault(path, what, next="keep the list where the program can read it, and let each task take its line")
    count = (1 + bool(spec.items) + len(spec.task_configuration)) * spec.count
    if count > MAX_FILES:
        what = f"the {spec.count:,} tasks have {count:,} files together, {MAX_FILES:,} is the most"
        yield Fault(path, what, next="put them into one file of each task")


def _claims(spec: JobSetSpec) -> Iterator[Fault]:
    names: set[str] = set()
    paths: set[str] = set()
    for index, claim in enumerate(spec.claims):
        if claim.name in names:
            yield Fault(("claims", index, "name"), f"two claims are called '{claim.name}'")
        if claim.path in paths:
            yield Fault(("claims", index, "path"), f"two claims are seen at {claim.path}")
        names.add(claim.name)
        paths.add(claim.path)
        if claim.retained and spec.count > MAX_RETAINED:
            what = f"'{claim.name}' would be kept for {spec.count:,} tasks, {MAX_RETAINED} is the most"
            yield Fault(("claims", index, "retained"), what, next="leave retained out, or use fewer tasks")


def _unnumbered(spec: JobSetSpec) -> Iterator[Fault]:
    """A program that is handed its number by a variable cannot run again: a chosen few have no such variable."""
    for field, words in (("command", spec.command), ("arguments", spec.arguments)):
        for index, word in enumerate(words if spec.attempts else ()):
            if VARIABLE in word:
                what = f"{VARIABLE} is not known to a task that runs again"
                yield Fault((field, index), what, next=f"let the program read {spec.task_path}/{NUMBER}")


def _attempt(spec: JobSetSpec, attempt: Attempt, index: int) -> Iterator[Fault]:
    path = ("attempts", index, "tasks")
    if attempt.tasks == FAILED:
        return
    if attempt.reason != "Any":
        yield Fault(path, "tasks are chosen by their number and by a reason", next="leave one of the two out")
    try:
        chosen = parse(attempt.tasks)
    except ValueError as error:
        yield Fault(path, str(error))
        return
    if max(chosen) >= spec.count:
        yield Fault(path, f"there is no task {max(chosen)}", f"the {spec.count:,} tasks are 0 to {spec.count - 1}")


class PinterestJobSet(Workload, frozen=True, kw_only=True, rename=None):
    """Tasks that run the same program side by side, each on its part of the work, until all of it is done."""

    GOAL: ClassVar[str] = SUCCEEDED
    COPY: ClassVar[tuple[str, str]] = ("task", "tasks")
    MAX_NAME: ClassVar[int] = 45
    """Revision, attempt and task are added to it, and 63 letters are the most."""
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptj",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Revision", "integer", ".status.revision"),
        ("Tasks", "integer", ".status.tasks"),
        ("Done", "integer", ".status.done"),
        ("Failed", "integer", ".status.failed"),
        ("Reason", "string", '.status.conditions[?(@.type=="Succeeded")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        *Workload.RULES,
        Rule("has(self.spec.tasks) != has(self.spec.items)", "write one of the two: spec.tasks or spec.items"),
        Rule(
            "!has(self.spec.parallelism) || (has(self.spec.tasks) ? self.spec.parallelism <= self.spec.tasks : "
            "!has(self.spec.items) || self.spec.parallelism <= size(self.spec.items))",
            "spec.parallelism is larger than the number of tasks",
        ),
    )

    spec: JobSetSpec
    status: JobSetStatus = JobSetStatus()
    kind: str = "PinterestJobSet"

    @property
    def counted(self) -> tuple[int, int]:
        """Tasks that are done, of all."""
        return self.status.done, self.spec.count

    @property
    def attempt(self) -> int:
        """The last that has begun."""
        return max((each.number for each in self.status.attempts), default=1)

    @property
    def goes_on(self) -> bool:
        """A task that failed leaves the others alone."""
        return self.status.failed > 0
