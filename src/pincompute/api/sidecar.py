"""PinterestSidecar: one version of a runtime part, with the workloads it applies to and the parameters they may set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from pincompute.api.custom_resource import CustomResource, FieldError, FieldPath, Spec, ValidationRule, label_errors
from pincompute.api.names import GROUP
from pincompute.api.parameter import Parameter
from pincompute.api.pod_template import Container, Volume, VolumeMount, duplicate_errors, list_at
from pincompute.api.status import ResourceStatus
from pincompute.api.structs import StrictStruct, quantity_meta
from pincompute.api.type_errors import did_you_mean
from pincompute.api.workload import (
    RESERVED_VARIABLE_NOTE,
    RESERVED_VARIABLE_PREFIX,
    Tier,
    image_errors,
    variable_errors,
)
from pincompute.objects.content import Object

ServedKind = Literal[
    "PinterestService",
    "PinterestStatefulSet",
    "PinterestJobSet",
    "PinterestCronJob",
    "PinterestTrainingJob",
    "PinterestDaemon",
]
ServedField = Literal["secrets", "config@fixed", "config@live", "endpoints", "serverset", "callers", "calls"]
DEFAULT_SERVED_KINDS: tuple[ServedKind, ...] = (
    "PinterestService",
    "PinterestStatefulSet",
    "PinterestJobSet",
    "PinterestCronJob",
    "PinterestTrainingJob",
)
"""Daemons are mostly runtime parts themselves, so they get sidecars only if their kind is named."""


def _embedded(shape: type) -> Meta:
    """An embedded Kubernetes type: all fields are preserved, including those not described here."""
    return Meta(extra={"shape": shape}, extra_json_schema={"$ref": shape.__name__})


class Serves(StrictStruct, frozen=True, kw_only=True):
    """Selects workloads. All given conditions must match."""

    kinds: Annotated[
        list[ServedKind],
        Meta(description="Kinds, such as [PinterestService]; all except PinterestDaemon by default.", max_length=6),
    ] = []
    tiers: Annotated[list[Tier], Meta(description="Tiers, such as [reserved]; all by default.", max_length=3)] = []
    selector: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(description="Labels of the workload, such as mesh: new; none by default.", max_length=16),
    ] = {}
    fields: Annotated[
        list[ServedField],
        Meta(
            description="Only workloads that set one of these fields, such as [secrets]; all by default.",
            max_length=7,
        ),
    ] = []


class SidecarSpec(Spec, frozen=True, kw_only=True):
    """The short form is one sidecar container with the name of the part; the other fields add to the pod."""

    image: Annotated[str, Meta(description="Image of the sidecar container, such as logs:2.0.", max_length=512)] = ""
    cpu: Annotated[int | str, quantity_meta("CPU request, such as 50m; 10m by default.")] = ""
    memory: Annotated[int | str, quantity_meta("Memory request and limit, such as 64Mi; 32Mi by default.")] = ""
    port: Annotated[
        int,
        Meta(
            description="Port that must be open before later containers start, such as 4000; none by default.",
            ge=0,
            le=65535,
        ),
    ] = 0
    serves: Annotated[Serves, Meta(description="Workloads that get the part; all by default.")] = Serves()
    needs: Annotated[
        list[Annotated[str, Meta(max_length=63)]],
        Meta(
            description="Parts that start before this one, and whose variables and mounts its containers get, such "
            "as [identity].",
            max_length=8,
        ),
    ] = []
    provides: Annotated[
        str,
        Meta(
            description="Additional name under which other parts can need it, such as identity for another "
            "implementation; only its own name by default.",
            max_length=63,
        ),
    ] = ""
    parameters: Annotated[
        dict[str, Parameter],
        Meta(description="Parameters that workloads may set in sidecarConfig, such as level: {…}.", max_length=32),
    ] = {}
    environment: Annotated[
        dict[str, Annotated[str, Meta(max_length=32_768)]],
        Meta(
            description="Environment variables for the workload's containers, such as LOG_SOCKET: /logs/socket.",
            max_length=64,
        ),
    ] = {}
    mounts: Annotated[
        list[Annotated[Object, _embedded(VolumeMount)]],
        Meta(
            description="Mounts of the part's volumes in the workload's containers, such as - {name: logs, "
            "mountPath: /logs}.",
            max_length=32,
        ),
    ] = []
    volumes: Annotated[
        list[Annotated[Object, _embedded(Volume)]],
        Meta(description="Volumes of the pod, such as - {name: logs, emptyDir: {}}.", max_length=32),
    ] = []
    init_containers: Annotated[
        list[Annotated[Object, _embedded(Container)]],
        Meta(
            description="Init containers, started before all others, such as - {name: fetch, image: fetch:1}.",
            max_length=8,
        ),
    ] = []
    sidecars: Annotated[
        list[Annotated[Object, _embedded(Container)]],
        Meta(description="Further sidecar containers, such as - {name: ship, image: ship:1}.", max_length=8),
    ] = []
    readiness_gates: Annotated[
        list[Annotated[str, Meta(max_length=316)]],
        Meta(
            description="Readiness gates of the pods, such as example.com/registered.",
            max_length=8,
        ),
    ] = []
    labels: Annotated[
        dict[str, Annotated[str, Meta(max_length=63)]],
        Meta(description="Labels of the pods, such as mesh: new.", max_length=16),
    ] = {}

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from super().field_errors(name)
        yield from self._short_form_errors()
        yield from self._container_errors(name.rpartition("-")[0])
        yield from self._volume_errors()
        yield from self._parameter_errors()
        yield from variable_errors(self.environment)
        yield from label_errors(self.labels, ("labels",))
        yield from label_errors(self.serves.selector, ("serves", "selector"))
        for label in self.labels:
            if label.startswith(f"{GROUP}/"):
                yield FieldError(("labels", label), f"labels of {GROUP} are set by the platform")

    def _short_form_errors(self) -> Iterator[FieldError]:
        adds = (
            self.image,
            self.init_containers,
            self.sidecars,
            self.volumes,
            self.environment,
            self.labels,
            self.readiness_gates,
        )
        if not any(adds):
            yield FieldError(("image",), "the part is empty", next="write image: NAME:TAG")
        if self.image:
            yield from image_errors(self.image, ("image",))
            return
        for field, value in (("cpu", self.cpu), ("memory", self.memory), ("port", self.port)):
            if value:
                yield FieldError((field,), f"{field} requires an image", next="write image: NAME:TAG")

    def _container_errors(self, part: str) -> Iterator[FieldError]:
        names = {part} if self.image else set()
        for group, container, path in self.listed_containers():
            name = container.get("name")
            if not isinstance(name, str):
                yield FieldError((*path, "name"), "the container has no name", next="write name: NAME")
            elif name in names:
                yield FieldError((*path, "name"), f"duplicate container name '{name}'")
            names.add(str(name))
            yield from image_errors(str(container.get("image", "")), (*path, "image"))
            policy = container.get("restartPolicy")
            if group == "sidecars" and policy not in (None, "Always"):
                yield FieldError(
                    (*path, "restartPolicy"), "the restart policy of a sidecar is always Always", next="leave it out"
                )
            if group == "initContainers" and policy == "Always":
                what = "an init container with restartPolicy Always is a sidecar"
                yield FieldError((*path, "restartPolicy"), what, next="move it to sidecars")
            yield from duplicate_errors(container, "env", "name", path)
            yield from duplicate_errors(container, "volumeMounts", "mountPath", path)
            for index, variable in enumerate(_variables(container)):
                if variable.startswith(RESERVED_VARIABLE_PREFIX):
                    what = f"invalid variable name '{variable}'"
                    yield FieldError((*path, "env", index, "name"), what, RESERVED_VARIABLE_NOTE)

    def _volume_errors(self) -> Iterator[FieldError]:
        """A part may mount only its own volumes: those of others can change or be missing."""
        names = [str(each.get("name")) for each in self.volumes]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield FieldError(("volumes", index, "name"), f"duplicate volume name '{name}'")
        yield from duplicate_errors({"mounts": self.mounts}, "mounts", "mountPath", ())
        mounts: list[tuple[Object, FieldPath]] = [(each, ("mounts", index)) for index, each in enumerate(self.mounts)]
        for _, container, path in self.listed_containers():
            mounts += [
                (each, (*path, "volumeMounts", index)) for index, each in enumerate(_dicts(container, "volumeMounts"))
            ]
        for mount, path in mounts:
            name = str(mount.get("name"))
            if name not in names:
                yield FieldError((*path, "name"), f"the part has no volume '{name}'", next=did_you_mean(name, names))

    def _parameter_errors(self) -> Iterator[FieldError]:
        """Parameter variables must not be set twice in the part's containers."""
        set_by = {variable: "a container" for _, each, _ in self.listed_containers() for variable in _variables(each)}
        for name, parameter in self.parameters.items():
            path = ("parameters", name)
            yield from parameter.field_errors(name, path)
            if parameter.variable in set_by:
                what = f"{parameter.variable} is already set by {set_by[parameter.variable]}"
                yield FieldError((*path, "variable"), what)
            set_by[parameter.variable] = f"the parameter '{name}'"

    def listed_containers(self) -> Iterator[tuple[str, Object, FieldPath]]:
        """Init containers and sidecars, with group and path."""
        for group, members in (("initContainers", self.init_containers), ("sidecars", self.sidecars)):
            for index, container in enumerate(members):
                yield group, container, (group, index)


