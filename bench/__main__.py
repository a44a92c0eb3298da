"""Measure, print each figure as it is found, and leave `build/bench.json`."""

from __future__ import annotations

import os
import sys

from bench import desk, engine, enter, get, hand, loop, overload, plans, roll, runtime, scale, settled, tell, why, wire
from bench.figures import ROOT, write

SUITES = {
    "hand": hand.figures,
    "engine": engine.figures,
    "scale": scale.figures,
    "plans": plans.figures,
    "roll": roll.figures,
    "runtime": runtime.figures,
    "wire": wire.figures,
    "why": why.figures,
    "loop": loop.figures,
    "desk": desk.figures,
    "overload": overload.figures,
    "enter": enter.figures,
    "get": get.figures,
    "settled": settled.figures,
    "tell": tell.figures,
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(SUITES)
    if unknown:
        print(f"no suite is called {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}", file=sys.stderr)
        return 2
    # As on a person's machine: what Python has compiled once is kept.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for name in names or SUITES:
        for figure in SUITES[name]():
            print(figure.line(), flush=True)
            found.append(figure)
    write(found, ROOT / "build" / "bench.json")
    return 0 if all(figure.holds for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
