"""PinterestJobSet: a batch of tasks that run the same program, each on its share of the work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pincompute.api.cancellation import Cancellation
from pincompute.api.custom_resource import FieldError, ValidationRule
from pincompute.api.job_set_status import JobSetStatus
from pincompute.api.status import SUCCEEDED
from pincompute.api.structs import count_or_percent_meta
from pincompute.api.task import FAILED_TASKS, Attempt, TaskClaim
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.objects.number_sets import largest_number, scaled_value

MAX_TASKS = 10_000
MAX_RETAINED_TASKS = 100
"""Tasks with retained claims: each of them needs a Job of its own."""
MAX_RETAINED_BYTES = 1_000_000
"""Total size of the specs of those Jobs, each of which repeats the program."""
MAX_TASK_DATA_BYTES = 450_000
"""Total size of task items and files, so that all of them fit into one ConfigMap together with the file names."""
MAX_TASK_FILES = 20_000
NUMBER_FILE, ITEM_FILE = "number", "item"
"""Files in which a task finds its number and its item."""
_TASK_VARIABLE = re.compile(rb"\bPIN_TASK\b")
"""Name of the environment variable with the number of a task, as a command or its shell refers to it."""


class JobSetSpec(WorkloadSpec, frozen=True, kw_only=True):
    """Program, tasks and success criteria of a job set."""

    tasks: Annotated[
        int, Meta(description="Number of tasks, such as 500. Tasks are numbered from 0.", ge=1, le=MAX_TASKS)
    ] = 0
    items: Annotated[
        list[Annotated[str, Meta(max_length=65_536)]],
        Meta(
            description="One task for each item, such as [2026-01.csv, 2026-02.csv]. The task finds its item in the "
            "file `item` of taskPath.",
            min_length=1,
            max_length=MAX_TASKS,
        ),
    ] = []
    task_path: Annotated[
        str,
        Meta(
            description="Directory in which a task finds the files `number` and `item`; /etc/task by default. In a "
            "rerun of selected tasks only the file has the number, not the environment variable.",
            pattern="^/[^:]*[^/:]$",
            max_length=256,
        ),
    ] = "/etc/task"
    task_configuration: Annotated[
        dict[str, Annotated[str, Meta(max_length=65_536)]],
        Meta(
            description="Further files in taskPath; $(PIN_TASK), $(PIN_TASKS) and $(PIN_ITEM) are replaced by the "
            "values of the task, such as job.ini: shard = $(PIN_TASK).",
            max_length=32,
        ),
    ] = {}
    parallelism: Annotated[
        int,
        Meta(description="Number of tasks that run at the same time, such as 20; all by default.", ge=1, le=MAX_TASKS),
    ] = 0
    retries: Annotated[
        int,
        Meta(
            description="How often a failed task is retried, such as 5; 2 by default. Failures caused by a node or "
            "the platform do not count.",
            ge=0,
            le=100,
        ),
    ] = 2
    retry_exit_codes: Annotated[
        list[Annotated[int, Meta(ge=1, le=255)]],
        Meta(description="Exit codes that are retried, such as [75]; all except 0 by default.", max_length=64),
    ] = []
    deadline_seconds: Annotated[
        int,
        Meta(
            description="Maximum duration of an attempt in seconds, such as 7200; unlimited by default.",
            ge=1,
            le=31_536_000,
        ),
    ] = 0
    task_deadline_seconds: Annotated[
        int,
        Meta(
            description="Maximum duration of one task in seconds, such as 600; unlimited by default.",
            ge=1,
            le=31_536_000,
        ),
    ] = 0
    enough: Annotated[
        int | str,
        count_or_percent_meta(
            "Number or percentage of tasks that must succeed for the job set to succeed, such as 450 or 90%; all by "
            "default."
        ),
    ] = ""
    max_failed: Annotated[
        int | str,
        count_or_percent_meta(
            "Number or percentage of failed tasks that are tolerated, such as 10 or 5%; one more ends the attempt; "
            "unlimited by default."
        ),
    ] = ""
    keep_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which finished pods and their logs are kept, such as 3600; 86400 by default. "
            "The results stay in the status.",
            ge=60,
            le=31_536_000,
        ),
    ] = 86_400
    suspended: Annotated[
        str,
        Meta(
            description="Suspends the job set. The value names the user and the reason, such as ann: input is "
            "wrong. Running "
            "tasks are ended and start over when it is resumed.",
            max_length=256,
        ),
    ] = ""
    cancelled: Annotated[
        Cancellation | None,
        Meta(
            description="Cancels attempts, as pin cancel does, such as {attempt: 1, by: ann}. Running tasks are ended, "
            "and finished ones keep their results."
        ),
    ] = None
    claims: Annotated[
        list[TaskClaim],
        Meta(description="Storage of each task, such as - {name: scratch, path: /scratch, size: 10Gi}.", max_length=8),
    ] = []
    attempts: Annotated[
        list[Attempt],
        Meta(
            description="Reruns, one attempt after the other, such as - {tasks: failed, memory: 1Gi}. An attempt "
            "that has begun cannot be changed; add another. A task of a rerun reads its number from the "
            "file `number` in taskPath; it has no environment variable.",
            max_length=20,
        ),
    ] = []

    @property
    def task_count(self) -> int:
        return len(self.items) or self.tasks

    @property
    def uses_task_variable(self) -> bool:
        """True if the file refers to the variable PIN_TASK, so that each pod has to have it."""
        texts = (self.command, self.arguments, self.environment, self.template)
        return any(_TASK_VARIABLE.search(msgspec.json.encode(each)) for each in texts)

    @property
    def has_retained_claims(self) -> bool:
        """Tasks have claims that outlive them, so that each task needs a Job of its own."""
        return any(each.retained for each in self.claims)

    @property
    def required_tasks(self) -> int:
        """Number of tasks that must succeed."""
        return self.task_count if self.enough == "" else scaled_value(self.enough, self.task_count, up=True)

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from super().field_errors(name)
        if bool(self.tasks) == bool(self.items):
            what = "tasks and items cannot be used together" if self.tasks else "tasks or items is required"
            yield FieldError(("tasks",), what, next="write tasks: NUMBER, or items: [...]")
            return
        yield from _limit_errors(self)
        yield from _file_errors(self)
        yield from _claim_errors(self)
        for index, attempt in enumerate(self.attempts):
            yield from _attempt_errors(self, attempt, index)
        yield from self.cost_errors()

    def cost_errors(self) -> Iterator[FieldError]:
        """Errors that would keep the operator busy for minutes.

        It checks them, too: a client of the Kubernetes API writes a job set without the desk's validation.
        """
        yield from _retained_size_errors(self)
        for index, attempt in enumerate(self.attempts):
            try:
                if attempt.tasks != FAILED_TASKS:
                    largest_number(attempt.tasks)
            except ValueError as error:
                yield FieldError(("attempts", index, "tasks"), str(error))


def _limit_errors(spec: JobSetSpec) -> Iterator[FieldError]:
    """Limits that exceed the number of tasks."""
    if spec.parallelism > spec.task_count:
        yield FieldError(
            ("parallelism",),
            f"parallelism is {spec.parallelism:,}, but there are only {spec.task_count:,} tasks",
            next="leave it out",
        )
    for field, limit in (("enough", spec.enough), ("maxFailed", spec.max_failed)):
        if (_limited_tasks(limit, spec.task_count) or 0) > spec.task_count:
            yield FieldError((field,), f"{field} is {limit}, but there are only {spec.task_count:,} tasks")
    if _limited_tasks(spec.enough, spec.task_count) == 0:
        yield FieldError(
            ("enough",), "enough is 0: the job set would succeed without running", next="leave it out: all must succeed"
        )
    pod = spec.template.get("spec")
    if spec.task_deadline_seconds and isinstance(pod, dict) and "activeDeadlineSeconds" in pod:
        what = "taskDeadlineSeconds and the template's activeDeadlineSeconds cannot be used together"
        yield FieldError(("taskDeadlineSeconds",), what, next="remove one of the two")
    if 0 < spec.deadline_seconds < spec.task_deadline_seconds:
        yield FieldError(
            ("taskDeadlineSeconds",),
            f"taskDeadlineSeconds is {spec.task_deadline_seconds}, but deadlineSeconds only {spec.deadline_seconds}",
        )


def _limited_tasks(limit: int | str, count: int) -> int | None:
    """Number of tasks; None without a limit, and for a text that is no number, which is reported as of a wrong type."""
    try:
        return None if limit == "" else scaled_value(limit, count, up=True)
    except ValueError:
        return None


def _file_errors(spec: JobSetSpec) -> Iterator[FieldError]:
    for file in spec.task_configuration:
        if file in {NUMBER_FILE, ITEM_FILE}:
            yield FieldError(("taskConfiguration", file), f"the file '{file}' is written by the platform")
        elif not file.strip(".") or not all(each.isascii() and (each.isalnum() or each in "-_.") for each in file):
            note = "letters, digits and - _ . are allowed"
            yield FieldError(("taskConfiguration", file), f"invalid file name '{file}'", note)
        elif len(file) > 200:
            what = f"the file name has {len(file)} characters, the maximum is 200"
            yield FieldError(("taskConfiguration", file), what)
    yield from _task_data_errors(spec)


def _task_data_errors(spec: JobSetSpec) -> Iterator[FieldError]:
    """Items and files of all tasks are stored in one ConfigMap, which limits their size and number."""
    path = ("items",) if spec.items else ("taskConfiguration",)
    files_size = sum(len(each.encode()) for each in spec.task_configuration.values()) * spec.task_count
    size = sum(len(each.encode()) for each in spec.items) + files_size
    if size > MAX_TASK_DATA_BYTES:
        what = (
            f"items and files of the {spec.task_count:,} tasks have {size:,} bytes together, "
            f"the maximum is {MAX_TASK_DATA_BYTES:,}"
        )
        yield FieldError(path, what, next="store the list outside the cluster, and let each task read its line")
    count = (1 + bool(spec.items) + len(spec.task_configuration)) * spec.task_count
    if count > MAX_TASK_FILES:
        what = f"the {spec.task_count:,} tasks have {count:,} files together, the maximum is {MAX_TASK_FILES:,}"
        yield FieldError(path, what, next="combine the files of a task into one")


def _claim_errors(spec: JobSetSpec) -> Iterator[FieldError]:
    names: set[str] = set()
    paths: set[str] = set()
    for index, claim in enumerate(spec.claims):
        if claim.name in names:
            yield FieldError(("claims", index, "name"), f"duplicate claim name '{claim.name}'")
        if claim.path in paths:
            yield FieldError(("claims", index, "path"), f"two claims have the path {claim.path}")
        names.add(claim.name)
        paths.add(claim.path)
        if claim.retained and spec.task_count > MAX_RETAINED_TASKS:
            what = f"'{claim.name}' is retained for {spec.task_count:,} tasks, the maximum is {MAX_RETAINED_TASKS}"
            yield FieldError(("claims", index, "retained"), what, next="remove retained, or use fewer tasks")


def _retained_size_errors(spec: JobSetSpec) -> Iterator[FieldError]:
    if not spec.has_retained_claims:
        return
    size = spec.task_count * len(msgspec.json.encode(msgspec.structs.replace(spec, items=[], configuration={})))
    if size > MAX_RETAINED_BYTES:
        what = f"the Jobs of {spec.task_count} tasks with retained claims have {size:,} bytes together"
        note = f"the maximum is {MAX_RETAINED_BYTES:,}"
        yield FieldError(("claims",), what, note, "remove retained, use fewer tasks, or shorten the template")


def _attempt_errors(spec: JobSetSpec, attempt: Attempt, index: int) -> Iterator[FieldError]:
    path = ("attempts", index, "tasks")
    if attempt.tasks == FAILED_TASKS:
        return
    if attempt.reason != "Any":
        yield FieldError(path, "task numbers and reason cannot be used together", next="remove one of the two")
    try:
        largest = largest_number(attempt.tasks)
    except ValueError:
        # One of the errors by cost.
        return
    if largest >= spec.task_count:
        note = f"the {spec.task_count:,} tasks are 0 to {spec.task_count - 1}"
        yield FieldError(path, f"there is no task {largest}", note)


class PinterestJobSet(Workload, frozen=True, kw_only=True, rename=None):
    """Tasks that run the same program in parallel, each on its share of the work, until all are done."""

    GOAL: ClassVar[str] = SUCCEEDED
    KIND_NAME: ClassVar[str] = "a job set"
    STATUS_NATIVES: ClassVar[tuple[str, ...]] = ("Job",)
    REPLICA_NOUN: ClassVar[tuple[str, str]] = ("task", "tasks")
    MAX_NAME_LENGTH: ClassVar[int] = 45
    """Revision, attempt and task number are appended to the name, and 63 characters is the limit for pod names."""
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptj",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Revision", "integer", ".status.revision"),
        ("Tasks", "integer", ".status.tasks"),
        ("Done", "integer", ".status.done"),
        ("Failed", "integer", ".status.failed"),
        ("Reason", "string", '.status.conditions[?(@.type=="Succeeded")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        *Workload.VALIDATION_RULES,
        ValidationRule(
            "has(self.spec.tasks) != has(self.spec.items)", "exactly one of spec.tasks and spec.items must be set"
        ),
        ValidationRule(
            "!has(self.spec.parallelism) || (has(self.spec.tasks) ? self.spec.parallelism <= self.spec.tasks : "
            "!has(self.spec.items) || self.spec.parallelism <= size(self.spec.items))",
            "spec.parallelism must not be larger than the number of tasks",
        ),
    )

    spec: JobSetSpec
    status: JobSetStatus = JobSetStatus()
    kind: str = "PinterestJobSet"

    @property
    def progress_counts(self) -> tuple[int, int]:
        """Succeeded tasks and all tasks."""
        return self.status.done, self.spec.task_count

    @property
    def attempt(self) -> int:
        """Number of the last attempt that has begun."""
        return max((each.number for each in self.status.attempts), default=1)

    @property
    def failure_is_partial(self) -> bool:
        """A failed task does not stop the others."""
        return self.status.failed > 0
