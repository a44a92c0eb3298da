"""Limits of the config store. What exceeds one is refused, and never removes what another project has published."""

from __future__ import annotations

from typing import NamedTuple


class ConfigLimits(NamedTuple):
    """Per project, where nothing else is said."""

    bundles: int = 100
    versions: int = 50
    """Versions kept of one bundle. The oldest that no workload has is removed for a new one."""
    files: int = 20_000
    bytes: int = 64 << 20
    unused_seconds: float = 3_600.0
    """Contents without a bundle are removed after this time: an upload comes before its bundle."""
    live_requests: int = 1_000
    """Requests of the pods of a project that wait for a change."""
    total_live_requests: int = 10_000
    """The same of all projects."""
