"""What the operator says of a workload: conditions by the Kubernetes conventions, and how far it has come."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pincompute.api.wire import Strict

# The conditions that there are.
READY = "Ready"
"""The goal of what runs on: every copy is of the newest revision and answers."""
SUCCEEDED = "Succeeded"
"""The goal of what ends: all of the work is done."""
AVAILABLE = "Available"
"""Somebody answers, of whatever revision."""
OUTDATED = "Outdated"
"""Copies run a runtime that was replaced long ago; only said where it is so."""

UNREVIEWED = "Unreviewed"
"""The glass was broken for what runs; only said where it is so."""


class Progress(Strict, frozen=True):
    """How far the pods of the newest revision have come."""

    wanted: Annotated[int, Meta(description="Pods that should run, such as 3.")] = 0
    scheduled: Annotated[int, Meta(description="Pods that have a node, such as 3.")] = 0
    started: Annotated[int, Meta(description="Pods whose program runs, such as 2.")] = 0
    ready: Annotated[int, Meta(description="Pods that answer, such as 1.")] = 0


class Condition(Strict, frozen=True):
    """One condition, by the Kubernetes conventions."""

    type: Annotated[str, Meta(description="What is said to be so, such as Ready.", max_length=64)]
    status: Annotated[str, Meta(description="True, False or Unknown.", max_length=8)]
    reason: Annotated[
        str, Meta(description="One CamelCase code with a page of its own, such as CrashLoop.", max_length=64)
    ]
    message: Annotated[str, Meta(description="The same for people, with numbers and names.", max_length=4096)]
    last_transition_time: Annotated[
        str, Meta(description="When the status last changed, such as 2026-01-31T12:00:00Z.")
    ]
    observed_generation: Annotated[int, Meta(description="The generation that this speaks of, such as 7.")] = 0


class Report(Strict, frozen=True):
    """What the operator says of everything that is planned."""

    observed_generation: Annotated[int, Meta(description="The generation that this status speaks of, such as 7.")] = 0
    next: Annotated[str, Meta(description="What to type when something is wrong, such as pin logs hello.")] = ""
    conditions: Annotated[list[Condition], Meta(description="What is so, and why.", max_length=16)] = []


class Status(Report, frozen=True):
    """What the operator last saw of a workload; each kind adds its own."""

    revision: Annotated[int, Meta(description="The number after the @ of hello@7.")] = 0
    runtime: Annotated[int, Meta(description="The runtime that its pods are made with, such as 42; 0 is none.")] = 0
    parts: Annotated[
        list[Annotated[str, Meta(max_length=64)]],
        Meta(description="The parts that were injected, such as logs-2.", max_length=32),
    ] = []
    address: Annotated[str, Meta(description="Where it answers, such as http://hello.me.localhost:8080.")] = ""
    replicas: Annotated[int, Meta(description="Pods that exist, such as 3.")] = 0
    ready_replicas: Annotated[int, Meta(description="Pods that answer, such as 3.")] = 0
    renewed: Annotated[int, Meta(description="Pods that got their runtime where they are, such as 3.")] = 0
    selector: Annotated[str, Meta(description="The pods of this workload, as a label selector.")] = ""
    simulated: Annotated[bool, Meta(description="True where no program runs and it is only pretended.")] = False
    progress: Annotated[Progress | None, Meta(description="How far the newest revision has come.")] = None


def condition(conditions: list[Condition], type_: str) -> Condition | None:
    return next((each for each in conditions if each.type == type_), None)
