"""PinterestStatefulSet: numbered copies, each with a name, and with storage that it finds again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from pincompute.api.noun import NAME_PATTERN, Fault, Rule
from pincompute.api.pod import main_container
from pincompute.api.serving import COPIES, MAIN_PORT_NAME, PORT_ONCE, HealthCheck, Ports, Shutdown, port_faults
from pincompute.api.status import Status
from pincompute.api.wire import Paused, Restarts, Strict, amount, share
from pincompute.api.workload import Workload, WorkloadSpec

STORAGE = "data"
"""What the one claim of the short form is called."""
MAX_CLAIM_NAME = 30
_NOTHING = re.compile(r"^0+(\.0*)?[a-zA-Z]*$")


class Claim(Strict, frozen=True):
    """Storage of each copy's own."""

    size: Annotated[int | str, amount("How much it holds, such as 10Gi; it can grow, and never shrinks.")]
    path: Annotated[
        str,
        Meta(
            description="The folder in which the program finds it, such as /data.", pattern="^/[^:]+$", max_length=256
        ),
    ]
    class_: Annotated[
        str, Meta(description="The kind of disk, such as fast; the cluster's usual one by default.", max_length=63)
    ] = msgspec.field(name="class", default="")
    access: Annotated[
        Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"],
        Meta(description="Who may use it at a time, such as ReadWriteOncePod; ReadWriteOnce by default: one node."),
    ] = "ReadWriteOnce"


class Retention(Strict, frozen=True):
    """What becomes of storage that no copy uses any more."""

    deleted: Annotated[
        Literal["keep", "delete"], Meta(description="When the workload is deleted, such as delete; keep by default.")
    ] = "keep"
    scaled_down: Annotated[
        Literal["keep", "delete"], Meta(description="When there are fewer copies, such as delete; keep by default.")
    ] = "keep"


class Ordinals(Strict, frozen=True):
    """How copies are numbered."""

    start: Annotated[
        int, Meta(description="The number of the first copy, such as 1; 0 by default.", ge=0, le=10_000)
    ] = 0


class Rollout(Strict, frozen=True):
    """How a new revision takes the place of the old one: from the last copy to the first, one at a time."""

    order: Annotated[
        Literal["ordered", "parallel"],
        Meta(
            description="ordered: copies start and end one after the other; parallel: side by side. ordered by default."
        ),
    ] = "ordered"
    partition: Annotated[
        int,
        Meta(
            description="How many of the first copies stay of the former revision, such as 2; 0 by default.",
            ge=0,
            le=10_000,
        ),
    ] = 0
    min_ready_seconds: Annotated[
        int,
        Meta(
            description="Seconds that a new copy must answer before it counts, such as 10; 0 by default.", ge=0, le=3600
        ),
    ] = 0
    paused: Paused = ""
    restarts: Restarts = 0


class StatefulSetSpec(WorkloadSpec, frozen=True, kw_only=True):
    """What runs, where it answers, and what it stores."""

    port: Annotated[int, Meta(description="The port that the program listens on, such as 5432.", ge=1, le=65535)]
    ports: Ports = []
    replicas: Annotated[
        int, Meta(description="How many copies there are, such as 3; 1 by default.", ge=0, le=10_000)
    ] = 1
    storage: Annotated[int | str, amount("How much each copy stores, such as 10Gi; nothing by default.")] = ""
    storage_path: Annotated[
        str,
        Meta(
            description="The folder in which it stores it, such as /var/lib/db; /data by default.",
            pattern="^/[^:]+$",
            max_length=256,
        ),
    ] = "/data"
    claims: Annotated[
        dict[str, Claim],
        Meta(description="Further storage by name, such as log: {size: 1Gi, path: /log}.", max_length=16),
    ] = {}
    retention: Annotated[Retention, Meta(description="What becomes of storage that no copy uses.")] = Retention()
    ordinals: Annotated[Ordinals, Meta(description="How copies are numbered.")] = Ordinals()
    health_check: Annotated[HealthCheck, Meta(description="When a copy may be asked.")] = HealthCheck()
    rollout: Annotated[Rollout, Meta(description="How a new revision takes the place of the old one.")] = Rollout()
    unavailable: Annotated[
        int | str, share("Copies that may be away while nodes are emptied, such as 2 or 25%; 1 by default.")
    ] = 1
    shutdown: Annotated[Shutdown, Meta(description="How a copy ends.")] = Shutdown()

    def faults(self, name: str) -> Iterator[Fault]:
        yield from super().faults(name)
        yield from port_faults(self.port, self.ports, MAIN_PORT_NAME)
        yield from _claim_faults(self, name)
        if self.rollout.partition > self.replicas:
            yield Fault(
                ("rollout", "partition"),
                f"{self.rollout.partition} copies are held back, and there are only {self.replicas}",
                next=f"partition: {self.replicas}",
            )

    @property
    def all_claims(self) -> dict[str, Claim]:
        """That of the short form with the others."""
        if not self.storage:
            return self.claims
        return {STORAGE: Claim(size=self.storage, path=self.storage_path), **self.claims}


