"""First sync by our informer, with the pod type of the operator; and a relist: `our_informer PODS KUBECONFIG`.

Afterwards it says when it holds one pod more, and after which stall of its event loop.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from pincompute.base import logging as logs
from pincompute.base.gc_settings import relax_gc
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import NAMESPACES, PODS
from pincompute.planning.observed_pods import Pod


async def main(kubeconfig: Path) -> None:
    async with Client(load_kubeconfig(kubeconfig), agent="bench") as client:
        pods = Informer(client, PODS, type=Pod)
        await client.get(NAMESPACES, "default")
        await _say_and_wait({})
        began, used = time.perf_counter(), time.process_time()
        running = asyncio.create_task(pods.run())
        await pods.synced.wait()
        count = len(pods.items)
        took = {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - used, "pods": count}
        await _say_and_wait(took)
        await pods.wait_for(lambda items: len(items) > count)
        await _say_and_wait({"pods": len(pods.items)})
        running.cancel()
        await asyncio.wait([running])


async def _say_and_wait(told: dict[str, float]) -> None:
    print(json.dumps(told), flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    logs.configure(process="bench")
    relax_gc()
    asyncio.run(main(Path(sys.argv[1])))
