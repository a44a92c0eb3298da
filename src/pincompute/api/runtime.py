"""Runtime: a numbered, immutable set of parts, and the plan by which it replaces the previous one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

from pincompute.api.custom_resource import CustomResource, FieldError, Spec, ValidationRule
from pincompute.api.sidecar import PinterestSidecar
from pincompute.api.status import ResourceStatus
from pincompute.api.structs import PauseReason, StrictStruct, count_or_percent_meta
from pincompute.api.workload import Tier

_WHOLE_FLEET = 100
_DAEMON_PIN_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?@[1-9][0-9]{0,5}$"
_MAX_DAEMON_PIN_CHARS = 134
"""Two names of 63 characters, and a number of six digits."""


class Roll(StrictStruct, frozen=True, kw_only=True):
    """Order and speed of a runtime roll, and its stop conditions."""

    waves: Annotated[
        list[Annotated[int, Meta(ge=1, le=_WHOLE_FLEET)]],
        Meta(
            description="Percentage of workloads that have the runtime after each wave; [5, 25, 100] by default.",
            max_length=16,
        ),
    ] = msgspec.field(default_factory=lambda: [5, 25, 100])
    zones: Annotated[
        list[Annotated[str, Meta(max_length=63)]],
        Meta(
            description="Zones in the order in which they are rolled, such as [a, b]; workloads bound to no zone "
            "come last.",
            max_length=16,
        ),
    ] = []
    tiers: Annotated[
        list[Tier],
        Meta(
            description="Tiers in the order in which they are rolled, such as [preemptible]; all others come last.",
            max_length=3,
        ),
    ] = []
    pause_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which a wave is observed before the next, such as 60; 600 by default.",
            ge=0,
            le=604_800,
        ),
    ] = 600
    failures: Annotated[
        int,
        Meta(
            description="Failing workloads that are tolerated before the roll stops, such as 2; 0 by default.",
            ge=0,
            le=10_000,
        ),
    ] = 0
    unavailable: Annotated[
        int | str,
        count_or_percent_meta(
            "Replicas of each workload that may be unavailable at a time, such as 1 or 25%; 10% by default."
        ),
    ] = "10%"
    paused: PauseReason = ""
    stopped: Annotated[
        str,
        Meta(
            description="Rolls back the runtime. The value names the user and the reason, such as ann: logs-3 loses "
            "lines.",
            max_length=256,
        ),
    ] = ""
    security: Annotated[
        str, Meta(description="Vulnerability that the runtime fixes, such as CVE-2026-1234.", max_length=256)
    ] = ""
    break_holds: Annotated[
        bool, Meta(description="Include workloads that hold an older runtime; false by default.")
    ] = False

    def field_errors(self) -> Iterator[FieldError]:
        if list(self.waves) != sorted(set(self.waves)) or self.waves[-1:] != [_WHOLE_FLEET]:
            what = f"waves are {list(self.waves)}: percentages must increase and end with {_WHOLE_FLEET}"
            yield FieldError(("waves",), what)
        for field, names in (("zones", list(self.zones)), ("tiers", list(self.tiers))):
            for index, name in enumerate(names):
                if name in names[:index]:
                    yield FieldError((field, index), f"duplicate '{name}' in {field}")
        if str(self.unavailable).rstrip("%").strip("0") == "":
            what = "unavailable is 0, so that no replica could be replaced"
            yield FieldError(("unavailable",), what, next="unavailable: 10%")
        if self.break_holds and not self.security:
            yield FieldError(("breakHolds",), "breakHolds requires security", next="write security: CVE-…")


class DaemonPin(NamedTuple):
    """One entry of `daemons`: infra/shipper@3."""

    daemon: str
    """Project and name."""
    revision: int

    @classmethod
    def parse(cls, text: str) -> DaemonPin:
        daemon, _, revision = text.rpartition("@")
        return cls(daemon, int(revision))

    def __str__(self) -> str:
        return f"{self.daemon}@{self.revision}"


class RuntimeSpec(Spec, frozen=True, kw_only=True):
    """Parts of a runtime, and its roll."""

    parts: Annotated[
        list[Annotated[str, Meta(pattern=PinterestSidecar.NAME_PATTERN, max_length=PinterestSidecar.MAX_NAME_LENGTH)]],
        Meta(
            description="Parts in start order, such as [identity-1, logs-2].",
            min_length=1,
            max_length=32,
        ),
    ]
    daemons: Annotated[
        list[Annotated[str, Meta(pattern=_DAEMON_PIN_PATTERN, max_length=_MAX_DAEMON_PIN_CHARS)]],
        Meta(
            description="Revisions of daemons that belong to it, such as [infra/shipper@3]; other daemons run what "
            "their file says.",
            max_length=32,
        ),
    ] = []
    roll: Annotated[
        Roll | None,
        Meta(
            description="How the runtime replaces the previous one, such as {waves: [5, 25, 100]}; without it, the "
            "runtime is only prepared."
        ),
    ] = None

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from super().field_errors(name)
        first: dict[str, str] = {}
        for index, version in enumerate(self.parts):
            part = version.rpartition("-")[0]
            if part in first:
                what = f"{first[part]} and {version} are versions of the same part"
                yield FieldError(("parts", index), what, next="remove one")
            first[part] = version
        pins = self.daemon_pins
        for index, pin in enumerate(pins):
            if any(pin.daemon == each.daemon for each in pins[:index]):
                what = f"{pin.daemon} is pinned twice"
                yield FieldError(("daemons", index), what, next="remove one")
        for error in self.roll.field_errors() if self.roll else ():
            yield error._replace(path=("roll", *error.path))

    @property
    def daemon_pins(self) -> list[DaemonPin]:
        return [DaemonPin.parse(each) for each in self.daemons]


class RollCursor(StrictStruct, frozen=True, kw_only=True):
    """Position of a roll. Together with a workload's own hash it decides which runtime the workload has."""

    zone: Annotated[str, Meta(description="Current zone; empty if the roll is not in a zone of its own.")] = ""
    tier: Annotated[str, Meta(description="Current tier; empty if the roll is not in a tier of its own.")] = ""
    percent: Annotated[
        int,
        Meta(
            description="Percentage of the workloads of this zone and tier that have the runtime, such as 25; 0 while "
            "only its daemons have it."
        ),
    ] = 0
    since: Annotated[str, Meta(description="Start of the wave, such as 2026-01-31T12:00:00Z.")] = ""
    proven: Annotated[
        bool, Meta(description="Replicas have run with this runtime and stayed healthy for a whole wave.")
    ] = False