def _claim_faults(spec: StatefulSetSpec, name: str) -> Iterator[Fault]:
    if spec.storage and STORAGE in spec.claims:
        yield Fault(("claims", STORAGE), f"storage is the claim '{STORAGE}' already", next="leave one of the two out")
    pod = spec.template.get("spec")
    volumes = _each(pod, "volumes", "name")
    if _NOTHING.match(str(spec.storage)):
        yield Fault(("storage",), f"a claim of {spec.storage} holds nothing", next="leave storage out")
    taken = _folders(spec, name)
    for claim, said in spec.claims.items():
        if not re.fullmatch(NAME_PATTERN, claim) or len(claim) > MAX_CLAIM_NAME:
            note = (
                f"a name has at most {MAX_CLAIM_NAME} lower-case letters, digits and dashes, and begins with a letter"
            )
            yield Fault(("claims", claim), f"no claim can be called '{claim}'", note)
        if _NOTHING.match(str(said.size)):
            yield Fault(("claims", claim, "size"), f"a claim of {said.size} holds nothing", next="size: 10Gi")
        if claim in volumes:
            yield Fault(
                ("claims", claim), f"a volume of the template is called '{claim}'", next="rename one of the two"
            )
        folder = said.path.rstrip("/")
        if folder in taken:
            yield Fault(("claims", claim, "path"), f"{said.path} is the folder of {taken[folder]} already")
        taken[folder] = f"the claim '{claim}'"


def _folders(spec: StatefulSetSpec, name: str) -> dict[str, str]:
    """What the program finds where, beside its claims."""
    main = main_container(spec.template, name, own=bool(spec.image))
    taken = {path.rstrip("/"): "a mount of the template" for path in _each(main, "volumeMounts", "mountPath")}
    if spec.configuration:
        taken[spec.configuration_path.rstrip("/")] = "configuration"
    if spec.storage:
        taken[spec.storage_path.rstrip("/")] = "storage"
    return taken


def _each(value: object, field: str, key: str) -> list[str]:
    """Templates come from people: what should be a list of sets of fields may be anything."""
    items = value.get(field) if isinstance(value, dict) else None
    return (
        [str(each[key]) for each in items if isinstance(each, dict) and key in each] if isinstance(items, list) else []
    )


class PinterestStatefulSet(Workload, frozen=True, kw_only=True, rename=None):
    """Numbered copies, each with a name and with storage that it finds again."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptss",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = COPIES
    SCALES: ClassVar[bool] = True
    RULES: ClassVar[tuple[Rule, ...]] = (
        *Workload.RULES,
        PORT_ONCE,
        Rule(
            f"!has(self.spec.storage) || !has(self.spec.claims) || !('{STORAGE}' in self.spec.claims)",
            f"spec.storage is the claim '{STORAGE}' already: leave one of the two out",
        ),
    )

    spec: StatefulSetSpec
    status: Status = Status()
    kind: str = "PinterestStatefulSet"
