"""Where saved figures come from: commit, date and machine; and their rounding."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figures import ROOT


def commit() -> str:
    words = ("git", "describe", "--always", "--dirty", "--exclude=*")
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def machine() -> str:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{len(os.sched_getaffinity(0))} cores of {models[0] if models else platform.machine()}"


def rounded(value: Any) -> Any:
    """Four significant digits: more would only make the file longer."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
