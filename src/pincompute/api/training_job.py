"""PinterestTrainingJob: distributed training with PyTorch or TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from pincompute.api.cancellation import Cancellation
from pincompute.api.custom_resource import FieldError, FieldPath, ValidationRule
from pincompute.api.gpu_type import GpuType
from pincompute.api.kubeflow import unsupported_field_errors
from pincompute.api.pod_template import PodTemplate, main_container
from pincompute.api.status import SUCCEEDED
from pincompute.api.structs import StrictStruct, quantity_meta
from pincompute.api.training_job_status import TrainingJobStatus
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.objects.content import Object

MAX_ROLE_REPLICAS = 1_000
"""Limit for one role: replica numbers have three digits in pod names."""
MAX_SCRIPT_BYTES = 200 * 1024
"""Larger scripts belong into an image."""
SCRIPT_FILE = "script.py"
SCRIPT_FOLDER = "/etc/script"

LEADER_ROLES = {"pytorch": "master", "tensorflow": "chief"}
FRAMEWORK_ROLES = {"pytorch": ("master", "worker"), "tensorflow": ("chief", "worker", "ps", "evaluator")}
"""Roles of each framework, with the leader first."""
PARAMETER_SERVER_ROLE = "ps"
"""Parameter servers never exit by themselves, so the job does not wait for them."""


class TrainingRole(StrictStruct, frozen=True):
    """Replicas with the same role. Fields that are left out are taken from the job."""

    replicas: Annotated[
        int, Meta(description="Number of replicas, such as 4; 1 by default.", ge=0, le=MAX_ROLE_REPLICAS)
    ] = 1
    cpu: Annotated[int | str, quantity_meta("CPU request of each replica, such as 4; that of the job by default.")] = ""
    memory: Annotated[int | str, quantity_meta("Memory of each replica, such as 16Gi; that of the job by default.")] = (
        ""
    )
    gpus: Annotated[
        Annotated[int, Meta(ge=0, le=64)] | None,
        Meta(description="GPUs of each replica, such as 0; those of the job by default."),
    ] = None
    gpu_type: GpuType = ""
    restart: Annotated[
        Literal["on-failure", "by-exit-code", "never"],
        Meta(
            description="Restart policy. on-failure restarts the container in place. by-exit-code replaces the pod "
            "if the exit code is 128 or higher; any other code fails the job. never fails the job. "
            "on-failure by default."
        ),
    ] = "on-failure"
    template: Annotated[
        Object,
        Meta(
            description="Pod template of the role, which replaces that of the job.",
            extra={"shape": PodTemplate},
            extra_json_schema={"$ref": "PodTemplate"},
        ),
    ] = {}


class TrainingRoles(StrictStruct, frozen=True):
    """Roles: PyTorch has master and worker; TensorFlow has chief, worker, ps and evaluator."""

    master: Annotated[TrainingRole | None, Meta(description="Leader with PyTorch; exactly one.")] = None
    chief: Annotated[TrainingRole | None, Meta(description="Leader with TensorFlow; without it, worker 0 leads.")] = (
        None
    )
    worker: Annotated[TrainingRole | None, Meta(description="Workers.")] = None
    ps: Annotated[TrainingRole | None, Meta(description="Parameter servers; ended when the training is done.")] = None
    evaluator: Annotated[TrainingRole | None, Meta(description="Replicas that evaluate the model during training.")] = (
        None
    )


class Elastic(StrictStruct, frozen=True):
    """Elastic training with PyTorch: the number of workers may change while the job runs."""

    minimum: Annotated[
        int,
        Meta(
            description="Minimum number of workers, such as 2; training starts when they are available.",
            ge=1,
            le=MAX_ROLE_REPLICAS,
        ),
    ]
    maximum: Annotated[
        int,
        Meta(
            description="Maximum number of workers, such as 8; also the limit for scaling.", ge=1, le=MAX_ROLE_REPLICAS
        ),
    ]


class TrainingJobSpec(WorkloadSpec, frozen=True, kw_only=True):
    """Program, roles and success criteria of a training job."""

    framework: Annotated[
        Literal["pytorch", "tensorflow"],
        Meta(
            description="pytorch or tensorflow: decides how replicas find each other; pytorch by default. In a "
            "`template` the main container must have this name."
        ),
    ] = "pytorch"
    workers: Annotated[
        int,
        Meta(
            description="Number of workers in addition to the leader, such as 4; none by default.",
            ge=0,
            le=MAX_ROLE_REPLICAS,
        ),
    ] = 0
    roles: Annotated[TrainingRoles, Meta(description="Settings of individual roles, such as ps: {replicas: 2}.")] = (
        TrainingRoles()
    )
    elastic: Annotated[
        Elastic | None,
        Meta(
            description="Bounds within which the number of workers may change during training, such as {minimum: 2, "
            "maximum: 8}. There is no leader then: torchrun coordinates the workers whenever one joins "
            "or leaves."
        ),
    ] = None
    script: Annotated[
        str,
        Meta(
            description="Source of a small Python program, instead of one in the image. It is mounted as "
            f"{SCRIPT_FOLDER}/{SCRIPT_FILE} and run by python3 with `arguments`; none by default.",
            max_length=MAX_SCRIPT_BYTES,
        ),
    ] = ""
    gang: Annotated[
        bool,
        Meta(
            description="Schedule no pod before all exist, so that a quota too small for the job starts none; true "
            "by default. It does not guarantee that nodes have capacity for all."
        ),
    ] = True
    success: Annotated[
        Literal["all", "leader"],
        Meta(
            description="all: the job succeeds when every replica has succeeded, except parameter servers, which "
            "are then ended. leader: it succeeds when the leader has, and the others are ended. all by "
            "default."
        ),
    ] = "all"
    retries: Annotated[
        int,
        Meta(
            description="Failed runs of containers that are retried, over all replicas, such as 10; 3 by default. "
            "One more fails the job.",
            ge=0,
            le=1000,
        ),
    ] = 3
    attempt: Annotated[
        int,
        Meta(
            description="Attempt number, such as 2; a new number starts the training again; 1 by default.",
            ge=1,
            le=10_000,
        ),
    ] = 1
    deadline_seconds: Annotated[
        int,
        Meta(
            description="Maximum duration in seconds, including the time before the start, such as 86400; unlimited "
            "by default.",
            ge=1,
            le=31_536_000,
        ),
    ] = 0
    clean_up: Annotated[
        Literal["running", "all", "none"],
        Meta(
            description="What to delete when the training has ended. running: pods that still run; all: every pod, "
            "with its logs; none: nothing until keepSeconds have passed. running by default."
        ),
    ] = "running"
    keep_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which finished pods and their logs are kept, such as 3600; 86400 by default. "
            "The result stays in the status.",
            ge=60,
            le=31_536_000,
        ),
    ] = 86_400
    suspended: Annotated[
        str,
        Meta(
            description="Suspends the job. The value names the user and the reason, such as ann: data is late. Running "
            "replicas are ended and start over when it is resumed.",
            max_length=256,
        ),
    ] = ""
    cancelled: Annotated[
        Cancellation | None,
        Meta(
            description="Cancels attempts, as pin cancel does, such as {attempt: 1, by: ann}. Running replicas are "
            "ended."
        ),
    ] = None

    @property
    def leader(self) -> str:
        """Role of the leader, which is its first replica."""
        leader = LEADER_ROLES[self.framework]
        return leader if leader in self.active_roles else "worker"

    @property
    def active_roles(self) -> dict[str, TrainingRole]:
        """Roles with at least one replica, the leader first."""
        if self.elastic:
            return {"worker": self.roles.worker or TrainingRole(replicas=self.workers)}
        found = {name: getattr(self.roles, name) for name in FRAMEWORK_ROLES[self.framework]}
        found[LEADER_ROLES[self.framework]] = found[LEADER_ROLES[self.framework]] or TrainingRole()
        found["worker"] = found["worker"] or TrainingRole(replicas=self.workers)
        return {name: role for name, role in found.items() if role and role.replicas}

    def with_workers(self, workers: int) -> TrainingJobSpec:
        """Copy of the spec with another number of workers."""
        if self.roles.worker is None:
            return msgspec.structs.replace(self, workers=workers)
        worker = msgspec.structs.replace(self.roles.worker, replicas=workers)
        return msgspec.structs.replace(self, roles=msgspec.structs.replace(self.roles, worker=worker))

    def for_role(self, role: TrainingRole) -> TrainingJobSpec:
        """Copy of the spec with the settings of one role. A role without GPUs has no type of the job's."""
        gpus = self.gpus if role.gpus is None else role.gpus
        return msgspec.structs.replace(
            self,
            cpu=role.cpu or self.cpu,
            memory=role.memory or self.memory,
            gpus=gpus,
            gpu_type=role.gpu_type or (self.gpu_type if gpus else ""),
            template=role.template or self.template,
        )

    @property
    def gpu_types(self) -> list[str]:
        return sorted({each for role in self.active_roles.values() if (each := self.for_role(role).gpu_type)})

    def field_errors(self, name: str) -> Iterator[FieldError]:
        yield from _role_errors(self)
        if self.gpu_type and not self.gpu_types:
            yield FieldError(
                ("gpuType",), "gpuType is set, but no role has gpus", next="write gpus: 1, or remove gpuType"
            )
        yield from _elastic_errors(self)
        if self.script:
            yield from _script_errors(self)
        errors = [error for name, role in self.active_roles.items() for error in _settings_errors(self, name, role)]
        # An error in a setting that several roles share is reported once.
        yield from dict.fromkeys(errors)


