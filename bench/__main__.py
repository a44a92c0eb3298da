"""Runs suites, prints each figure, and writes `build/bench.json`: `python -m bench [SUITE …]`."""

from __future__ import annotations

import os
import signal
import sys

from bench import (
    cli,
    crash_report,
    deploy_latency,
    desk,
    diagnosis,
    engine,
    get,
    insight,
    overload,
    peers,
    planning,
    rollout_plan,
    runtime_rollout,
    sidecars,
    size,
    steady_state,
    why,
)
from bench.figures import ROOT, write_figures

SUITES = {
    "cli": cli.figures,
    "engine": engine.figures,
    "size": size.figures,
    "sidecars": sidecars.figures,
    "planning": planning.figures,
    "rollout-plan": rollout_plan.figures,
    "runtime-rollout": runtime_rollout.figures,
    "why": why.figures,
    "diagnosis": diagnosis.figures,
    "peers": peers.figures,
    "desk": desk.figures,
    "overload": overload.figures,
    "deploy-latency": deploy_latency.figures,
    "get": get.figures,
    "insight": insight.figures,
    "steady-state": steady_state.figures,
    "crash-report": crash_report.figures,
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(SUITES)
    if unknown:
        print(f"no such suite: {', '.join(sorted(unknown))}; suites: {', '.join(SUITES)}", file=sys.stderr)
        return 2
    # A terminated run stops what it started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Bytecode is cached, as on a user's machine.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for name in names or SUITES:
        for figure in SUITES[name]():
            print(figure.line(), flush=True)
            found.append(figure)
    write_figures(found, ROOT / "build" / "bench.json")
    return 0 if all(figure.passes for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
