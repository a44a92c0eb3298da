"""Ten faults, one after the other, each on a workload that is well: what `pin why` says, what it says to type, and what
comes of that. `make break`, or `python scripts/breaking.py [NAME …]` with the workloads to try it on."""

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
PATIENCE = 180.0
_KEPT_STILL = ("Paused", "Suspended")


class Round(NamedTuple):
    seed: int
    workload: str
    fault: str
    reason: str
    """What was told first."""
    typed: str
    told_after: float
    well: bool


def main(names: list[str]) -> int:
    names = names or _well()
    if not names:
        print("nothing is well in this project, so nothing can be broken        next: make demo")
        return 2
    rounds = [_round(seed, names[seed % len(names)]) for seed in range(1, ROUNDS + 1)]
    print("\nseed  workload      fault              told                  after   cured by")
    for each in rounds:
        after, cure = f"{each.told_after:.1f} s", each.typed if each.well else f"NOT CURED: {each.typed}"
        print(f"{each.seed:>4}  {each.workload:<12}  {each.fault:<17}  {each.reason:<20}  {after:>6}   {cure}")
    return 0 if all(each.well for each in rounds) else 1


def _round(seed: int, name: str) -> Round:
    print(f"\n--- {seed} ---")
    before = _json("get", name)[0]["revision"]
    _typed("break", name, "--random", "--seed", str(seed))
    fault = _fault(name)
    began = time.monotonic()
    answer = _until_told(name)
    after = time.monotonic() - began
    _typed("why", name)
    cure = answer["next"]
    if cure.startswith("pin "):
        _typed(*shlex.split(cure)[1:])
    well = not _json("why", name)["wrong"]
    _typed("why", name)
    if not cure.startswith("pin rollback"):
        # So that the next round begins with what was.
        _typed("rollback", name, "--to", str(before))
    return Round(seed, name, fault, answer["reason"], cure, after, well and cure.startswith("pin "))


def _until_told(name: str) -> Any:
    """Asked at each change until something is told, or for as long as anybody would wait."""
    deadline = time.monotonic() + PATIENCE
    with subprocess.Popen([PIN, "get", name, "--watch", "--output", "json"], stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        changes = watching.stdout.fileno()
        try:
            while True:
                answer = _json("why", name)
                left = deadline - time.monotonic()
                if answer["wrong"] or answer["reason"] in _KEPT_STILL or left <= 0:
                    return answer
                nothing: list[int] = []
                there, _, _ = select.select([changes], nothing, nothing, left)
                if there and not os.read(changes, 1 << 20):
                    return answer
        finally:
            watching.terminate()


def _fault(name: str) -> str:
    said = _json("show", name)["resource"]["metadata"].get("annotations", {}).get("pinterest.com/broken", "")
    return str(said.partition(" ")[0])


def _well() -> list[str]:
    return [each["name"] for each in _json("get") if each["done"]]


def _typed(*words: str) -> None:
    print(f"$ pin {shlex.join(words)}", flush=True)
    subprocess.run([PIN, *words], check=False)


def _json(*words: str) -> Any:
    done = subprocess.run([PIN, *words, "--output", "json"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
