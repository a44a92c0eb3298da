"""The ideal roller, the peer of our runtime rollouts: patches the image of a sidecar in the pods of every workload.

It sends the patches that a roll needs, in the same waves and with the same budgets, as fast as the API server and the
kubelets allow. It writes no status and no template, observes no first pod, and uses none of our planning.

`python scripts/ideal_roller.py KUBECONFIG PROJECT IMAGE`: one unavailable pod for each workload, in one wave.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import PODS, Object

WORKLOAD_LABEL = "pinterest.com/workload"
CONTAINER = "logs"


class IdealRoller:
    """One roll to an image. A pod counts as unavailable from its patch until it is ready with the image."""

    def __init__(self, client: Client, project: str, image: str) -> None:
        self._client = client
        self._project = project
        self._image = image
        self._updated: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def roll(self, budgets: Mapping[str, int], waves: Sequence[int] = (100,)) -> None:
        """Patch all pods. Budgets are the unavailable pods of each workload; waves are percentages of workloads."""
        pods: defaultdict[str, list[Object]] = defaultdict(list)
        for pod in (await self._client.list(PODS, self._project, labels=WORKLOAD_LABEL)).items:
            pods[pod["metadata"]["labels"][WORKLOAD_LABEL]].append(pod)
        watching = asyncio.create_task(self._watch())
        try:
            names, done = sorted(pods), 0
            for percentage in waves:
                reached = math.ceil(len(names) * percentage / 100)
                wave = names[done:reached]
                await asyncio.gather(*(self._roll_workload(pods[name], budgets.get(name, 1)) for name in wave))
                done = reached
        finally:
            watching.cancel()
            await asyncio.wait({watching})

    async def _roll_workload(self, pods: Sequence[Object], budget: int) -> None:
        slots = asyncio.Semaphore(budget)

        async def roll_pod(pod: Object) -> None:
            name = pod["metadata"]["name"]
            index = [each["name"] for each in pod["spec"]["initContainers"]].index(CONTAINER)
            change = [{"op": "replace", "path": f"/spec/initContainers/{index}/image", "value": self._image}]
            async with slots:
                await self._client.patch(PODS, name, self._project, change, style="json", manager="ideal-roller")
                await self._updated[name].wait()

        await asyncio.gather(*map(roll_pod, pods))

    async def _watch(self) -> None:
        while True:
            # The server ends each watch after some minutes.
            async with aclosing(self._client.watch(PODS, self._project, labels=WORKLOAD_LABEL)) as events:
                async for event in events:
                    if self._is_updated(event.object):
                        self._updated[event.object["metadata"]["name"]].set()

    def _is_updated(self, pod: Object) -> bool:
        status = pod.get("status", {})
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))
        running = [each["image"] for each in status.get("initContainerStatuses", ()) if each["name"] == CONTAINER]
        return ready and running == [self._image]


async def _main(kubeconfig: Path, project: str, image: str) -> None:
    async with Client(load_kubeconfig(kubeconfig), agent="ideal-roller") as client:
        await IdealRoller(client, project, image).roll({})


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), *sys.argv[2:4]))
