"""Runs every fault at every write of each scenario, then random faults and outages. Results go to `build/sim.json`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from simulation.fault_runs import (
    FaultVerdict,
    crash_points,
    other_fault_points,
    run_fault_points,
    run_one_point,
    run_undisturbed,
)
from simulation.faults import ALL_FAULTS, SUITES, FaultPoint, suite_of
from simulation.fuzz import FuzzResult, run_seed
from simulation.outages import OUTAGES, OutageResult, run_outage
from simulation.scenarios import SCENARIOS

ROOT = Path(__file__).parents[1]
SUITE_NAMES = {"R1": "crashes", "R2": "cache faults", "R3": "other faults", "others": "foreign writers"}
MAX_SHOWN = 5
"""Violations that are printed per scenario; all are counted."""
MAX_SHOWN_CHARS = 2000
OUTAGE_MINUTES = (10, 60)


class ScenarioTally:
    """Counts the results of one scenario."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.writes = 0
        self.points: Counter[str] = Counter()
        """Fault points by suite, equivalent ones included."""
        self.failed: Counter[str] = Counter()
        """Points with violations, by suite."""
        self.runs: Counter[str] = Counter()
        """Points that were run, by suite: of several equivalent crashes only one is."""
        self.passes = 0
        self._began = time.perf_counter()

    def add(self, verdict: FaultVerdict, stands_for: int = 1) -> None:
        suite = suite_of(verdict.point.fault)
        self.runs[suite] += 1
        self.points[suite] += stands_for
        self.passes = max(self.passes, verdict.passes)
        self.failed[suite] += bool(verdict.violations)
        if verdict.violations and self.failed.total() <= MAX_SHOWN:
            show_verdict(self.name, verdict)

    def summary_line(self) -> str:
        seconds = time.perf_counter() - self._began
        failed = self.failed.total()
        result = f"{failed} VIOLATIONS" if failed else "ok"
        points = "  ".join(f"{self.points[suite]:>4} {SUITE_NAMES[suite]}" for suite in SUITES)
        return (
            f"{self.name:<26}{self.writes:>4} writes  {points}  max {self.passes} passes  {seconds:>4.0f} s  {result}"
        )


def show_verdict(name: str, verdict: FaultVerdict) -> None:
    print(f"{name}: {verdict.point}, {verdict.write}")
    for violation in verdict.violations:
        print(f"    {violation}")
    print(f"    run again: .venv/bin/python -m simulation {name} --point {verdict.point}", flush=True)


def run_points(name: str, *, only: Sequence[str] = ALL_FAULTS, stop_at_first: bool = False) -> ScenarioTally:
    """Runs all fault points of a scenario, or only those of some faults."""
    tally = ScenarioTally(name)
    scenario = SCENARIOS[name]
    undisturbed = run_undisturbed(scenario)
    tally.writes = len(undisturbed.writes)
    if undisturbed.violations:
        tally.add(FaultVerdict(FaultPoint(-1, "none"), "undisturbed run", undisturbed.passes, undisturbed.violations))
        return tally
    stands_for = Counter(crash_points(undisturbed).values())
    points = [each for each in (*stands_for, *other_fault_points(scenario, undisturbed)) if each.fault in only]
    for verdict in run_fault_points(scenario, undisturbed, points, stop_at_first=stop_at_first):
        tally.add(verdict, stands_for.get(verdict.point, 1))
    return tally


def run_seeds(seeds: Iterable[int], names: Sequence[str]) -> tuple[list[FuzzResult], int]:
    """Runs random faults; returns the results and how many seeds have violations."""
    results = [run_seed(seed, names[seed % len(names)] if names else "") for seed in seeds]
    failed = [each for each in results if each.violations]
    for result in failed[:MAX_SHOWN] if len(results) > 1 else results:
        print(
            f"seed {result.seed}: {result.kind}, {result.steps} steps, {result.process_starts} operator starts, "
            f"trace {result.trace}"
        )
        for violation in result.violations:
            print(f"    {violation}")
        name = f"{result.kind} " if names else ""
        print(f"    run again: .venv/bin/python -m simulation {name}--seed {result.seed}", flush=True)
    starts = sum(each.process_starts for each in results)
    outcome = f"{len(failed)} seeds with VIOLATIONS" if failed else "ok"
    print(f"{len(results)} seeds, {starts} operator starts: {outcome}", flush=True)
    return results, len(failed)


def count_irreproducible(results: Sequence[FuzzResult]) -> int:
    """Runs all seeds in two further processes with other hash seeds; counts those with another trace.

    Iterating over a set of strings depends on the hash seed. A run that depends on it cannot be reproduced.
    """
    code = (
        "import sys; from simulation.fuzz import run_seed; print(*(run_seed(int(each)).trace for each in sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, *(str(each.seed) for each in results)]
    expected = [each.trace for each in results]
    processes = [
        subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": hash_seed}, stdout=subprocess.PIPE, text=True
        )
        for hash_seed in ("1", "2")
    ]
    traces = [process.communicate()[0].split() for process in processes]
    different = sum(len({*each}) > 1 for each in zip(expected, *traces, strict=True))
    print(f"{len(expected) - different} of {len(expected)} seeds are reproducible with other hash seeds", flush=True)
    return different


