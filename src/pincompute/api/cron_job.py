"""PinterestCronJob: light periodic work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from pincompute.api.custom_resource import FieldError, ValidationRule
from pincompute.api.names import RUN_NOW_ANNOTATION
from pincompute.api.status import WorkloadStatus
from pincompute.api.structs import StrictStruct
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.objects.cron_schedule import NAMED_SCHEDULES, InvalidSchedule, parse_schedule
from pincompute.objects.schedule_times import load_time_zone, nearest_time_zone


def _schedule_pattern() -> str:
    """Pattern for the CRD's CEL rule: checks the range of each number, but not whether the schedule ever comes due."""
    minute, hour, day, month, weekday = (
        "[0-5]?[0-9]",
        "([01]?[0-9]|2[0-3])",
        "([1-9]|[12][0-9]|3[01])",
        "([1-9]|1[0-2]|[A-Za-z]{3})",
        "([0-6]|[A-Za-z]{3})",
    )
    parts = [f"([*?]|0*{each}(-0*{each})?)(/[0-9]{{1,4}})?" for each in (minute, hour, day, month, weekday)]
    fields = r"\s+".join(f"{each}(,{each})*" for each in parts)
    return rf"^\s*({'|'.join(NAMED_SCHEDULES)}|{fields})\s*$"


SCHEDULE_PATTERN = _schedule_pattern()
OUTCOME_SUCCEEDED, OUTCOME_FAILED = "succeeded", "failed"


class HistoryLimits(StrictStruct, frozen=True):
    """Number of finished runs to keep."""

    succeeded: Annotated[int, Meta(description="Successful runs to keep, such as 10; 3 by default.", ge=1, le=100)] = 3
    failed: Annotated[int, Meta(description="Failed runs to keep, such as 10; 3 by default.", ge=1, le=100)] = 3


class CronJobSpec(WorkloadSpec, frozen=True, kw_only=True):
    """Program and schedule of a cron job."""

    schedule: Annotated[
        str,
        Meta(
            description="Minute, hour, day, month and weekday, such as 30 3 * * mon-fri; or @hourly, @daily, "
            "@weekly, @monthly, @yearly. If day and weekday are both restricted, the job runs when "
            "either matches.",
            max_length=256,
        ),
    ]
    time_zone: Annotated[
        str,
        Meta(
            description="Time zone of the schedule, such as Europe/Berlin; UTC by default. When clocks go forward, "
            "a skipped time does not run; when they go back, a repeated time runs twice.",
            max_length=64,
        ),
    ] = "UTC"
    overlap: Annotated[
        Literal["forbid", "allow", "replace"],
        Meta(
            description="What to do when a run is due while another is still running: forbid waits for it to end, "
            "allow runs both, replace ends the running one; forbid by default. With allow, the quota counts as many "
            "runs as deadlineSeconds lets overlap; without it the active runs and the next one."
        ),
    ] = "forbid"
    start_within_seconds: Annotated[
        int,
        Meta(
            description="Seconds by which a run may start late, such as 600; 0, the default, means no limit. After "
            "an outage or a suspension only the newest missed run is started.",
            ge=0,
            le=31_536_000,
        ),
    ] = 0
    deadline_seconds: Annotated[
        int,
        Meta(
            description="Seconds after which a run is ended and counts as failed, such as 3600; 0, the default, "
            "means no limit.",
            ge=0,
            le=31_536_000,
        ),
    ] = 0
    retries: Annotated[
        int, Meta(description="How often a failed run is retried, such as 3; 2 by default.", ge=0, le=100)
    ] = 2
    keep: Annotated[HistoryLimits, Meta(description="Number of finished runs to keep.")] = HistoryLimits()
    suspended: Annotated[
        str,
        Meta(
            description="Suspends the schedule. The value names the user and the reason, such as ann: the source is "
            "down. A "
            "running job continues.",
            max_length=256,
        ),
    ] = ""

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from super().field_errors(name)
        try:
            parse_schedule(self.schedule)
        except InvalidSchedule as error:
            next_ = f'write schedule: "{error.suggestion}"' if error.suggestion else ""
            yield FieldError(("schedule",), f"schedule is {self.schedule!r}: {error}", next=next_)
        try:
            load_time_zone(self.time_zone)
        except ValueError as error:
            nearest = nearest_time_zone(self.time_zone)
            next_ = f"did you mean {nearest}?" if nearest else "use a name such as Europe/Berlin"
            yield FieldError(("timeZone",), str(error), next=next_)


