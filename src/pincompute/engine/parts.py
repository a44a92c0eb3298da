"""Parts: the programs that make up a platform, described as values. `stages.py` has the list of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple


class HttpProbe(NamedTuple):
    """Ready when a GET of this URL answers 200. The server certificate is verified by the platform's CA."""

    url: str
    client_certificate: str = ""
    """Name of the client certificate to present; none where empty."""
    authority: str = ""
    """Folder below the platform's certificates with the CA and the client certificate; the platform's own if empty."""


class SocketProbe(NamedTuple):
    """Ready when a Unix socket (`path`) or a TCP address accepts connections."""

    path: Path | None = None
    address: str = ""
    port: int = 0


class NoProbe(NamedTuple):
    """Ready as soon as the process runs: the part serves nothing that could be probed."""


ReadinessProbe = HttpProbe | SocketProbe | NoProbe


class Part(NamedTuple):
    """One program of a platform. The parts of a stage start together, when all parts of the previous one are ready."""

    name: str
    command: tuple[str, ...]
    probe: ReadinessProbe
    environment: Mapping[str, str] = MappingProxyType({})
    network_namespace: str = ""
    """Network namespace of the process; the host's where empty."""
    grace_period_s: float = 5.0
    """Seconds between SIGTERM and SIGKILL."""
    version: str = ""
    """Shown by `pin status`. A change of it restarts the part."""
    reexecs: bool = False
    """Whether an update re-executes the running process instead of restarting it, so that its sockets stay open."""
    before_restart: tuple[str, ...] = ()
    """Command that the supervisor runs before it restarts the part, for example to release what the ended process
    held."""
