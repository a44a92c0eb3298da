"""A part of the platform: a program that is started, watched and ended. They join through one list."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple


class Web(NamedTuple):
    """Ready when this URL answers 200, asked with the platform's CA and, where it is named, a client certificate."""

    url: str
    client: str = ""


class Socket(NamedTuple):
    """Ready when something accepts connections here: a path, or an address and port."""

    path: Path | None = None
    address: str = ""
    port: int = 0


class Alive(NamedTuple):
    """Ready as soon as it runs: it serves nobody and says nothing."""


Ready = Web | Socket | Alive


class Part(NamedTuple):
    """One program of a stage: the parts of a stage start together, when those of the stage before are ready."""

    name: str
    command: tuple[str, ...]
    ready: Ready
    environment: Mapping[str, str] = MappingProxyType({})
    namespace: str = ""
    """The network namespace it runs in; the host's where empty."""
    ending: float = 5.0
    """Seconds between SIGTERM and SIGKILL."""
    version: str = ""
    """What `pin status` says it is."""
    renews: bool = False
    """Whether it becomes its next version where it is, as what it serves must not be interrupted."""
