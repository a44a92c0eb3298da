"""All that runs on a platform, as a roll is planned by it and found again: what a desk tells the hand."""

from __future__ import annotations

from typing import Any

from pincompute.api.wire import Strict


class Fleet(Strict, frozen=True):
    """Every workload, and what workloads are planned by."""

    facts: dict[str, str]
    """What the cluster says of itself."""
    nouns: list[dict[str, Any]]
    """Projects, runtimes, parts and workloads, whole."""


class Copy(Strict, frozen=True):
    """One pod, and what it was made with."""

    project: str
    workload: str
    pod: str
    parts: list[str] = []
    """Such as logs-2."""
    images: list[str] = []
    """Each image that runs, with its digest where that is known."""


class Rolling(Strict, frozen=True):
    """How a roll stands."""

    number: int
    reason: str = ""
    message: str = ""
    next: str = ""
    wave: str = ""
    current: bool = False
    """Everybody has it."""
    progress: dict[str, Any] = {}
    """As the runtime's status says it."""
