"""PinterestCronJob: light periodic work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from pincompute.api.names import RUN_NOW
from pincompute.api.noun import Fault, Rule
from pincompute.api.status import Status
from pincompute.api.wire import Strict
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.objects.occurrences import nearest_zone, zone_of
from pincompute.objects.schedule import WORDS, NotASchedule, parse


def _line() -> str:
    """A line as a rule can check it: each number within its bounds, and not yet whether it ever comes due."""
    minute, hour, day, month, weekday = (
        "[0-5]?[0-9]",
        "([01]?[0-9]|2[0-3])",
        "([1-9]|[12][0-9]|3[01])",
        "([1-9]|1[0-2]|[A-Za-z]{3})",
        "([0-6]|[A-Za-z]{3})",
    )
    parts = [f"([*?]|0*{each}(-0*{each})?)(/[0-9]{{1,4}})?" for each in (minute, hour, day, month, weekday)]
    fields = r"\s+".join(f"{each}(,{each})*" for each in parts)
    return rf"^\s*({'|'.join(WORDS)}|{fields})\s*$"


LINE = _line()
SUCCEEDED, FAILED = "succeeded", "failed"


class Keep(Strict, frozen=True):
    """How many runs that have ended can be looked at."""

    succeeded: Annotated[int, Meta(description="Runs that succeeded, such as 10; 3 by default.", ge=1, le=100)] = 3
    failed: Annotated[int, Meta(description="Runs that failed, such as 10; 3 by default.", ge=1, le=100)] = 3


class CronJobSpec(WorkloadSpec, frozen=True, kw_only=True):
    """What runs, and when."""

    schedule: Annotated[
        str,
        Meta(
            description="Minute, hour, day, month and weekday, such as 30 3 * * mon-fri; or @hourly, @daily, @weekly, "
            "@monthly, @yearly. Where days and weekdays are both named, either will do.",
            max_length=256,
        ),
    ]
    time_zone: Annotated[
        str,
        Meta(
            description="Whose clock is meant, such as Europe/Berlin; UTC by default. When clocks are put forward, a "
            "time that is left out does not come due; when they are put back, one that comes twice comes due twice.",
            max_length=64,
        ),
    ] = "UTC"
    overlap: Annotated[
        Literal["forbid", "allow", "replace"],
        Meta(
            description="What happens when a run is due and one still goes: forbid waits for its end, allow runs both, "
            "replace ends the one that goes; forbid by default."
        ),
    ] = "forbid"
    start_within_seconds: Annotated[
        int,
        Meta(
            description="Seconds that a run may begin late, such as 600; 0, the default, is however late. Of several "
            "that were missed only the newest is made up for, also after a suspension.",
            ge=0,
            le=31_536_000,
        ),
    ] = 0
    deadline_seconds: Annotated[
        int,
        Meta(
            description="Seconds after which a run is ended and has failed, such as 3600; 0, the default, is never.",
            ge=0,
            le=31_536_000,
        ),
    ] = 0
    retries: Annotated[
        int, Meta(description="How often a run that failed is tried again, such as 3; 2 by default.", ge=0, le=100)
    ] = 2
    keep: Annotated[Keep, Meta(description="How many runs that have ended can be looked at.")] = Keep()
    suspended: Annotated[
        str,
        Meta(
            description="Who suspended it, and why, such as ann: the source is down. What runs is not ended.",
            max_length=256,
        ),
    ] = ""

    def faults(self, name: str) -> Iterator[Fault]:
        yield from super().faults(name)
        try:
            parse(self.schedule)
        except NotASchedule as error:
            next_ = f'write schedule: "{error.instead}"' if error.instead else ""
            yield Fault(("schedule",), f"schedule is {self.schedule!r}: {error}", next=next_)
        try:
            zone_of(self.time_zone)
        except ValueError as error:
            near = nearest_zone(self.time_zone)
            yield Fault(("timeZone",), str(error), next=f"did you mean {near}?" if near else "such as Europe/Berlin")


class Run(Strict, frozen=True):
    """One run that has ended."""

    name: Annotated[str, Meta(description="Its Job, such as nightly-29484720.", max_length=63)]
    revision: Annotated[int, Meta(description="Of which revision it was, such as 7; 0 is unknown.")] = 0
    due: Annotated[str, Meta(description="When it was due; empty if run by hand.", max_length=32)] = ""
    began: Annotated[str, Meta(description="When it was made, such as 2026-01-31T12:00:00Z.", max_length=32)] = ""
    ended: Annotated[str, Meta(description="When it ended, such as 2026-01-31T12:01:00Z.", max_length=32)] = ""
    outcome: Annotated[str, Meta(description="succeeded or failed.", max_length=16)] = ""
    reason: Annotated[str, Meta(description="Why it failed, such as OutOfMemory.", max_length=64)] = ""
    message: Annotated[str, Meta(description="The same for people, with its exit code.", max_length=4096)] = ""
    next: Annotated[str, Meta(description="What to type then, such as pin logs nightly.", max_length=512)] = ""


class CronJobStatus(Status, frozen=True):
    """When it runs next, and what became of the last run."""

    next_runs: Annotated[
        list[Annotated[str, Meta(max_length=32)]],
        Meta(
            description="The next five times, in its time zone, such as 2026-02-01T03:30:00+01:00.",
            max_length=5,
        ),
    ] = []
    running: Annotated[
        list[Annotated[str, Meta(max_length=63)]],
        Meta(description="The runs that go just now, such as nightly-29484720.", max_length=100),
    ] = []
    last_run: Annotated[Run | None, Meta(description="The last run that has ended.")] = None
    last_success: Annotated[str, Meta(description="When a run last succeeded, such as 2026-01-31T12:01:00Z.")] = ""
    ran_now: Annotated[
        int,
        Meta(
            description="The number that it last ran by hand for, such as 3. A higher one runs it once now: "
            f"kubectl annotate --overwrite pinterestcronjob NAME {RUN_NOW}=4"
        ),
    ] = 0
    follows: Annotated[str, Meta(description="What it follows, such as 30 3 * * * Europe/Berlin.", max_length=512)] = ""
    since: Annotated[str, Meta(description="Since when, such as 2026-01-31T12:00:00Z.", max_length=32)] = ""


class PinterestCronJob(Workload, frozen=True, kw_only=True, rename=None):
    """Light periodic work: a program that runs at certain times and ends."""

    COPY: ClassVar[tuple[str, str]] = ("run", "runs")
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptc",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Schedule", "string", ".spec.schedule"),
        ("Zone", "string", ".spec.timeZone"),
        ("Last", "string", ".status.lastRun.outcome"),
        ("Next", "string", ".status.nextRuns[0]"),
        ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        *Workload.RULES,
        Rule(
            f"self.spec.schedule.matches(r'{LINE}')",
            "spec.schedule has five fields (minute, hour, day, month, weekday), such as 30 3 * * mon-fri, or is one of "
            + ", ".join(WORDS),
        ),
        Rule(
            "!has(self.spec.timeZone) || self.spec.timeZone.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$')",
            "spec.timeZone is the name of a time zone, such as Europe/Berlin",
        ),
    )

    spec: CronJobSpec
    status: CronJobStatus = CronJobStatus()
    kind: str = "PinterestCronJob"
