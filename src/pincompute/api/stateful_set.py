"""PinterestStatefulSet: numbered replicas with stable names and storage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from pincompute.api.custom_resource import NAME_PATTERN, FieldError, ValidationRule
from pincompute.api.mtls import Callers, caller_errors, mtls_port_errors
from pincompute.api.pod_template import list_at, main_container
from pincompute.api.serverset import Serverset
from pincompute.api.serving import (
    MAIN_PORT_NAME,
    SERVING_COLUMNS,
    UNIQUE_PORT_RULE,
    HealthCheck,
    Ports,
    Shutdown,
    port_errors,
)
from pincompute.api.status import WorkloadStatus
from pincompute.api.structs import PauseReason, RestartCount, StrictStruct, count_or_percent_meta, quantity_meta
from pincompute.api.workload import Workload, WorkloadSpec

STORAGE_CLAIM = "data"
"""Name of the claim that `storage` creates."""
MAX_CLAIM_NAME_LENGTH = 30
_ZERO_SIZE = re.compile(r"^0+(\.0*)?[a-zA-Z]*$")


class StorageClaim(StrictStruct, frozen=True):
    """Storage of each replica."""

    size: Annotated[int | str, quantity_meta("Size, such as 10Gi; it can be increased, but not decreased.")]
    path: Annotated[
        str,
        Meta(description="Mount path, such as /data.", pattern="^/[^:]+$", max_length=256),
    ]
    class_: Annotated[
        str, Meta(description="Storage class, such as fast; the cluster's default class by default.", max_length=63)
    ] = msgspec.field(name="class", default="")
    access: Annotated[
        Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany", "ReadOnlyMany"],
        Meta(description="Access mode, such as ReadWriteOncePod; ReadWriteOnce by default: one node."),
    ] = "ReadWriteOnce"


class Retention(StrictStruct, frozen=True):
    """Whether unused storage is kept or deleted."""

    deleted: Annotated[
        Literal["keep", "delete"], Meta(description="When the workload is deleted: keep or delete; keep by default.")
    ] = "keep"
    scaled_down: Annotated[
        Literal["keep", "delete"],
        Meta(description="When the number of replicas decreases: keep or delete; keep by default."),
    ] = "keep"


class Ordinals(StrictStruct, frozen=True):
    """Numbering of replicas."""

    start: Annotated[
        int, Meta(description="Number of the first replica, such as 1; 0 by default.", ge=0, le=10_000)
    ] = 0


class Rollout(StrictStruct, frozen=True):
    """Rollout of a new revision, from the last replica to the first, one at a time."""

    order: Annotated[
        Literal["ordered", "parallel"],
        Meta(
            description="ordered: replicas start and end one after the other; parallel: at the same time. ordered "
            "by default."
        ),
    ] = "ordered"
    partition: Annotated[
        int,
        Meta(
            description="Number of first replicas that keep the previous revision, such as 2; 0 by default.",
            ge=0,
            le=10_000,
        ),
    ] = 0
    min_ready_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which a new replica must be ready before it counts as available, such as 10; 0 "
            "by default.",
            ge=0,
            le=3600,
        ),
    ] = 0
    paused: PauseReason = ""
    restarts: RestartCount = 0


class StatefulSetSpec(WorkloadSpec, frozen=True, kw_only=True):
    """Program, ports, replicas and storage of a stateful set."""

    port: Annotated[int, Meta(description="Port that the program listens on, such as 5432.", ge=1, le=65535)]
    ports: Ports = []
    replicas: Annotated[int, Meta(description="Number of replicas, such as 3; 1 by default.", ge=0, le=10_000)] = 1
    storage: Annotated[int | str, quantity_meta("Storage of each replica, such as 10Gi; none by default.")] = ""
    storage_path: Annotated[
        str,
        Meta(
            description="Mount path of the storage, such as /var/lib/db; /data by default.",
            pattern="^/[^:]+$",
            max_length=256,
        ),
    ] = "/data"
    claims: Annotated[
        dict[str, StorageClaim],
        Meta(description="Further claims by name, such as log: {size: 1Gi, path: /log}.", max_length=16),
    ] = {}
    retention: Annotated[Retention, Meta(description="Whether unused storage is kept or deleted.")] = Retention()
    ordinals: Annotated[Ordinals, Meta(description="Numbering of replicas.")] = Ordinals()
    health_check: Annotated[HealthCheck, Meta(description="Readiness check of a replica.")] = HealthCheck()
    rollout: Annotated[Rollout, Meta(description="Rollout of a new revision.")] = Rollout()
    unavailable: Annotated[
        int | str,
        count_or_percent_meta(
            "Replicas that may be unavailable while nodes are drained, such as 2 or 25%; 1 by default."
        ),
    ] = 1
    shutdown: Annotated[Shutdown, Meta(description="Shutdown of a replica.")] = Shutdown()
    serverset: Annotated[
        Serverset | None,
        Meta(description="Register ready replicas in ZooKeeper, such as {} or {readers: [ads/feed]}; off by default."),
    ] = None
    callers: Callers = []

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from super().field_errors(name)
        if self.serverset:
            yield from self.serverset.field_errors(("serverset",))
        yield from caller_errors(self.callers)
        yield from port_errors(self.port, self.ports, MAIN_PORT_NAME)
        yield from mtls_port_errors(self.callers, self.port, self.ports)
        yield from _claim_errors(self, name)
        if self.rollout.partition > self.replicas:
            yield FieldError(
                ("rollout", "partition"),
                f"partition is {self.rollout.partition}, but there are only {self.replicas} replicas",
                next=f"partition: {self.replicas}",
            )

    @property
    def all_claims(self) -> dict[str, StorageClaim]:
        """All claims, including that of the short form."""
        if not self.storage:
            return self.claims
        return {STORAGE_CLAIM: StorageClaim(size=self.storage, path=self.storage_path), **self.claims}


def _claim_errors(spec: StatefulSetSpec, name: str) -> Iterator[FieldError]:
    if spec.storage and STORAGE_CLAIM in spec.claims:
        yield FieldError(
            ("claims", STORAGE_CLAIM),
            f"storage already creates the claim '{STORAGE_CLAIM}'",
            next="remove one of the two",
        )
    pod = spec.template.get("spec")
    volumes = _values_of(pod, "volumes", "name")
    if _ZERO_SIZE.match(str(spec.storage)):
        yield FieldError(
            ("storage",), f"storage is {spec.storage}: the size must be larger than 0", next="leave storage out"
        )
    mounts = _mount_paths(spec, name)
    for claim_name, claim in spec.claims.items():
        path = ("claims", claim_name)
        if not re.fullmatch(NAME_PATTERN, claim_name) or len(claim_name) > MAX_CLAIM_NAME_LENGTH:
            note = f"a name has at most {MAX_CLAIM_NAME_LENGTH} {Workload.NAME_RULE}"
            yield FieldError(path, f"invalid claim name '{claim_name}'", note)
        if _ZERO_SIZE.match(str(claim.size)):
            yield FieldError((*path, "size"), f"size is {claim.size}: it must be larger than 0", next="size: 10Gi")
        if claim_name in volumes:
            yield FieldError(path, f"the template already has a volume '{claim_name}'", next="rename one of the two")
        folder = claim.path.rstrip("/")
        if folder in mounts:
            yield FieldError((*path, "path"), f"{claim.path} is already used by {mounts[folder]}")
        mounts[folder] = f"the claim '{claim_name}'"


def _mount_paths(spec: StatefulSetSpec, name: str) -> dict[str, str]:
    """Mount paths of the main container that are not claims."""
    main = main_container(spec.template, name, own=bool(spec.image))
    mounts = {path.rstrip("/"): "a mount of the template" for path in _values_of(main, "volumeMounts", "mountPath")}
    if spec.configuration:
        mounts[spec.configuration_path.rstrip("/")] = "configuration"
    if spec.storage:
        mounts[spec.storage_path.rstrip("/")] = "storage"
    return mounts


def _values_of(value: object, field: str, key: str) -> list[str]:
    """Values of a key in a list of mappings."""
    return [str(each[key]) for each in list_at(value, field) if isinstance(each, dict) and key in each]


class PinterestStatefulSet(Workload, frozen=True, kw_only=True, rename=None):
    """Numbered replicas with stable names and storage."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptss",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = SERVING_COLUMNS
    KIND_NAME: ClassVar[str] = "a stateful set"
    STATUS_NATIVES: ClassVar[tuple[str, ...]] = ("StatefulSet", "PersistentVolumeClaim")
    SCALABLE: ClassVar[bool] = True
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        *Workload.VALIDATION_RULES,
        UNIQUE_PORT_RULE,
        ValidationRule(
            f"!has(self.spec.storage) || !has(self.spec.claims) || !('{STORAGE_CLAIM}' in self.spec.claims)",
            f"spec.storage already creates the claim '{STORAGE_CLAIM}': remove one of the two",
        ),
    )

    spec: StatefulSetSpec
    status: WorkloadStatus = WorkloadStatus()
    kind: str = "PinterestStatefulSet"
