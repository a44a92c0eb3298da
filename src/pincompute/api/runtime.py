"""Runtime: a numbered set of parts that never changes, and the order by which it takes the place of the one before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from pincompute.api.noun import Fault, Noun, Rule, Spec
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.status import Report
from pincompute.api.wire import Paused, Strict, share
from pincompute.api.workload import Tier

_ALL = 100


class Roll(Strict, frozen=True, kw_only=True):
    """In which order workloads get it, and what holds it up."""

    waves: Annotated[
        list[Annotated[int, Meta(ge=1, le=_ALL)]],
        Meta(
            description="Percent of the workloads that have it after each wave; [5, 25, 100] by default.", max_length=16
        ),
    ] = msgspec.field(default_factory=lambda: [5, 25, 100])
    zones: Annotated[
        list[Annotated[str, Meta(max_length=63)]],
        Meta(
            description="Zones that are rolled one after the other, such as [a, b]; what is bound to none comes last.",
            max_length=16,
        ),
    ] = []
    tiers: Annotated[
        list[Tier],
        Meta(
            description="Tiers that are rolled one after the other, such as [preemptible]; all others come last.",
            max_length=3,
        ),
    ] = []
    pause_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which a wave is watched before the next, such as 60; 600 by default.",
            ge=0,
            le=604_800,
        ),
    ] = 600
    failures: Annotated[
        int,
        Meta(description="Workloads that may fail before it stands still, such as 2; 0 by default.", ge=0, le=10_000),
    ] = 0
    unavailable: Annotated[
        int | str, share("Copies of each workload that may be away at a time, such as 1 or 25%; 10% by default.")
    ] = "10%"
    paused: Paused = ""
    stopped: Annotated[
        str, Meta(description="Who takes it back, and why, such as ann: logs-3 loses lines.", max_length=256)
    ] = ""
    security: Annotated[str, Meta(description="The hole that it closes, such as CVE-2026-1234.", max_length=256)] = ""
    break_holds: Annotated[
        bool, Meta(description="Workloads that hold an older runtime get it too; false by default.")
    ] = False

    def faults(self) -> Iterator[Fault]:
        if list(self.waves) != sorted(set(self.waves)) or self.waves[-1:] != [_ALL]:
            yield Fault(
                ("waves",), f"the waves are {self.waves}: each must be larger than the one before, and the last {_ALL}"
            )
        for field, names in (("zones", list(self.zones)), ("tiers", list(self.tiers))):
            for index, each in enumerate(names):
                if each in names[:index]:
                    yield Fault((field, index), f"'{each}' stands twice in {field}")
        if str(self.unavailable).rstrip("%").strip("0") == "":
            yield Fault(
                ("unavailable",), "unavailable is 0, so that no copy could ever be replaced", next="unavailable: 10%"
            )
        if self.break_holds and not self.security:
            yield Fault(("breakHolds",), "holds are only broken for security", next="write security: CVE-…")


class RuntimeSpec(Spec, frozen=True, kw_only=True):
    """Which parts, in the order in which they start."""

    parts: Annotated[
        list[Annotated[str, Meta(pattern=PinterestSidecar.NAME_PATTERN, max_length=PinterestSidecar.MAX_NAME)]],
        Meta(
            description="Its parts in the order in which they start, such as [identity-1, logs-2].",
            min_length=1,
            max_length=32,
        ),
    ]
    roll: Annotated[
        Roll | None, Meta(description="How it takes the place of the one before; without it, it is only prepared.")
    ] = None

    def faults(self, name: str) -> Iterator[Fault]:
        yield from super().faults(name)
        first: dict[str, str] = {}
        for index, each in enumerate(self.parts):
            part = each.rpartition("-")[0]
            if part in first:
                yield Fault(
                    ("parts", index), f"{first[part]} and {each} are versions of one part", next="leave one out"
                )
            first[part] = each
        for fault in self.roll.faults() if self.roll else ():
            yield fault._replace(path=("roll", *fault.path))


class Cursor(Strict, frozen=True, kw_only=True):
    """How far a roll has come: with a workload's own number it says which runtime the workload has."""

    zone: Annotated[str, Meta(description="The zone that it is in; empty where it is in none of its own.")] = ""
    tier: Annotated[str, Meta(description="The tier that it is in; empty where it is in none of its own.")] = ""
    percent: Annotated[int, Meta(description="Percent of those workloads that have it, such as 25.")] = 0
    since: Annotated[str, Meta(description="When the wave began, such as 2026-01-31T12:00:00Z.")] = ""
    proven: Annotated[bool, Meta(description="Copies run with it, and were well throughout a wave before.")] = False


class RollProgress(Strict, frozen=True, kw_only=True):
    """How those are doing that a roll has reached; for people."""

    reached: Annotated[int, Meta(description="The most workloads that it had come to at once, such as 12.")] = 0
    there: Annotated[
        int, Meta(description="Those of them that have it and are well, or ran with it and have ended, such as 9.")
    ] = 0
    failing: Annotated[int, Meta(description="Those of them that fail since, such as 0.")] = 0
    pods: Annotated[int, Meta(description="Pods of those in which it changes anything, such as 120.")] = 0
    in_place: Annotated[int, Meta(description="Pods that got it where they are, such as 61.")] = 0
    replaced: Annotated[int, Meta(description="Pods that were made anew with it, such as 4.")] = 0
    broken: Annotated[
        list[Annotated[str, Meta(max_length=320)]],
        Meta(description="Workloads of which more pods were away than may be, such as [ads/web].", max_length=64),
    ] = []


class RuntimeStatus(Report, frozen=True):
    """What is remembered of a roll, and how it stands."""

    cursor: Annotated[Cursor | None, Meta(description="How far the roll has come.")] = None
    done: Annotated[str, Meta(description="When every workload had it, such as 2026-01-31T12:00:00Z.")] = ""
    wave: Annotated[str, Meta(description="Which wave it is in, such as 2 of 3.")] = ""
    progress: Annotated[RollProgress, Meta(description="How those are doing that it has reached.")] = RollProgress()


class Runtime(Noun, frozen=True, kw_only=True, rename=None):
    """A numbered set of parts that never changes; one is current, and at most one is next."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("rt",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Parts", "string", ".spec.parts"),
        ("Wave", "string", ".status.wave"),
        ("Done", "date", ".status.done"),
        ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    CLUSTER_WIDE: ClassVar[bool] = True
    MAX_NAME: ClassVar[int] = 6
    NAME_PATTERN: ClassVar[str] = "^[1-9][0-9]*$"
    NAME_WORDS: ClassVar[str] = 'digits, such as "42"'
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("self.spec.parts == oldSelf.spec.parts", "a runtime never changes: make the one with the next number"),
        Rule(
            "!has(oldSelf.spec.roll) || has(self.spec.roll)",
            "a roll is taken back by spec.roll.stopped, with who and why",
        ),
        Rule(
            "!has(oldSelf.spec.roll) || !has(self.spec.roll)"
            " || (has(self.spec.roll.zones) ? self.spec.roll.zones : [])"
            " == (has(oldSelf.spec.roll.zones) ? oldSelf.spec.roll.zones : [])"
            " && (has(self.spec.roll.tiers) ? self.spec.roll.tiers : [])"
            " == (has(oldSelf.spec.roll.tiers) ? oldSelf.spec.roll.tiers : [])",
            "the order of zones and tiers cannot change: how far the roll has come is counted in it",
        ),
    )

    spec: RuntimeSpec
    status: RuntimeStatus = RuntimeStatus()
    kind: str = "Runtime"

    @property
    def number(self) -> int:
        return int(self.metadata.name)
