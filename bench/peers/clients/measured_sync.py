"""One first sync in its own process: says that it is ready, syncs when it is told to, and stays until its input ends.

The driver reads the memory of the process before, after and at its peak.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable


def measure(sync: Callable[[], int]) -> None:
    """`sync` returns the number of pods that it holds. It must have connected before."""
    print("{}", flush=True)
    input()
    began, used = time.perf_counter(), time.process_time()
    count = sync()
    took = {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - used, "pods": count}
    print(json.dumps(took), flush=True)
    input()