class CronJobRun(StrictStruct, frozen=True):
    """One finished run."""

    name: Annotated[str, Meta(description="Job of the run, such as nightly-29484720.", max_length=63)]
    revision: Annotated[int, Meta(description="Revision that ran, such as 7; 0 if unknown.")] = 0
    due: Annotated[str, Meta(description="Scheduled time; empty for a manual run.", max_length=32)] = ""
    began: Annotated[str, Meta(description="Start time, such as 2026-01-31T12:00:00Z.", max_length=32)] = ""
    ended: Annotated[str, Meta(description="End time, such as 2026-01-31T12:01:00Z.", max_length=32)] = ""
    outcome: Annotated[str, Meta(description="succeeded or failed.", max_length=16)] = ""
    reason: Annotated[str, Meta(description="Reason of the failure, such as OutOfMemory.", max_length=64)] = ""
    message: Annotated[str, Meta(description="Explanation of the failure, with the exit code.", max_length=4096)] = ""
    next: Annotated[str, Meta(description="Command to run next, such as pin logs nightly.", max_length=512)] = ""


class CronJobStatus(WorkloadStatus, frozen=True):
    """Upcoming runs and the result of the last one."""

    next_runs: Annotated[
        list[Annotated[str, Meta(max_length=32)]],
        Meta(
            description="The next five scheduled times in the job's time zone, such as 2026-02-01T03:30:00+01:00.",
            max_length=5,
        ),
    ] = []
    running: Annotated[
        list[Annotated[str, Meta(max_length=63)]],
        Meta(description="Jobs that are running, such as nightly-29484720.", max_length=100),
    ] = []
    last_run: Annotated[CronJobRun | None, Meta(description="The last finished run.")] = None
    last_success: Annotated[str, Meta(description="End of the last successful run, such as 2026-01-31T12:01:00Z.")] = ""
    last_run_now: Annotated[
        int,
        Meta(
            description="Number of the last manual run, such as 3. A higher number starts one run: "
            f"kubectl annotate --overwrite pinterestcronjob NAME {RUN_NOW_ANNOTATION}=4"
        ),
    ] = msgspec.field(name="ranNow", default=0)
    superseded_runs: Annotated[
        list[int],
        Meta(
            description="Numbers of manual runs that did not start before the program was changed, such as 3: their "
            "Jobs are created again with the changed program.",
            max_length=100,
        ),
    ] = []
    effective_schedule: Annotated[
        str, Meta(description="Schedule and time zone in effect, such as 30 3 * * * Europe/Berlin.", max_length=512)
    ] = msgspec.field(name="follows", default="")
    effective_since: Annotated[
        str,
        Meta(description="Time since which this schedule is in effect, such as 2026-01-31T12:00:00Z.", max_length=32),
    ] = msgspec.field(name="since", default="")


class PinterestCronJob(Workload, frozen=True, kw_only=True, rename=None):
    """Light periodic work: a program that runs on a schedule and ends."""

    KIND_NAME: ClassVar[str] = "a periodic job"
    STATUS_NATIVES: ClassVar[tuple[str, ...]] = ("CronJob", "Job")
    NOT_SCALABLE: ClassVar[tuple[str, str]] = ("a periodic job has no replicas to scale", "pin rerun {name}")
    REPLICA_NOUN: ClassVar[tuple[str, str]] = ("run", "runs")
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptc",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Schedule", "string", ".spec.schedule"),
        ("Zone", "string", ".spec.timeZone"),
        ("Last", "string", ".status.lastRun.outcome"),
        ("Next", "string", ".status.nextRuns[0]"),
        ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        *Workload.VALIDATION_RULES,
        ValidationRule(
            f"self.spec.schedule.matches(r'{SCHEDULE_PATTERN}')",
            "spec.schedule has five fields (minute, hour, day, month, weekday), such as 30 3 * * mon-fri, or is one of "
            + ", ".join(NAMED_SCHEDULES),
        ),
        ValidationRule(
            "!has(self.spec.timeZone) || self.spec.timeZone.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$')",
            "spec.timeZone must be the name of a time zone, such as Europe/Berlin",
        ),
    )

    spec: CronJobSpec
    status: CronJobStatus = CronJobStatus()
    kind: str = "PinterestCronJob"
