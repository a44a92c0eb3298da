"""What all workloads share: what runs, for whom, in which tier, with which configuration and on which runtime."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from pincompute.api.glass import Glass
from pincompute.api.noun import Fault, Noun, Rule, Spec
from pincompute.api.pod import PodTemplate, amounts_of, containers_of, main_container, template_faults
from pincompute.api.status import READY, Status
from pincompute.api.wire import Environment, Strict, amount
from pincompute.objects.content import Object
from pincompute.objects.image import parse

OUR_VARIABLES = "PIN_"
"""Variables of such names are ours to set."""
NOT_THEIRS = f"names that begin with {OUR_VARIABLES} are set by the platform"
MAX_CONFIGURATION = 900_000
"""Bytes that one ConfigMap is sure to take."""


class Tier(StrEnum):
    """What a workload may count on; only preemptible work is ever ended to make room."""

    RESERVED = "reserved"
    ON_DEMAND = "on-demand"
    PREEMPTIBLE = "preemptible"


class Hold(Strict, frozen=True):
    """An older runtime, until a date."""

    runtime: Annotated[int, Meta(description="The runtime to stay on, such as 41.", ge=1, le=1_000_000)]
    until: Annotated[
        str,
        Meta(
            description="The last day of it, such as 2026-12-31.",
            pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            max_length=10,
        ),
    ]
    because: Annotated[
        str, Meta(description="Why, for those who will ask, such as: logs-3 breaks our parser.", max_length=256)
    ] = ""


class WorkloadSpec(Spec, frozen=True, kw_only=True):
    """The short form names one program; `template` takes a whole pod template, and both go together."""

    image: Annotated[
        str,
        Meta(
            description="The container image, such as hello:1.2; `template` may name containers instead.",
            max_length=512,
        ),
    ] = ""
    command: Annotated[
        list[Annotated[str, Meta(max_length=32_768)]],
        Meta(description="What to run instead of the image's own program, such as [python3, app.py].", max_length=256),
    ] = []
    arguments: Annotated[
        list[Annotated[str, Meta(max_length=32_768)]],
        Meta(description="What to hand to the image's own program, such as [--verbose].", max_length=256),
    ] = []
    environment: Environment = {}
    configuration: Annotated[
        dict[str, Annotated[str, Meta(max_length=MAX_CONFIGURATION)]],
        Meta(description="Files that the program finds, by name, such as app.toml: |- …", max_length=256),
    ] = {}
    configuration_path: Annotated[
        str,
        Meta(
            description="The folder in which it finds them, such as /etc/hello; /etc/configuration by default.",
            pattern="^/[^:]*$",
            max_length=256,
        ),
    ] = "/etc/configuration"
    cpu: Annotated[
        int | str, amount("Processor time that is kept for each copy, such as 500m or 2; 100m by default.")
    ] = ""
    memory: Annotated[int | str, amount("Memory that each copy has, and no more, such as 512Mi; 128Mi by default.")] = (
        ""
    )
    gpus: Annotated[int, Meta(description="GPUs of each copy, such as 1; none by default.", ge=0, le=64)] = 0
    whole_node: Annotated[
        bool, Meta(description="Each copy has a node for itself, daemons aside; false by default.")
    ] = False
    owner: Annotated[
        str,
        Meta(description="Who answers for it, such as team-ads; the project's owner by default.", max_length=128),
    ] = ""
    tier: Annotated[
        Tier, Meta(description="reserved, on-demand or preemptible, which alone may be ended to make room.")
    ] = Tier.ON_DEMAND
    build: Annotated[
        str,
        Meta(
            description="Which published version it is, such as 1.4: the desk says so when it deploys one.",
            max_length=63,
        ),
    ] = ""
    break_glass: Annotated[
        Glass | None, Meta(description="That nobody has reviewed it: the desk says so when somebody breaks the glass.")
    ] = None
    iam_role: Annotated[
        str, Meta(description="The role it takes towards a cloud, such as ads-reader.", max_length=256)
    ] = ""
    hold: Annotated[Hold | None, Meta(description="Stay on an older runtime until a date.")] = None
    sidecar_config: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="Parameters of parts of the runtime, such as logs: {level: debug}.", max_length=32),
    ] = {}
    simulated: Annotated[bool, Meta(description="Pretend to run it, on a simulated node; false by default.")] = False
    template: Annotated[
        Object,
        Meta(
            description="A pod template, for all that the short form has no word for.",
            extra={"shape": PodTemplate},
            extra_json_schema={"$ref": "PodTemplate"},
        ),
    ] = {}

    def faults(self, name: str) -> Iterator[Fault]:
        yield from _image_faults(self, name)
        yield from _short_form_faults(self, name)
        yield from template_faults(self.template, ("template",))
        for variable in self.environment:
            if not variable or "=" in variable or variable.startswith(OUR_VARIABLES):
                yield Fault(
                    ("environment", variable),
                    f"no variable can be called '{variable}'",
                    NOT_THEIRS,
                )
        for file in self.configuration:
            if not file.strip(".") or not all(each.isalnum() or each in "-_." for each in file):
                yield Fault(
                    ("configuration", file), f"no file can be called '{file}'", "letters, digits and - _ . are allowed"
                )
        size = sum(len(content.encode()) for content in self.configuration.values())
        if size > MAX_CONFIGURATION:
            yield Fault(
                ("configuration",), f"the files have {size:,} bytes together, {MAX_CONFIGURATION:,} is the most"
            )


def _image_faults(spec: WorkloadSpec, name: str) -> Iterator[Fault]:
    main = main_container(spec.template, name, own=bool(spec.image))
    if not spec.image and not (main or {}).get("image"):
        yield Fault(("image",), "image is missing", next="write image: NAME:TAG")
    for path, each in containers_of(spec.template, ("template",)):
        if each is not main and not each.get("image"):
            yield Fault((*path, "image"), f"the image of container '{each.get('name', '')}' is missing")
    if spec.image:
        try:
            parse(spec.image)
        except ValueError as error:
            yield Fault(("image",), f"{spec.image!r} cannot be an image: {error}")


def _short_form_faults(spec: WorkloadSpec, name: str) -> Iterator[Fault]:
    """The short form and the template may speak of one container, but not say the same thing twice."""
    main = main_container(spec.template, name, own=bool(spec.image)) or {}
    amounts = amounts_of(main)
    said = (
        ("image", spec.image, "image" in main),
        ("command", spec.command, "command" in main),
        ("arguments", spec.arguments, "args" in main),
        ("cpu", spec.cpu, "cpu" in amounts),
        ("memory", spec.memory, "memory" in amounts),
    )
    for ours, value, theirs in said:
        if value and theirs:
            yield Fault(
                (ours,),
                f"{ours} stands here and in the template's container '{main.get('name', '')}'",
                next="leave one of the two out",
            )
    env = main.get("env")
    there = [each.get("name") for each in env if isinstance(each, dict)] if isinstance(env, list) else []
    for variable in sorted(each for each in spec.environment if each in there):
        yield Fault(("environment", variable), f"{variable} stands here and in the template", next="leave one out")


class Workload(Noun, frozen=True, kw_only=True, rename=None):
    """One that runs: its status has a goal."""

    GOAL: ClassVar[str] = READY
    COPY: ClassVar[tuple[str, str]] = ("copy", "copies")
    """What one of its pods is called, and several."""
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.spec.image) && self.spec.image != '' || has(self.spec.template)",
            "spec.image is missing: write image: NAME:TAG, or containers in spec.template",
        ),
    )

    spec: WorkloadSpec
    status: Status = Status()

    @property
    def main(self) -> str:
        """What the container of the short form is called."""
        return self.metadata.name

    @property
    def counted(self) -> tuple[int, int]:
        """How far it has come, and how far it is to come: by default its copies that answer, of all."""
        progress = self.status.progress
        return (progress.ready, progress.wanted) if progress else (0, getattr(self.spec, "replicas", 0))

    @property
    def attempt(self) -> int:
        """The 2 of `resize@1.2`."""
        return 1

    @property
    def goes_on(self) -> bool:
        """What is wrong is wrong with a part of it, and the rest goes on all the same."""
        return False
