"""One first sync, in a process of its own so that its memory can be weighed: `first_sync informer|dicts PORT RUN`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from pincompute.base import log as logs
from pincompute.base.memory import keep_much
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.resource import PODS
from pincompute.planning.snapshot import Pod


def memory(what: str) -> int:
    """Bytes: `VmRSS` is now, `VmHWM` was the most since it was last forgotten."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{what}:"))


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


async def informer(port: str, run: str) -> dict[str, float]:
    """The operator's own type of a pod; then once more, after its revision was forgotten."""
    async with Client(Access(f"http://127.0.0.1:{port}"), agent="bench") as client:
        pods = Informer(client, PODS, type=Pod, namespace=run)
        before = memory("VmRSS")
        forget_peak()
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
        forget_peak()
        before_it = len(pods.items)
        # The second list has one more.
        await pods.wait_for(lambda items: len(items) > before_it)
        found |= {"again": memory("VmHWM"), "settled": settled, "kept": settled - before, "pods": before_it}
        task.cancel()
        await asyncio.wait([task])
    return found


async def longest_stall(end: asyncio.Event) -> float:
    """The longest that another task had to wait for its turn."""
    longest = 0.0
    while not end.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0)
        longest = max(longest, time.perf_counter() - began)
    return longest


def dicts(port: str, run: str) -> dict[str, float]:
    """What a script does: pages, read by `json`, and all of them kept."""
    items: dict[tuple[str, str], Any] = {}
    before = memory("VmRSS")
    forget_peak()
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
    keep_much()
    way, where, run_ = sys.argv[1:]
    print(json.dumps(asyncio.run(informer(where, run_)) if way == "informer" else dicts(where, run_)))