def _role_errors(spec: TrainingJobSpec) -> Iterator[FieldError]:
    allowed, leader_name = FRAMEWORK_ROLES[spec.framework], LEADER_ROLES[spec.framework]
    for role in msgspec.structs.fields(TrainingRoles):
        if getattr(spec.roles, role.name) and role.name not in allowed:
            what = f"{spec.framework} has no role {role.name}"
            yield FieldError(("roles", role.name), what, f"roles: {', '.join(allowed)}")
    leader = getattr(spec.roles, leader_name)
    path = ("roles", leader_name, "replicas")
    if leader and leader.replicas > 1:
        yield FieldError(path, f"{leader_name} has {leader.replicas} replicas, but there can be only one leader")
    if leader and not leader.replicas and (leader_name == "master" or "worker" not in spec.active_roles):
        yield FieldError(path, "there is no leader", next=f"leave {leader_name} out for the default of 1")
    if spec.workers and spec.roles.worker:
        what = "workers and roles.worker cannot be used together"
        yield FieldError(("workers",), what, next="write roles: {worker: {replicas: NUMBER}} only")


def _elastic_errors(spec: TrainingJobSpec) -> Iterator[FieldError]:
    bounds = spec.elastic
    if bounds is None:
        return
    if spec.framework != "pytorch":
        yield FieldError(
            ("elastic",), f"elastic requires pytorch, but framework is {spec.framework}", next="leave elastic out"
        )
    if bounds.minimum > bounds.maximum:
        yield FieldError(("elastic", "minimum"), f"minimum {bounds.minimum} is larger than maximum {bounds.maximum}")
        return
    if spec.roles.master:
        yield FieldError(("roles", "master"), "an elastic job has no master", next="leave master out")
    wanted = spec.active_roles["worker"].replicas
    if not bounds.minimum <= wanted <= bounds.maximum:
        path: FieldPath = ("roles", "worker", "replicas") if spec.roles.worker else ("workers",)
        yield FieldError(path, f"there are {wanted} workers, but elastic allows {bounds.minimum} to {bounds.maximum}")


