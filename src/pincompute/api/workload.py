"""Fields and behaviour shared by all workloads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from pincompute.api.break_glass import BreakGlass
from pincompute.api.config_bundle import (
    MAX_BUNDLES,
    MAX_REFERENCE_CHARS,
    REFERENCE_PATTERN,
    ConfigPin,
    reference_errors,
)
from pincompute.api.custom_resource import CustomResource, FieldError, FieldPath, Spec, ValidationRule
from pincompute.api.expiry import Expires, expiry_errors
from pincompute.api.gpu_type import GpuType, gpu_type_errors
from pincompute.api.metrics_endpoint import MetricsField, metrics_errors
from pincompute.api.mtls import Calls, call_errors
from pincompute.api.pod_template import (
    PodTemplate,
    containers_of,
    list_at,
    main_container,
    resource_names,
    template_errors,
)
from pincompute.api.serverset import Endpoints, endpoints_errors
from pincompute.api.status import READY, WorkloadStatus
from pincompute.api.structs import Environment, StrictStruct, quantity_meta
from pincompute.objects.content import Object
from pincompute.objects.image import parse_image
from pincompute.objects.secret_reference import MAX_SECRET_REFERENCE_CHARS, SECRET_REFERENCE_PATTERN, parse_reference

RESERVED_VARIABLE_PREFIX = "PIN_"
"""Prefix of environment variables that only the platform sets."""
RESERVED_VARIABLE_NOTE = f"names that begin with {RESERVED_VARIABLE_PREFIX} are set by the platform"
MAX_SECRETS = 64
MAX_CONFIGURATION_BYTES = 900_000
"""Total size of configuration files, which must fit into one ConfigMap."""


class Tier(StrEnum):
    """Capacity guarantee of a workload. Only preemptible work is ended in favour of other work."""

    RESERVED = "reserved"
    ON_DEMAND = "on-demand"
    PREEMPTIBLE = "preemptible"


class Hold(StrictStruct, frozen=True):
    """Keeps a workload on an older runtime until a date."""

    runtime: Annotated[int, Meta(description="Runtime to stay on, such as 41.", ge=1, le=1_000_000)]
    until: Annotated[
        str,
        Meta(
            description="Last day, such as 2026-12-31.",
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            max_length=10,
        ),
    ]
    because: Annotated[str, Meta(description="Reason, such as: logs-3 breaks our parser.", max_length=256)] = ""


class WorkloadSpec(Spec, frozen=True, kw_only=True):
    """The short form describes one container; `template` is a whole pod template. Both can be combined."""

    image: Annotated[
        str,
        Meta(
            description="Container image, such as hello:1.2; can be left out if `template` has containers.",
            max_length=512,
        ),
    ] = ""
    command: Annotated[
        list[Annotated[str, Meta(max_length=32_768)]],
        Meta(description="Command instead of the image's entry point, such as [python3, app.py].", max_length=256),
    ] = []
    arguments: Annotated[
        list[Annotated[str, Meta(max_length=32_768)]],
        Meta(description="Arguments of the image's entry point, such as [--verbose].", max_length=256),
    ] = []
    environment: Environment = {}
    configuration: Annotated[
        dict[str, Annotated[str, Meta(max_length=MAX_CONFIGURATION_BYTES)]],
        Meta(description="Configuration files by name, such as app.toml: |- …", max_length=256),
    ] = {}
    configuration_path: Annotated[
        str,
        Meta(
            description="Directory of the configuration files, such as /etc/hello; /etc/configuration by default.",
            pattern="^/[^:]*$",
            max_length=256,
        ),
    ] = "/etc/configuration"
    config: Annotated[
        list[Annotated[str, Meta(pattern=REFERENCE_PATTERN, max_length=MAX_REFERENCE_CHARS)]],
        Meta(
            description="Configuration bundles, such as [limits, flags@live, search/synonyms@7]: the current version "
            "at each deploy, continuously the current one, or a fixed one.",
            max_length=MAX_BUNDLES,
        ),
    ] = []
    config_versions: Annotated[
        list[ConfigPin],
        Meta(
            description="Versions of the bundles that are not live, such as [{bundle: ads/limits, version: 3, "
            "digest: …}]; set by the desk.",
            max_length=MAX_BUNDLES,
        ),
    ] = []
    cpu: Annotated[int | str, quantity_meta("CPU request of each replica, such as 500m or 2; 100m by default.")] = ""
    memory: Annotated[
        int | str, quantity_meta("Memory request and limit of each replica, such as 512Mi; 128Mi by default.")
    ] = ""
    gpus: Annotated[int, Meta(description="GPUs of each replica, such as 1; none by default.", ge=0, le=64)] = 0
    gpu_type: GpuType = ""
    whole_node: Annotated[
        bool,
        Meta(description="Run each replica on a node without other workloads, daemons excepted; false by default."),
    ] = False
    owner: Annotated[
        str,
        Meta(description="Owner, such as team-ads; the project's owner by default.", max_length=128),
    ] = ""
    tier: Annotated[
        Tier,
        Meta(
            description="Tier: reserved, on-demand or preemptible; only preemptible workloads may be ended in "
            "favour of others."
        ),
    ] = Tier.ON_DEMAND
    build: Annotated[
        str,
        Meta(
            description="Version of the published build, such as 1.4; set by the desk.",
            max_length=63,
        ),
    ] = ""
    break_glass: Annotated[
        BreakGlass | None,
        Meta(description="Emergency override for unreviewed work; set by the desk."),
    ] = None
    iam_role: Annotated[
        str,
        Meta(
            description="IAM role in the cloud, such as ads-reader, if the project opens it. The main container then "
            "has a token in the file that PIN_IAM_TOKEN_FILE names, and the role in PIN_IAM_ROLE.",
            max_length=256,
        ),
    ] = ""
    secrets: Annotated[
        list[Annotated[str, Meta(pattern=SECRET_REFERENCE_PATTERN, max_length=MAX_SECRET_REFERENCE_CHARS)]],
        Meta(
            description="Secrets that every container finds as files in the folder that SECRETS_FOLDER names, such as "
            "[db-password]; PROJECT/NAME for one of another project that grants it, NAME@3 for one fixed version.",
            max_length=MAX_SECRETS,
        ),
    ] = []
    metrics: MetricsField = ""
    endpoints: Endpoints = []
    calls: Calls = []
    hold: Annotated[Hold | None, Meta(description="Stay on an older runtime until a date.")] = None
    expires: Expires = ""
    sidecar_config: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="Parameters of runtime parts, such as logs: {level: debug}.", max_length=32),
    ] = {}
    simulated: Annotated[
        bool, Meta(description="Simulate the workload on simulated nodes, without running a program; false by default.")
    ] = False
    template: Annotated[
        Object,
        Meta(
            description="Pod template, for every setting that the short form does not have.",
            extra={"shape": PodTemplate},
            extra_json_schema={"$ref": "PodTemplate"},
        ),
    ] = {}

    @property
    def gpu_types(self) -> list[str]:
        """Types of GPUs that replicas request, sorted."""
        return [self.gpu_type] if self.gpu_type and self.gpus else []

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from _image_field_errors(self, name)
        yield from _short_form_errors(self, name)
        yield from template_errors(self.template, ("template",))
        yield from variable_errors(self.environment)
        yield from expiry_errors(self.expires)
        yield from _secret_errors(self.secrets)
        yield from reference_errors(self.config)
        yield from metrics_errors(self.metrics, self.template, getattr(self, "ports", ()))
        yield from endpoints_errors(self.endpoints)
        yield from call_errors(self.calls, list(self.environment))
        for file in self.configuration:
            if not file.strip(".") or not all(each.isalnum() or each in "-_." for each in file):
                note = "letters, digits and - _ . are allowed"
                yield FieldError(("configuration", file), f"invalid file name '{file}'", note)
        size = sum(len(content.encode()) for content in self.configuration.values())
        if size > MAX_CONFIGURATION_BYTES:
            what = f"configuration files have {size:,} bytes together, the maximum is {MAX_CONFIGURATION_BYTES:,}"
            yield FieldError(("configuration",), what)


def _secret_errors(references: Sequence[str]) -> Iterator[FieldError]:
    """Malformed references, and two of the same secret, which would be the same file."""
    found: set[tuple[str, str]] = set()
    for index, text in enumerate(references):
        try:
            reference = parse_reference(text, "")
        except ValueError as error:
            note = "NAME, PROJECT/NAME or NAME@VERSION, with lower-case letters, digits and dashes"
            yield FieldError(("secrets", index), str(error), note)
            continue
        if reference[:2] in found:
            yield FieldError(("secrets", index), f"duplicate secret '{text}'", next="remove one")
        found.add(reference[:2])


def variable_errors(environment: Mapping[str, str]) -> Iterator[FieldError]:
    """Invalid and reserved names in `environment`."""
    for variable in environment:
        if not variable or "=" in variable or variable.startswith(RESERVED_VARIABLE_PREFIX):
            what = f"invalid variable name '{variable}'"
            yield FieldError(("environment", variable), what, RESERVED_VARIABLE_NOTE)


def image_errors(image: str, path: FieldPath) -> Iterator[FieldError]:
    """A missing or invalid image."""
    if not image:
        yield FieldError(path, "image is missing", next="write image: NAME:TAG")
        return
    try:
        parse_image(image)
    except ValueError as error:
        yield FieldError(path, f"invalid image {image!r}: {error}")


def _image_field_errors(spec: WorkloadSpec, name: str) -> Iterator[FieldError]:
    main = main_container(spec.template, name, own=bool(spec.image))
    if spec.image or not (main or {}).get("image"):
        yield from image_errors(spec.image, ("image",))
    for path, container in containers_of(spec.template, ("template",)):
        if container is not main and not container.get("image"):
            what = f"the image of container '{container.get('name', '')}' is missing"
            yield FieldError((*path, "image"), what)


def _short_form_errors(spec: WorkloadSpec, name: str) -> Iterator[FieldError]:
    """Short form and template may describe the same container, but must not set the same field."""
    main = main_container(spec.template, name, own=bool(spec.image)) or {}
    resources = resource_names(main)
    fields = (
        ("image", spec.image, "image" in main),
        ("command", spec.command, "command" in main),
        ("arguments", spec.arguments, "args" in main),
        ("cpu", spec.cpu, "cpu" in resources),
        ("memory", spec.memory, "memory" in resources),
    )
    for field, value, in_template in fields:
        if value and in_template:
            what = f"{field} is set here and in the template's container '{main.get('name', '')}'"
            yield FieldError((field,), what, next="remove one of the two")
    yield from gpu_type_errors(spec.gpu_type, spec.gpus, spec.template)
    variables = [each.get("name") for each in list_at(main, "env") if isinstance(each, dict)]
    for variable in sorted(each for each in spec.environment if each in variables):
        yield FieldError(("environment", variable), f"{variable} is set here and in the template", next="remove one")


class Workload(CustomResource, frozen=True, kw_only=True, rename=None):
    """Base of kinds that run pods. The goal is the condition type that means success."""

    GOAL: ClassVar[str] = READY
    REPLICA_NOUN: ClassVar[tuple[str, str]] = ("replica", "replicas")
    """Word for one pod of the workload, and its plural."""
    KIND_NAME: ClassVar[str]
    """The kind in messages, such as `a service`."""
    NOT_SCALABLE: ClassVar[tuple[str, str]] = ("", "")
    """Why a kind without the scale subresource cannot be scaled, and the command to use instead, with {name}."""
    STATUS_NATIVES: ClassVar[tuple[str, ...]]
    """Kinds of the Kubernetes objects on which the status depends, apart from pods."""
    BY_ADMINISTRATORS: ClassVar[bool] = False
    """Only administrators of the platform manage it; members of a project may view it."""
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.spec.image) && self.spec.image != '' || has(self.spec.template)",
            "spec.image is missing: write image: NAME:TAG, or containers in spec.template",
        ),
    )

    spec: WorkloadSpec
    status: WorkloadStatus = WorkloadStatus()

    @property
    def main_container_name(self) -> str:
        """Name of the main container."""
        return self.metadata.name

    @property
    def progress_counts(self) -> tuple[int, int]:
        """Reached and wanted number: by default the ready replicas of any revision, and the wanted replicas."""
        progress = self.status.progress
        return self.status.ready_replicas, progress.wanted if progress else getattr(self.spec, "replicas", 0)

    @property
    def attempt(self) -> int:
        """Number of the attempt: 2 in `resize@1.2`."""
        return 1

    @property
    def failure_is_partial(self) -> bool:
        """A failure concerns only some of the work; the rest continues."""
        return False