class RollProgress(StrictStruct, frozen=True, kw_only=True):
    """Health of the workloads that a roll has reached, for display."""

    reached: Annotated[int, Meta(description="Highest number of workloads reached at once, such as 12.")] = 0
    healthy: Annotated[
        int, Meta(description="Reached workloads that are healthy, or have finished with this runtime, such as 9.")
    ] = msgspec.field(name="there", default=0)
    failing: Annotated[int, Meta(description="Reached workloads that have failed since, such as 0.")] = 0
    pods: Annotated[int, Meta(description="Pods of the reached workloads that the runtime changes, such as 120.")] = 0
    in_place: Annotated[int, Meta(description="Pods updated in place, such as 61.")] = 0
    replaced: Annotated[int, Meta(description="Pods replaced, such as 4.")] = 0
    over_unavailable: Annotated[
        list[Annotated[str, Meta(max_length=320)]],
        Meta(description="Workloads that had more unavailable pods than allowed, such as [ads/web].", max_length=64),
    ] = msgspec.field(name="broken", default_factory=list)


class RuntimeStatus(ResourceStatus, frozen=True):
    """Position and progress of a roll."""

    cursor: Annotated[RollCursor | None, Meta(description="Position of the roll.")] = None
    done: Annotated[
        str, Meta(description="Time at which every workload had the runtime, such as 2026-01-31T12:00:00Z.")
    ] = ""
    wave: Annotated[str, Meta(description="Current wave, such as 2 of 3.")] = ""
    progress: Annotated[RollProgress, Meta(description="Health of the reached workloads.")] = RollProgress()


class Runtime(CustomResource, frozen=True, kw_only=True, rename=None):
    """A numbered, immutable set of runtime parts. One is current, and at most one is next."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("rt",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Parts", "string", ".spec.parts"),
        ("Wave", "string", ".status.wave"),
        ("Done", "date", ".status.done"),
        ("Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    CLUSTER_SCOPED: ClassVar[bool] = True
    MAX_NAME_LENGTH: ClassVar[int] = 6
    NAME_PATTERN: ClassVar[str] = "^[1-9][0-9]*$"
    NAME_RULE: ClassVar[str] = 'digits, such as "42"'
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "self.spec.parts == oldSelf.spec.parts", "a runtime is immutable: create the one with the next number"
        ),
        ValidationRule(
            "(has(self.spec.daemons) ? self.spec.daemons : [])"
            " == (has(oldSelf.spec.daemons) ? oldSelf.spec.daemons : [])",
            "the daemons of a runtime are immutable: create the one with the next number",
        ),
        ValidationRule(
            "!has(oldSelf.spec.roll) || has(self.spec.roll)",
            "a roll cannot be removed: set spec.roll.stopped to roll it back",
        ),
        ValidationRule(
            "!has(oldSelf.spec.roll) || !has(self.spec.roll)"
            " || (has(self.spec.roll.zones) ? self.spec.roll.zones : [])"
            " == (has(oldSelf.spec.roll.zones) ? oldSelf.spec.roll.zones : [])"
            " && (has(self.spec.roll.tiers) ? self.spec.roll.tiers : [])"
            " == (has(oldSelf.spec.roll.tiers) ? oldSelf.spec.roll.tiers : [])",
            "the order of zones and tiers is immutable: the position of the roll depends on it",
        ),
    )

    spec: RuntimeSpec
    status: RuntimeStatus = RuntimeStatus()
    kind: str = "Runtime"

    @property
    def number(self) -> int:
        return int(self.metadata.name)
