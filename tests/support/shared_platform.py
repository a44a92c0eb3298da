"""A platform with simulated nodes, started once for the whole run with `pin up`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class SharedPlatform(NamedTuple):
    name: str
    state: Path

    @property
    def kubeconfig(self) -> Path:
        return self.state / self.name / "kubeconfig"

    def spawn(self, *arguments: str) -> subprocess.Popen[str]:
        """Run `pin` with a state folder of its own, so that no other platform on this machine is affected."""
        return subprocess.Popen(
            [sys.executable, "-m", "pincompute", *arguments],
            env={**os.environ, "PIN_STATE": str(self.state), "PIN_NAME": self.name},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def pin(self, *arguments: str, code: int = 0) -> str:
        """Run `pin`; return its output. Its exit code must be `code`."""
        process = self.spawn(*arguments)
        out, errors = process.communicate()
        assert process.returncode == code, f"pin {' '.join(arguments)} ended with {process.returncode}\n{out}{errors}"
        return out

    def status(self, code: int = 0) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(self.pin("status", "-o", "json", code=code))
        return decoded

    def pids(self) -> dict[str, int]:
        return {part["name"]: part["pid"] for part in self.status()["parts"]}


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedPlatform]:
    """50 simulated nodes in 3 zones. Tests share it: a test that stops parts starts them again."""
    shared = SharedPlatform("t-shared", tmp_path_factory.mktemp("shared"))
    shared.pin("up", "--simulated", "--nodes", "50", "--zones", "3", "--http-port", str(_free_port()))
    yield shared
    shared.pin("down", "--purge")


def _free_port() -> int:
    from pincompute.engine.ports import choose_ports

    return choose_ports({}, None)["desk"]
