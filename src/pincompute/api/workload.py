"""What all workloads share: how they are named, and what their status says."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

MAX_NAME = 50
"""A name of 50 letters leaves room for what Kubernetes appends to a pod's."""
NAME_PATTERN = "^[a-z]([-a-z0-9]*[a-z0-9])?$"


class Wire(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """Read leniently from a cluster: a newer version may know more fields."""


class Strict(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Written by people: what is not known is a mistake to be told."""


class Metadata(Wire, frozen=True):
    """The fields of Kubernetes metadata that we use."""

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str = ""


class Progress(Strict, frozen=True):
    """How far the pods of the newest revision have come."""

    wanted: Annotated[int, Meta(description="Pods that should run, such as 3.")] = 0
    scheduled: Annotated[int, Meta(description="Pods that have a node, such as 3.")] = 0
    started: Annotated[int, Meta(description="Pods whose program runs, such as 2.")] = 0
    ready: Annotated[int, Meta(description="Pods that answer, such as 1.")] = 0


class Condition(Strict, frozen=True):
    """One condition, by the Kubernetes conventions."""

    type: Annotated[str, Meta(description="What is said to be so, such as Available.", max_length=64)]
    status: Annotated[str, Meta(description="True, False or Unknown.", max_length=8)]
    reason: Annotated[
        str, Meta(description="One CamelCase code with a page of its own, such as CrashLoop.", max_length=64)
    ]
    message: Annotated[str, Meta(description="The same for people, with numbers and names.", max_length=4096)]
    last_transition_time: Annotated[
        str, Meta(description="When the status last changed, such as 2026-01-31T12:00:00Z.")
    ]
    observed_generation: Annotated[int, Meta(description="The generation that this speaks of, such as 7.")] = 0


class Status(Strict, frozen=True):
    """What the operator last saw."""

    observed_generation: Annotated[int, Meta(description="The generation that this status speaks of, such as 7.")] = 0
    revision: Annotated[int, Meta(description="The number after the @ of hello@7.")] = 0
    address: Annotated[str, Meta(description="Where it answers, such as http://hello.me.localhost:8080.")] = ""
    replicas: Annotated[int, Meta(description="Pods that exist, such as 3.")] = 0
    ready_replicas: Annotated[int, Meta(description="Pods that answer, such as 3.")] = 0
    selector: Annotated[str, Meta(description="The pods of this workload, as a label selector.")] = ""
    simulated: Annotated[bool, Meta(description="True where no program runs and it is only pretended.")] = False
    next: Annotated[str, Meta(description="What to type when something is wrong, such as pin logs hello.")] = ""
    progress: Annotated[Progress | None, Meta(description="How far the newest revision has come.")] = None
    conditions: Annotated[list[Condition], Meta(description="What is so, and why.", max_length=16)] = []