def _variables(container: Object) -> list[str]:
    return [str(each.get("name")) for each in _dicts(container, "env")]


def _dicts(value: Object, field: str) -> list[dict[str, Any]]:
    return [each for each in list_at(value, field) if isinstance(each, dict)]


class SidecarStatus(ResourceStatus, frozen=True):
    """Status of a runtime part."""

    runtimes: Annotated[
        list[Annotated[int, Meta(ge=1)]], Meta(description="Runtimes that include the part, such as [42, 43].")
    ] = []


class PinterestSidecar(CustomResource, frozen=True, kw_only=True, rename=None):
    """One version of a runtime part that is injected into pods."""

    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("psc",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Image", "string", ".spec.image"),
        ("Runtimes", "string", ".status.runtimes"),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    CLUSTER_SCOPED: ClassVar[bool] = True
    NAME_PATTERN: ClassVar[str] = "^[a-z]([-a-z0-9]*[a-z0-9])?-[1-9][0-9]*$"
    NAME_RULE: ClassVar[str] = "lower-case letters, digits and dashes, and ends with its version, such as logs-2"
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "self.spec == oldSelf.spec",
            "a runtime part is immutable: create its next version, such as logs-3 after logs-2",
        ),
    )

    spec: SidecarSpec
    status: SidecarStatus = SidecarStatus()
    kind: str = "PinterestSidecar"

    @property
    def part_name(self) -> str:
        """Name without version: `logs` of `logs-2`."""
        return self.metadata.name.rpartition("-")[0]

    @property
    def provided_names(self) -> frozenset[str]:
        """Names under which other parts can need it."""
        return frozenset({self.part_name, self.spec.provides or self.part_name})
