"""The gate: every check of `make test`, side by side; `--fast` leaves out what needs a cluster.

Steps of one group run one after the other, groups run at the same time. Tests on clusters wait for Kubernetes half of
the time, and fail if it gets no CPU. So the unit tests run with the lowest priority, on what the others leave. Every
step runs even if others fail, so that one run shows everything.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SUMMARY_LINES = 40
"""Of each failed step."""
LOGS = ROOT / "build" / "gate"
BIN = ROOT / ".venv" / "bin"


class Step(NamedTuple):
    name: str
    command: tuple[str, ...]
    shows_output: bool = False
    """Print its last lines also if it succeeds."""
    in_background: bool = False
    """Run it with the lowest CPU priority."""


def _pytest(name: str, markers: str, *options: str, under: tuple[str, ...] = ()) -> Step:
    return Step(name, (*under, "pytest", "-m", markers, "--durations=15", *options))


STATIC = (
    Step("format", ("ruff", "format", "--check", ".")),
    Step("lint", ("ruff", "check", ".")),
    Step("types", ("pyrefly", "check")),
    Step("layers", ("lint-imports",)),
)
COVERAGE = ("python", "-m", "slipcover", "--json", "--out", "build/coverage.json", "--source", "src/pincompute", "-m")
# Slipcover has a pytest plugin of its own, which is imported before pytest is.
IGNORED_WARNING = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
UNIT_TIMEOUT_S = 600
"""A unit test that takes longer hangs. Tests on clusters may take longer, as the first one may build Kubernetes."""
UNITS = (
    _pytest(
        "units", "not cluster", "-o", f"faulthandler_timeout={UNIT_TIMEOUT_S}", "-W", IGNORED_WARNING, under=COVERAGE
    )._replace(in_background=True),
    Step("coverage", ("python", "scripts/coverage_report.py"), shows_output=True),
)
SERVERS = (_pytest("servers", "cluster and not node"),)
NODES = (
    Step("packages", ("python", "scripts/install_packages.py")),
    _pytest("nodes", "node")._replace(shows_output=True),
)
FAST_GROUPS = (UNITS, STATIC)
GROUPS = (NODES, SERVERS, (*UNITS, *STATIC))


class Outcome(NamedTuple):
    step: Step
    status: int
    seconds: float

    @property
    def log(self) -> Path:
        return LOGS / f"{self.step.name}.log"


async def _run(step: Step) -> Outcome:
    began = time.monotonic()
    with (LOGS / f"{step.name}.log").open("wb") as log:
        nice = ("nice", "-n", "19") if step.in_background else ()
        command = (*nice, BIN / step.command[0], *step.command[1:])
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        status = await process.wait()
    outcome = Outcome(step, status, time.monotonic() - began)
    print(f"{'ok    ' if status == 0 else 'FAILED'} {step.name}  {outcome.seconds:.0f} s", flush=True)
    return outcome


async def _run_group(group: tuple[Step, ...]) -> list[Outcome]:
    return [await _run(step) for step in group]


def _summary(log: Path) -> list[str]:
    """The failed tests, and of a test that hung the stack frames in this project, to be read in a log that is cut."""
    lines = log.read_text(errors="replace").splitlines()
    found = [line for line in lines if line.startswith(("FAILED ", "ERROR ", "Timeout (")) or _is_own_frame(line)]
    return found[:SUMMARY_LINES] or lines[-3:]


def _is_own_frame(line: str) -> bool:
    return line.startswith(f'  File "{ROOT}/') and "/.venv/" not in line


async def main(groups: tuple[tuple[Step, ...], ...]) -> int:
    LOGS.mkdir(parents=True, exist_ok=True)
    names = "; ".join(", ".join(step.name for step in group) for group in groups)
    print(f"running side by side: {names}\nlogs: {LOGS.relative_to(ROOT)}/", flush=True)
    outcomes = [outcome for group in await asyncio.gather(*map(_run_group, groups)) for outcome in group]
    failed = [outcome for outcome in outcomes if outcome.status]
    for outcome in outcomes:
        if outcome.status:
            print(f"\n== {outcome.step.name}\n{outcome.log.read_text(errors='replace')}")
        elif outcome.step.shows_output:
            print(f"\n== {outcome.step.name}\n" + "\n".join(outcome.log.read_text(errors="replace").splitlines()[-25:]))
    if failed:
        print("\nin short, the logs say:")
        for outcome in failed:
            print("\n".join(f"{outcome.step.name}: {line}" for line in _summary(outcome.log)))
        print(f"\nFAILED: {', '.join(outcome.step.name for outcome in failed)}")
        return 1
    print("\nall checks passed")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(FAST_GROUPS if "--fast" in sys.argv[1:] else GROUPS)))
