"""PinterestTrainingJob: programs that train one model together, each in its role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from pincompute.api.kubeflow import dropped, spelled
from pincompute.api.noun import Fault, Path, Rule
from pincompute.api.pod import PodTemplate, main_container
from pincompute.api.status import SUCCEEDED
from pincompute.api.training_job_status import TrainingJobStatus
from pincompute.api.wire import Strict, amount
from pincompute.api.workload import Workload, WorkloadSpec
from pincompute.objects.content import Object

MAX_COPIES = 1_000
"""Of one role: three digits are the most that its name has room for."""
MAX_SCRIPT = 200 * 1024
"""Bytes; what is larger belongs into an image."""
SCRIPT = "script.py"
SCRIPT_PATH = "/etc/script"

LEADERS = {"pytorch": "master", "tensorflow": "chief"}
ROLES = {"pytorch": ("master", "worker"), "tensorflow": ("chief", "worker", "ps", "evaluator")}
"""Which roles a framework has, the one that leads first."""
SERVES = "ps"
"""It never ends by itself, and nobody waits for it."""


class Role(Strict, frozen=True):
    """Copies with the same part in the training; what is not said here is as for all."""

    replicas: Annotated[int, Meta(description="How many there are, such as 4; 1 by default.", ge=0, le=MAX_COPIES)] = 1
    cpu: Annotated[int | str, amount("Processor time of each of them, such as 4; as for all by default.")] = ""
    memory: Annotated[int | str, amount("Memory of each of them, such as 16Gi; as for all by default.")] = ""
    gpus: Annotated[
        Annotated[int, Meta(ge=0, le=64)] | None,
        Meta(description="GPUs of each of them, such as 0; as for all by default."),
    ] = None
    restart: Annotated[
        Literal["on-failure", "by-exit-code", "never"],
        Meta(
            description="What becomes of one that ends badly. on-failure starts it again where it is. by-exit-code "
            "makes it anew where the code is 128 or more; with another code, and with never, the job has failed. "
            "on-failure by default."
        ),
    ] = "on-failure"
    template: Annotated[
        Object,
        Meta(
            description="A pod template for this role, in place of the one for all.",
            extra={"shape": PodTemplate},
            extra_json_schema={"$ref": "PodTemplate"},
        ),
    ] = {}


class Roles(Strict, frozen=True):
    """Who does what: PyTorch has a master and workers; TensorFlow has a chief, workers, ps and evaluators."""

    master: Annotated[Role | None, Meta(description="Leads with PyTorch; there is one.")] = None
    chief: Annotated[Role | None, Meta(description="Leads with TensorFlow; without one, worker 0 does.")] = None
    worker: Annotated[Role | None, Meta(description="Those that train with the one that leads.")] = None
    ps: Annotated[Role | None, Meta(description="Parameter servers; they are ended with the training.")] = None
    evaluator: Annotated[Role | None, Meta(description="Those that judge the model while it is trained.")] = None


class Elastic(Strict, frozen=True):
    """With PyTorch: it trains with fewer copies than are wanted, and their number changes while it trains."""

    minimum: Annotated[
        int,
        Meta(description="With how many workers it can train, such as 2; it begins with so many.", ge=1, le=MAX_COPIES),
    ]
    maximum: Annotated[
        int, Meta(description="How many workers it can use, such as 8; so far can it be scaled.", ge=1, le=MAX_COPIES)
    ]


class TrainingJobSpec(WorkloadSpec, frozen=True, kw_only=True):
    """What trains, in which roles, and when it is done."""

    framework: Annotated[
        Literal["pytorch", "tensorflow"],
        Meta(
            description="pytorch or tensorflow, by which the copies find each other; pytorch by default. "
            "In a `template` the main container is called the same."
        ),
    ] = "pytorch"
    workers: Annotated[
        int,
        Meta(
            description="Copies that train beside the one that leads, such as 4; none by default.", ge=0, le=MAX_COPIES
        ),
    ] = 0
    roles: Annotated[Roles, Meta(description="What each role has of its own, such as ps: {replicas: 2}.")] = Roles()
    elastic: Annotated[
        Elastic | None,
        Meta(
            description="Within which bounds the number of workers may change while they train, such as {minimum: 2, "
            "maximum: 8}. None leads then: torchrun has them find each other, and again whenever one comes or goes."
        ),
    ] = None
    script: Annotated[
        str,
        Meta(
            description=f"A small program in Python, instead of one in the image; it is {SCRIPT_PATH}/{SCRIPT} and is "
            "run by python3 with `arguments`.",
            max_length=MAX_SCRIPT,
        ),
    ] = ""
    gang: Annotated[
        bool,
        Meta(
            description="No copy is given a node before all of them are there, so that a quota that is too small for "
            "all starts none; true by default. It does not promise that nodes have room for all."
        ),
    ] = True
    success: Annotated[
        Literal["all", "leader"],
        Meta(
            description="all: it has succeeded when every copy has ended well, parameter servers aside, which are "
            "ended then. leader: as soon as the one that leads has, and the others are ended. all by default."
        ),
    ] = "all"
    retries: Annotated[
        int,
        Meta(
            description="How often copies may be started again where they are, all counted together, such as 10; "
            "3 by default. One more, and the job has failed.",
            ge=0,
            le=1000,
        ),
    ] = 3
    attempt: Annotated[
        int,
        Meta(
            description="Which attempt this is, such as 2: another number begins anew; 1 by default.", ge=1, le=10_000
        ),
    ] = 1
    deadline_seconds: Annotated[
        int,
        Meta(
            description="Seconds that it may take in all, the wait for its start included, such as 86400; "
            "no end by default.",
            ge=1,
            le=31_536_000,
        ),
    ] = 0
    clean_up: Annotated[
        Literal["running", "all", "none"],
        Meta(
            description="What is ended when the training has: running ends the copies that still run, all removes the "
            "others and what they said too, none leaves everything until keepSeconds; running by default."
        ),
    ] = "running"
    keep_seconds: Annotated[
        int,
        Meta(
            description="Seconds for which what has ended can be looked at, such as 3600; 86400 by default. "
            "The outcome stays in the status.",
            ge=60,
            le=31_536_000,
        ),
    ] = 86_400
    suspended: Annotated[
        str,
        Meta(
            description="Who keeps it still, and why, such as ann: data is late. What runs is ended and begins anew.",
            max_length=256,
        ),
    ] = ""

    @property
    def leader(self) -> str:
        """The role whose first copy leads."""
        led = LEADERS[self.framework]
        return led if led in self.members else "worker"

    @property
    def members(self) -> dict[str, Role]:
        """The roles that somebody has, the one that leads first."""
        if self.elastic:
            return {"worker": self.roles.worker or Role(replicas=self.workers)}
        found = {name: getattr(self.roles, name) for name in ROLES[self.framework]}
        found[LEADERS[self.framework]] = found[LEADERS[self.framework]] or Role()
        found["worker"] = found["worker"] or Role(replicas=self.workers)
        return {name: role for name, role in found.items() if role and role.replicas}

    def scaled(self, workers: int) -> TrainingJobSpec:
        """With another number of workers, wherever it is said."""
        if self.roles.worker is None:
            return msgspec.structs.replace(self, workers=workers)
        worker = msgspec.structs.replace(self.roles.worker, replicas=workers)
        return msgspec.structs.replace(self, roles=msgspec.structs.replace(self.roles, worker=worker))

    def of(self, role: Role) -> TrainingJobSpec:
        """As it is for one role."""
        return msgspec.structs.replace(
            self,
            cpu=role.cpu or self.cpu,
            memory=role.memory or self.memory,
            gpus=self.gpus if role.gpus is None else role.gpus,
            template=role.template or self.template,
        )

    def faults(self, name: str) -> Iterator[Fault]:
        del name
        yield from _role_faults(self)
        yield from _elastic_faults(self)
        if self.script:
            yield from _script_faults(self)
        found = [fault for role, said in self.members.items() for fault in _faults_of(self, role, said)]
        # What is wrong for all is told once.
        yield from dict.fromkeys(found)


def _role_faults(spec: TrainingJobSpec) -> Iterator[Fault]:
    allowed, led = ROLES[spec.framework], LEADERS[spec.framework]
    for role in msgspec.structs.fields(Roles):
        if getattr(spec.roles, role.name) and role.name not in allowed:
            what = f"{spec.framework} has no {role.name}"
            yield Fault(("roles", role.name), what, f"its roles are {', '.join(allowed)}")
    leader = getattr(spec.roles, led)
    if leader and leader.replicas > 1:
        yield Fault(("roles", led, "replicas"), f"there are {leader.replicas} of {led}, and one can lead")
    if leader and not leader.replicas and (led == "master" or "worker" not in spec.members):
        yield Fault(("roles", led, "replicas"), "nobody leads", next=f"leave {led} out, and there is one")
    if spec.workers and spec.roles.worker:
        what = "workers and roles.worker both say how many there are"
        yield Fault(("workers",), what, next="write roles: {worker: {replicas: NUMBER}} only")


def _elastic_faults(spec: TrainingJobSpec) -> Iterator[Fault]:
    bounds = spec.elastic
    if bounds is None:
        return
    if spec.framework != "pytorch":
        yield Fault(("elastic",), f"{spec.framework} cannot be elastic", next="leave elastic out")
    if bounds.minimum > bounds.maximum:
        yield Fault(("elastic", "minimum"), f"minimum is {bounds.minimum}, and maximum is {bounds.maximum}")
        return
    if spec.roles.master:
        yield Fault(("roles", "master"), "nobody leads where elastic is said", next="leave master out")
    wanted = spec.members["worker"].replicas
    if not bounds.minimum <= wanted <= bounds.maximum:
        path: Path = ("roles", "worker", "replicas") if spec.roles.worker else ("workers",)
        yield Fault(path, f"there are {wanted} workers, and elastic says {bounds.minimum} to {bounds.maximum}")


def _script_faults(spec: TrainingJobSpec) -> Iterator[Fault]:
    size = len(spec.script.encode())
    if size > MAX_SCRIPT:
        what = f"the script has {size:,} bytes, {MAX_SCRIPT:,} is the most"
        yield Fault(("script",), what, next="bring it in an image")
    if spec.command:
        yield Fault(("script",), "script and command both say what to run", next="leave one of the two out")


def _faults_of(spec: TrainingJobSpec, role: str, said: Role) -> Iterator[Fault]:
    """Of one role, as it is with what it has from all; each at the place where it was written."""
    whole = spec.of(said)
    own = {field for field in ("cpu", "memory", "template") if getattr(said, field)}
    for fault in (*WorkloadSpec.faults(whole, spec.framework), *_container_faults(whole), *_dropped(whole)):
        path: Path = ("roles", role, *fault.path) if fault.path[0] in own else fault.path
        yield fault._replace(path=path)


def _container_faults(spec: TrainingJobSpec) -> Iterator[Fault]:
    main = main_container(spec.template, spec.framework, own=bool(spec.image)) or {}
    if main and main.get("name") != spec.framework:
        what = f"no container is called '{spec.framework}'"
        note = "by this name the one that trains is known"
        yield Fault(("template", "spec", "containers"), what, note, f"rename '{main.get('name', '')}'")
    if spec.script and main.get("command"):
        what = f"script and the command of container '{spec.framework}' both say what to run"
        yield Fault(("script",), what, next="leave one of the two out")


def _dropped(spec: TrainingJobSpec) -> Iterator[Fault]:
    for path in dropped(spec.template):
        what = f"{path[-1]} cannot be used in a training job"
        note = f"Kubeflow knows the pods of Kubernetes 1.29, and would drop {spelled(path)} without a word"
        yield Fault(("template", *path), what, note, "leave it out")


class PinterestTrainingJob(Workload, frozen=True, kw_only=True, rename=None):
    """Programs that train one model together, each in its role, until it is trained."""

    GOAL: ClassVar[str] = SUCCEEDED
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("ptt",)
    COLUMNS: ClassVar[tuple[tuple[str, str, str], ...]] = (
        ("Revision", "integer", ".status.revision"),
        ("Framework", "string", ".spec.framework"),
        ("Wanted", "integer", ".status.progress.wanted"),
        ("Started", "integer", ".status.progress.started"),
        ("Reason", "string", '.status.conditions[?(@.type=="Succeeded")].reason'),
        ("Age", "date", ".metadata.creationTimestamp"),
    )
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.spec.image) && self.spec.image != '' || has(self.spec.template) || has(self.spec.roles)",
            "spec.image is missing: write image: NAME:TAG, or containers in spec.template or in each role's",
        ),
        Rule(
            "!has(self.spec.roles) || (self.spec.framework == 'pytorch' ? !has(self.spec.roles.chief) && "
            "!has(self.spec.roles.ps) && !has(self.spec.roles.evaluator) : !has(self.spec.roles.master))",
            "spec.roles: pytorch has master and worker; tensorflow has chief, worker, ps and evaluator",
        ),
        Rule(
            "!has(self.spec.workers) || self.spec.workers == 0 || !has(self.spec.roles) || "
            "!has(self.spec.roles.worker)",
            "spec.workers and spec.roles.worker both say how many there are: leave one out",
        ),
        Rule(
            "!has(self.spec.elastic) || (!has(self.spec.framework) || self.spec.framework == 'pytorch') && "
            "self.spec.elastic.minimum <= self.spec.elastic.maximum && "
            "(!has(self.spec.roles) || !has(self.spec.roles.master))",
            "spec.elastic is for pytorch and without a master; its minimum is not more than its maximum",
        ),
        Rule(
            "!has(self.spec.script) || self.spec.script == '' || !has(self.spec.command) || "
            "size(self.spec.command) == 0",
            "spec.script and spec.command both say what to run: leave one out",
        ),
    )

    spec: TrainingJobSpec
    status: TrainingJobStatus = TrainingJobStatus()
    kind: str = "PinterestTrainingJob"

    @property
    def counted(self) -> tuple[int, int]:
        """Copies that have ended well, of all."""
        return self.status.done, sum(role.replicas for role in self.spec.members.values())

    @property
    def main(self) -> str:
        """Kubeflow looks for the one that trains by this name."""
        return self.spec.framework