def _script_errors(spec: TrainingJobSpec) -> Iterator[FieldError]:
    size = len(spec.script.encode())
    if size > MAX_SCRIPT_BYTES:
        what = f"the script has {size:,} bytes, the maximum is {MAX_SCRIPT_BYTES:,}"
        yield FieldError(("script",), what, next="put it into an image")
    if spec.command:
        yield FieldError(("script",), "script and command cannot be used together", next="remove one of the two")


def _settings_errors(spec: TrainingJobSpec, name: str, role: TrainingRole) -> Iterator[FieldError]:
    """Errors of one role's effective settings, at the field where each was written."""
    effective = spec.for_role(role)
    own = {"cpu": role.cpu, "memory": role.memory, "gpuType": role.gpu_type, "template": role.template}
    errors = (
        *WorkloadSpec.field_errors(effective, spec.framework),
        *_container_errors(effective),
        *unsupported_field_errors(effective.template),
    )
    for error in errors:
        path: FieldPath = ("roles", name, *error.path) if own.get(str(error.path[0])) else error.path
        yield error._replace(path=path)


def _container_errors(spec: TrainingJobSpec) -> Iterator[FieldError]:
    main = main_container(spec.template, spec.framework, own=bool(spec.image)) or {}
    if main and main.get("name") != spec.framework:
        what = f"the template has no container '{spec.framework}'"
        note = "Kubeflow identifies the main container by this name"
        yield FieldError(("template", "spec", "containers"), what, note, f"rename '{main.get('name', '')}'")
    if spec.script and main.get("command"):
        what = f"script and the command of container '{spec.framework}' cannot be used together"
        yield FieldError(("script",), what, next="remove one of the two")


