"""All that can go wrong at each write of each kind, and then chance; what was tried is left in `build/sim.json`."""

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

from simulation.chances import Lot, draw
from simulation.outages import KINDS, Lasted, lasted
from simulation.scenarios import SCENARIOS
from simulation.trials import Verdict, every_crash, everything_else, learn, one_point, tried
from simulation.ways import SUITES, WAYS, Point, suite_of

ROOT = Path(__file__).parents[1]
WORDS = {"R1": "crashes", "R2": "views", "R3": "faults", "others": "others"}
SHOWN = 5
"""Violations that are told of each kind; all are counted."""


class Tally:
    """What was tried of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.writes = 0
        self.points: Counter[str] = Counter()
        """By suite."""
        self.wrong: Counter[str] = Counter()
        self.run: Counter[str] = Counter()
        """Of all points, those that equal no other."""
        self.passes = 0
        self._began = time.perf_counter()

    def add(self, verdict: Verdict, stands_for: int = 1) -> None:
        suite = suite_of(verdict.point.way)
        self.run[suite] += 1
        self.points[suite] += stands_for
        self.passes = max(self.passes, verdict.passes)
        self.wrong[suite] += bool(verdict.wrong)
        if verdict.wrong and self.wrong.total() <= SHOWN:
            show(self.kind, verdict)

    def line(self) -> str:
        seconds = time.perf_counter() - self._began
        wrong = self.wrong.total()
        said = f"{wrong} VIOLATIONS" if wrong else "all as if nothing had happened"
        tried = "  ".join(f"{self.points[each]:>4} {WORDS[each]}" for each in SUITES)
        return (
            f"{self.kind:<20}{self.writes:>4} writes  {tried}  {self.passes} passes at most  {seconds:>4.0f} s  {said}"
        )


def show(kind: str, verdict: Verdict) -> None:
    print(f"{kind}: {verdict.point}, {verdict.sent}")
    for each in verdict.wrong:
        print(f"    {each}")
    print(f"    again: .venv/bin/python -m simulation {kind} --point {verdict.point}", flush=True)


def points(kind: str, *, only: Sequence[str] = WAYS, first: bool = False) -> Tally:
    """All that can go wrong at its writes, or only in some ways; with `first`, until something is found."""
    tally = Tally(kind)
    scenario = SCENARIOS[kind]
    learnt = learn(scenario)
    tally.writes = len(learnt.sent)
    if learnt.wrong:
        tally.add(Verdict(Point(-1, "never"), "nothing", learnt.passes, learnt.wrong))
        return tally
    crashes = every_crash(learnt)
    stands_for = Counter(crashes.values())
    chosen = [each for each in (*stands_for, *everything_else(scenario, learnt)) if each.way in only]
    for verdict in tried(scenario, learnt, chosen, first=first):
        tally.add(verdict, stands_for.get(verdict.point, 1))
    return tally


def lots(seeds: Iterable[int], kinds: Sequence[str]) -> tuple[list[Lot], int]:
    """All that was drawn, and how many seeds end badly."""
    drawn = [draw(seed, kinds[seed % len(kinds)] if kinds else "") for seed in seeds]
    bad = [each for each in drawn if each.wrong]
    for each in bad[:SHOWN] if len(drawn) > 1 else drawn:
        print(f"seed {each.seed}: {each.kind}, {each.steps} steps, {each.lives} lives, trace {each.trace}")
        for line in each.wrong:
            print(f"    {line}")
        words = f"{each.kind} " if kinds else ""
        print(f"    again: .venv/bin/python -m simulation {words}--seed {each.seed}", flush=True)
    lives = sum(each.lives for each in drawn)
    print(f"{len(drawn)} seeds, {lives} lives, {len(bad)} of them end badly" if bad else
          f"{len(drawn)} seeds, {lives} lives: whatever went wrong, all is right in the end", flush=True)  # fmt: skip
    return drawn, len(bad)


def twice(drawn: Sequence[Lot]) -> int:
    """How many seeds are not the same run in another process, in which strings hash otherwise."""
    code = "import sys; from simulation.chances import draw; print(*(draw(int(each)).trace for each in sys.argv[1:]))"
    words = [sys.executable, "-c", code, *(str(each.seed) for each in drawn)]
    wanted = [each.trace for each in drawn]
    runs = [
        subprocess.Popen(words, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, text=True)
        for seed in ("1", "2")
    ]
    found = [run.communicate()[0].split() for run in runs]
    others = sum(len({*each}) > 1 for each in zip(wanted, *found, strict=True))
    print(f"{len(wanted) - others} of {len(wanted)} seeds are the same run over two further hash seeds", flush=True)
    return others


def figure(suite: str, tallies: list[Tally]) -> dict[str, object]:
    tried, wrong = (sum(each.points[suite] for each in tallies), sum(each.wrong[suite] for each in tallies))
    kinds = {each.kind: {"writes": each.writes, "points": each.points[suite]} for each in tallies}
    every = sum(each.writes for each in tallies) * len(SUITES[suite])
    run = sum(each.run[suite] for each in tallies)
    return {"value": (tried - wrong) / tried, "every": every, "points": tried, "run": run, "violations": wrong,
            "kinds": kinds}  # fmt: skip


def pruned(suite: str, tallies: list[Tally]) -> str:
    said = figure(suite, tallies)
    return f"{suite}: {said['every']} {WORDS[suite]} there are, {said['points']} are tried, in {said['run']} runs"


def through() -> dict[str, Lasted]:
    """Every outage, of ten minutes and of an hour."""
    found = {}
    for kind, words in KINDS.items():
        for minutes in (10, 60):
            said = found[f"{kind} {minutes}"] = lasted(kind, minutes * 60.0)
            told = f"all is well {said.seconds:.0f} s later" if not said.wrong else "NOT AS IT SHOULD BE"
            asked = f"{said.busiest} requests a minute, {said.first} in the first one after"
            print(f"{minutes} minutes, {words}: {asked}; {told}", flush=True)
            for each in said.wrong[:SHOWN]:
                print(f"    {each}"[:2000], flush=True)
    return found


def leave(tallies: list[Tally], drawn: Sequence[Lot], others: int, outages: dict[str, Lasted]) -> None:
    figures: dict[str, object] = {suite: figure(suite, tallies) for suite in SUITES}
    figures |= {
        "outages": {
            name: {
                "perMinute": each.busiest,
                "after": each.first,
                "healed": each.seconds,
                "violations": len(each.wrong),
            }
            for name, each in outages.items()
        },
        "R6": {"value": (len(drawn) - others) / len(drawn) if drawn else 0.0, "seeds": len(drawn), "others": others},
        "R7": {"value": max(each.passes for each in tallies), "unit": "passes"},
    }
    print("\n".join(pruned(each, tallies) for each in SUITES), flush=True)
    file = ROOT / "build" / "sim.json"
    before = json.loads(file.read_text()) if file.exists() else {}
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(before | figures, indent=2) + "\n")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(SCENARIOS)}; all by default")
    parser.add_argument("--point", metavar="WRITE:WAY", help="once more one point of one kind, such as 37:lost")
    parser.add_argument("--seed", type=int, help="a run in which chance decides what goes wrong, once more")
    parser.add_argument("--seeds", type=int, default=100, help="how many such runs there are (default: 100)")
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, default=WAYS, help="in which it may go wrong; all by default"
    )
    parser.add_argument("--first", action="store_true", help="end at the first that is found")
    asked = parser.parse_args(words)
    unknown = set(asked.kinds) - set(SCENARIOS)
    if unknown or (asked.point and len(asked.kinds) != 1):
        parser.error(f"name kinds of {', '.join(SCENARIOS)}; one, where it goes wrong once")
    if asked.point:
        write, _, way = asked.point.partition(":")
        verdict = one_point(SCENARIOS[asked.kinds[0]], Point(int(write), way))
        show(asked.kinds[0], verdict)
        return 1 if verdict.wrong else 0
    if asked.seed is not None:
        return 1 if lots([asked.seed], asked.kinds)[1] else 0
    tallies = []
    for kind in asked.kinds or SCENARIOS:
        tallies.append(points(kind, only=asked.ways, first=asked.first))
        print(tallies[-1].line(), flush=True)
        if asked.first and tallies[-1].wrong.total():
            return 1
    drawn, bad = lots(range(asked.seeds), asked.kinds)
    if not asked.kinds:
        bad += (others := twice(drawn))
        outages = through()
        bad += sum(bool(each.wrong) for each in outages.values())
        leave(tallies, drawn, others, outages)
    return 1 if bad or any(each.wrong.total() for each in tallies) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