def suite_figures(suite: str, tallies: list[ScenarioTally]) -> dict[str, object]:
    points, failed = (sum(each.points[suite] for each in tallies), sum(each.failed[suite] for each in tallies))
    by_scenario = {each.name: {"writes": each.writes, "points": each.points[suite]} for each in tallies}
    possible = sum(each.writes for each in tallies) * len(SUITES[suite])
    runs = sum(each.runs[suite] for each in tallies)
    return {"value": (points - failed) / points, "every": possible, "points": points, "run": runs,
            "violations": failed, "kinds": by_scenario}  # fmt: skip


def suite_line(suite: str, tallies: list[ScenarioTally]) -> str:
    figures = suite_figures(suite, tallies)
    tried = f"{figures['points']} tried in {figures['run']} runs"
    return f"{suite}: {figures['every']} possible {SUITE_NAMES[suite]}, {tried}"


def run_outages() -> dict[str, OutageResult]:
    """Runs every outage at every length."""
    results = {}
    for kind, description in OUTAGES.items():
        for minutes in OUTAGE_MINUTES:
            result = results[f"{kind} {minutes}"] = run_outage(kind, minutes * 60.0)
            outcome = f"recovered after {result.recovery_s:.0f} s" if not result.violations else "VIOLATIONS"
            print(
                f"{minutes} minutes, {description}: at most {result.max_requests_per_minute} requests a minute, "
                f"{result.requests_first_minute_after} in the first minute after; {outcome}",
                flush=True,
            )
            for violation in result.violations[:MAX_SHOWN]:
                print(f"    {violation}"[:MAX_SHOWN_CHARS], flush=True)
    return results


def write_results(
    tallies: list[ScenarioTally],
    seeds: Sequence[FuzzResult],
    irreproducible: int,
    outages: dict[str, OutageResult],
) -> None:
    figures: dict[str, object] = {suite: suite_figures(suite, tallies) for suite in SUITES}
    reproducible = (len(seeds) - irreproducible) / len(seeds) if seeds else 0.0
    figures |= {
        "outages": {
            name: {
                "perMinute": each.max_requests_per_minute,
                "after": each.requests_first_minute_after,
                "healed": each.recovery_s,
                "violations": len(each.violations),
            }
            for name, each in outages.items()
        },
        "R6": {"value": reproducible, "seeds": len(seeds), "others": irreproducible},
        "R7": {"value": max(each.passes for each in tallies), "unit": "passes"},
    }
    print("\n".join(suite_line(suite, tallies) for suite in SUITES), flush=True)
    file = ROOT / "build" / "sim.json"
    before = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(before | figures, indent=2) + "\n")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}. Default: all")
    parser.add_argument("--point", metavar="WRITE:FAULT", help="one fault of one scenario, e.g. 37:crash-response-lost")
    parser.add_argument("--seed", type=int, help="one run with random faults")
    parser.add_argument("--seeds", type=int, default=100, help="number of runs with random faults (default: 100)")
    parser.add_argument(
        "--faults", "--ways", nargs="+", choices=ALL_FAULTS, default=ALL_FAULTS, help="faults to try. Default: all"
    )
    parser.add_argument("--first", action="store_true", help="stop at the first violation")
    options = parser.parse_args(arguments)
    unknown = set(options.kinds) - set(SCENARIOS)
    if unknown or (options.point and len(options.kinds) != 1):
        parser.error(f"scenarios are {', '.join(SCENARIOS)}; --point takes exactly one")
    if options.point:
        write, _, fault = options.point.partition(":")
        verdict = run_one_point(SCENARIOS[options.kinds[0]], FaultPoint(int(write), fault))
        show_verdict(options.kinds[0], verdict)
        return 1 if verdict.violations else 0
    if options.seed is not None:
        return 1 if run_seeds([options.seed], options.kinds)[1] else 0
    tallies = []
    for name in options.kinds or SCENARIOS:
        tallies.append(run_points(name, only=options.faults, stop_at_first=options.first))
        print(tallies[-1].summary_line(), flush=True)
        if options.first and tallies[-1].failed.total():
            return 1
    seeds, failed = run_seeds(range(options.seeds), options.kinds)
    if not options.kinds:
        failed += (irreproducible := count_irreproducible(seeds))
        outages = run_outages()
        failed += sum(bool(each.violations) for each in outages.values())
        write_results(tallies, seeds, irreproducible, outages)
    return 1 if failed or any(each.failed.total() for each in tallies) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
