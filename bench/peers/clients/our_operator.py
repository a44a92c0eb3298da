"""Our operator as its command starts it, with a probe of its event loop: `our_operator KUBECONFIG`.

Each line of input is answered with the longest stall since the line before, and the number of passes so far.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from pincompute.base import logging as logs
from pincompute.base.gc_settings import relax_gc
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.operator.http_server import HttpServer
from pincompute.operator.process import run_operator

_PROBE_S = 0.005


class StallProbe:
    """Longest time by which a timer of the event loop was late."""

    def __init__(self) -> None:
        self._longest_s = 0.0

    async def run(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_PROBE_S)
            self._longest_s = max(self._longest_s, time.perf_counter() - began - _PROBE_S)

    def take(self) -> float:
        """The longest one since the last call."""
        longest, self._longest_s = self._longest_s, 0.0
        return longest


async def main(kubeconfig: Path) -> None:
    probe, stop, server = StallProbe(), asyncio.Event(), HttpServer(None)

    async def answer() -> None:
        while await asyncio.to_thread(sys.stdin.readline):
            passes = server.manager.loop.pass_count if server.manager else 0
            print(json.dumps({"stall_s": probe.take(), "passes": passes}), flush=True)
        stop.set()

    tasks = [asyncio.create_task(probe.run()), asyncio.create_task(answer())]
    await run_operator(load_kubeconfig(kubeconfig), "bench", stop, server)
    for each in tasks:
        each.cancel()


if __name__ == "__main__":
    logs.configure(process="operator")
    relax_gc()
    asyncio.run(main(Path(sys.argv[1])))