class PinterestTrainingJob(Workload, frozen=True, kw_only=True, rename=None):
    """Distributed training with PyTorch or TensorFlow."""

    GOAL: ClassVar[str] = SUCCEEDED
    KIND_NAME: ClassVar[str] = "a training job"
    STATUS_NATIVES: ClassVar[tuple[str, ...]] = ("PyTorchJob", "TFJob")
    """One of them, by the framework."""
    NOT_SCALABLE: ClassVar[tuple[str, str]] = (
        "a training job is scaled only if it is elastic",
        "change workers: in its file, then: pin deploy FILE",
    )
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptt",)
    PRINTER_COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Revision", "integer", ".status.revision"),
        ("Framework", "string", ".spec.framework"),
        ("Wanted", "integer", ".status.progress.wanted"),
        ("Started", "integer", ".status.progress.started"),
        ("Reason", "string", '.status.conditions[?(@.type=="Succeeded")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    VALIDATION_RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.spec.image) && self.spec.image != '' || has(self.spec.template) || has(self.spec.roles)",
            "spec.image is missing: write image: NAME:TAG, or containers in spec.template or in the template of "
            "each role",
        ),
        ValidationRule(
            "!has(self.spec.roles) || (self.spec.framework == 'pytorch' ? !has(self.spec.roles.chief) && "
            "!has(self.spec.roles.ps) && !has(self.spec.roles.evaluator) : !has(self.spec.roles.master))",
            "spec.roles: pytorch has master and worker; tensorflow has chief, worker, ps and evaluator",
        ),
        ValidationRule(
            "!has(self.spec.workers) || self.spec.workers == 0 || !has(self.spec.roles) || "
            "!has(self.spec.roles.worker)",
            "spec.workers and spec.roles.worker cannot be used together: leave one out",
        ),
        ValidationRule(
            "!has(self.spec.elastic) || (!has(self.spec.framework) || self.spec.framework == 'pytorch') && "
            "self.spec.elastic.minimum <= self.spec.elastic.maximum && "
            "(!has(self.spec.roles) || !has(self.spec.roles.master))",
            "spec.elastic requires pytorch without a master, and minimum must not exceed maximum",
        ),
        ValidationRule(
            "!has(self.spec.script) || self.spec.script == '' || !has(self.spec.command) || "
            "size(self.spec.command) == 0",
            "spec.script and spec.command cannot be used together: leave one out",
        ),
    )

    spec: TrainingJobSpec
    status: TrainingJobStatus = TrainingJobStatus()
    kind: str = "PinterestTrainingJob"

    @property
    def progress_counts(self) -> tuple[int, int]:
        """Succeeded replicas and all replicas."""
        return self.status.done, sum(role.replicas for role in self.spec.active_roles.values())

    @property
    def main_container_name(self) -> str:
        """Kubeflow identifies the main container by this name."""
        return self.spec.framework
