"""One first sync in its own process, to measure its memory: `first_sync informer|dicts PORT RUN`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from pincompute.base import logging as logs
from pincompute.base.gc_settings import relax_gc
from pincompute.controller.pod_sharing import share_pod_values
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import PODS
from pincompute.planning.observed_pods import Pod


def memory(what: str) -> int:
    """Bytes of `VmRSS`, the current size, or `VmHWM`, the peak since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:"))


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


async def informer(port: str, run: str) -> dict[str, float]:
    """Syncs with the operator's own pod type; and once more after its resourceVersion has expired."""
    async with Client(Access(f"http://127.0.0.1:{port}"), agent="bench") as client:
        pods = Informer(client, PODS, type=Pod, namespace=run, share=share_pod_values)
        before = memory("VmRSS")
        reset_peak()
        began, worked = time.perf_counter(), time.process_time()
        task = asyncio.create_task(pods.run())
        stall = asyncio.create_task(longest_stall(pods.synced))
        await pods.synced.wait()
        found = {
            "seconds": time.perf_counter() - began,
            "cpu": time.process_time() - worked,
            "stall": await stall,
            "peak": memory("VmHWM"),
        }
        settled = memory("VmRSS")
        reset_peak()
        first_count = len(pods.items)
        # The second list has one more pod.
        await pods.wait_for(lambda items: len(items) > first_count)
        found |= {"again": memory("VmHWM"), "settled": settled, "kept": settled - before, "pods": first_count}
        task.cancel()
        await asyncio.wait([task])
    return found


async def longest_stall(end: asyncio.Event) -> float:
    """Longest time in seconds that another task had to wait for the event loop."""
    longest = 0.0
    while not end.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0)
        longest = max(longest, time.perf_counter() - began)
    return longest


def dicts(port: str, run: str) -> dict[str, float]:
    """Baseline of a simple script: reads pages with `json` and keeps all objects."""
    items: dict[tuple[str, str], Any] = {}
    before = memory("VmRSS")
    reset_peak()
    began, worked = time.perf_counter(), time.process_time()
    token = "0"
    while token:
        address = f"http://127.0.0.1:{port}/api/v1/namespaces/{run}/pods?limit=500&continue={token}"
        with urllib.request.urlopen(address) as answer:
            page = json.load(answer)
        token = page["metadata"]["continue"]
        items |= {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in page["items"]}
    took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - worked}
    settled = memory("VmRSS")
    return {**took, "peak": memory("VmHWM"), "settled": settled, "kept": settled - before, "pods": len(items)}


if __name__ == "__main__":
    logs.configure(process="bench")
    relax_gc()
    method, port_, run_ = sys.argv[1:]
    print(json.dumps(asyncio.run(informer(port_, run_)) if method == "informer" else dicts(port_, run_)))
