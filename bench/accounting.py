"""Processor time and memory of processes, as the kernel counts them."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def used_s(pid: int) -> float:
    """Processor time of a process, with that of its children that have ended."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:15])) / _TICKS_PER_S


def pss_bytes(pid: int) -> int:
    """Proportional set size: pages that several processes share count in part."""
    return _kib(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") * 1024


def resident_bytes(pid: int) -> int:
    return _kib(Path(f"/proc/{pid}/status"), "VmRSS:") * 1024


def peak_bytes(pid: int) -> int:
    """Largest resident size since the start, or since `reset_peak`."""
    return _kib(Path(f"/proc/{pid}/status"), "VmHWM:") * 1024


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _kib(file: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(name))
