"""Injects ten faults, one after the other, into healthy workloads, and runs the command that `pin why` proposes.

`make break`, or `python scripts/fault_rounds.py [NAME …]` with the workloads to use.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

PIN = str(Path(__file__).parents[1] / ".venv" / "bin" / "pin")
ROUNDS = 10
TIMEOUT_S = 180.0
_PAUSED_REASONS = ("Paused", "Suspended")


class Round(NamedTuple):
    seed: int
    workload: str
    fault: str
    reason: str
    """The first reported reason."""
    command: str
    diagnosed_after_s: float
    fixed: bool


def main(names: list[str]) -> int:
    names = names or _healthy_workloads()
    if not names:
        print("this project has no healthy workload        next: make demo")
        return 2
    rounds = [_run_round(seed, names[seed % len(names)]) for seed in range(1, ROUNDS + 1)]
    print("\nseed  workload      fault              reason                after   fixed by")
    for done in rounds:
        after, command = f"{done.diagnosed_after_s:.1f} s", done.command if done.fixed else f"NOT FIXED: {done.command}"
        print(f"{done.seed:>4}  {done.workload:<12}  {done.fault:<17}  {done.reason:<20}  {after:>6}   {command}")
    return 0 if all(each.fixed for each in rounds) else 1


def _run_round(seed: int, name: str) -> Round:
    print(f"\n--- {seed} ---")
    before = _json("get", name)[0]["revision"]
    _run_pin("break", name, "--random", "--seed", str(seed))
    fault = _injected_fault(name)
    began = time.monotonic()
    diagnosis = _wait_for_diagnosis(name)
    after = time.monotonic() - began
    _run_pin("why", name)
    command = diagnosis["next"]
    if command.startswith("pin "):
        _run_pin(*shlex.split(command)[1:])
    fixed = not _json("why", name)["isProblem"]
    _run_pin("why", name)
    if not command.startswith("pin rollback"):
        # The next round must start with the original workload.
        _run_pin("rollback", name, "--to", str(before))
    return Round(seed, name, fault, diagnosis["reason"], command, after, fixed and command.startswith("pin "))


def _wait_for_diagnosis(name: str) -> Any:
    """Diagnoses after each change, until there is a problem or the time is over."""
    deadline = time.monotonic() + TIMEOUT_S
    with subprocess.Popen([PIN, "get", name, "--watch", "--output", "json"], stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        changes = watching.stdout.fileno()
        try:
            while True:
                diagnosis = _json("why", name)
                remaining_s = deadline - time.monotonic()
                if diagnosis["isProblem"] or diagnosis["reason"] in _PAUSED_REASONS or remaining_s <= 0:
                    return diagnosis
                nothing: list[int] = []
                readable, _, _ = select.select([changes], nothing, nothing, remaining_s)
                if readable and not os.read(changes, 1 << 20):
                    return diagnosis
        finally:
            watching.terminate()


def _injected_fault(name: str) -> str:
    annotations = _json("show", name)["resource"]["metadata"].get("annotations", {})
    return str(annotations.get("pinterest.com/broken", "").partition(" ")[0])


def _healthy_workloads() -> list[str]:
    return [each["name"] for each in _json("get") if each["done"]]


def _run_pin(*arguments: str) -> None:
    print(f"$ pin {shlex.join(arguments)}", flush=True)
    subprocess.run([PIN, *arguments], check=False)


def _json(*arguments: str) -> Any:
    done = subprocess.run([PIN, *arguments, "--output", "json"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
