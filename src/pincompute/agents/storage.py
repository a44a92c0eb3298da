"""Gives the claims of a cluster folders of this machine, and takes them back."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

import structlog

from pincompute.agents.health import serve
from pincompute.agents.process import until_told
from pincompute.agents.volumes import Claim, Make, Remove, Step, Tell, Volume, Widen, name, refusal, steps, volume
from pincompute.api.names import STORAGE
from pincompute.base.pause import backoff
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError, NotFound
from pincompute.kube.informer import Informer
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import CLAIMS, CORE_EVENTS, STORAGE_CLASSES, VOLUMES

PAUSE = 0.05
"""Seconds between two looks, so that many changes at once are one."""
AT_ONCE = 20

log = structlog.get_logger()


async def run(kubeconfig: Path, listen: str, folder: Path, node: str) -> None:
    """Until told to end."""
    with until_told():
        async with Client(load(kubeconfig), agent="storage") as client:
            agent = Agent(client, folder, node)
            async with serve(listen, agent.age):
                await agent.run()


class Agent:
    def __init__(self, client: Client, folder: Path, node: str) -> None:
        self._client = client
        self._folder = folder
        self._node = node
        self._changed = asyncio.Event()
        self._claims = Informer(client, CLAIMS, type=Claim, on_change=lambda _: self._changed.set())
        self._volumes = Informer(client, VOLUMES, type=Volume, on_change=lambda _: self._changed.set())
        self._refused: dict[str, str] = {}
        """Claims that were told already why they get nothing, by uid."""

    def age(self) -> float:
        return max(self._claims.age(), self._volumes.age())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            group.create_task(self._volumes.run())
            await self._claims.synced.wait()
            await self._volumes.synced.wait()
            await self._follow()

    async def _follow(self) -> None:
        failures = 0
        while True:
            self._changed.clear()
            failed = await self._look()
            failures = failures + 1 if failed else 0
            await asyncio.sleep(backoff(failures, 1) if failures else PAUSE)
            if not failures:
                await self._changed.wait()

    async def _look(self) -> bool:
        """Do all that is to be done; tell whether some of it failed."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def act(step: Step) -> bool:
            async with gate:
                return await self._act(step)

        found = list(steps(self._claims.items.values(), self._volumes.items))
        return not all(await asyncio.gather(*map(act, found)))

    async def _act(self, step: Step) -> bool:
        try:
            match step:
                case Make(claim):
                    await self._make(claim)
                case Widen(called, size):
                    body = {"spec": {"capacity": {"storage": size}}}
                    await self._client.patch(VOLUMES, called, "", body, style="merge", manager=STORAGE)
                case Tell((namespace, called), size):
                    body = {"status": {"capacity": {"storage": size}}}
                    await self._client.patch(
                        CLAIMS, called, namespace, body, style="merge", manager=STORAGE, subresource="status"
                    )
                case Remove(called, path):
                    await self._remove(called, path)
        except NotFound:
            # Gone since it was seen: so is what was to be done.
            return True
        except (ApiError, OSError) as error:
            log.warning("storage failed", step=type(step).__name__, why=str(error))
            return False
        return True

    async def _make(self, claim: Claim) -> None:
        if why := refusal(claim):
            await self._refuse(claim, why)
            return
        kind = await self._client.get(STORAGE_CLASSES, claim.spec.storage_class_name)
        folder = self._folder / name(claim)
        folder.mkdir(parents=True, exist_ok=True)
        # Whoever the program runs as: that it is the only one is what the folders above are for.
        folder.chmod(0o777)
        with suppress(AlreadyExists):
            body = volume(claim, kind.get("reclaimPolicy", "Delete"), folder, self._node)
            await self._client.create(VOLUMES, body, manager=STORAGE)
        log.info("volume made", claim="/".join(claim.key), volume=name(claim))

    async def _refuse(self, claim: Claim, why: str) -> None:
        """Once, where whoever looks for the reason finds it."""
        if self._refused.get(claim.metadata.uid) == why:
            return
        about = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "uid": claim.metadata.uid}
        namespace, called = claim.key
        event = {
            "metadata": {"name": f"{called}.{claim.metadata.uid[:8]}.refused", "namespace": namespace},
            "involvedObject": {**about, "namespace": namespace, "name": called},
            "type": "Warning",
            "reason": "ProvisioningFailed",
            "message": why,
            "source": {"component": STORAGE},
        }
        with suppress(AlreadyExists):
            await self._client.create(CORE_EVENTS, event, manager=STORAGE)
        self._refused[claim.metadata.uid] = why

    async def _remove(self, called: str, path: Path) -> None:
        """Never anything but a folder that was made here, whatever the volume says by now."""
        if path.parent == self._folder:
            with suppress(FileNotFoundError):
                await asyncio.to_thread(shutil.rmtree, path)
        await self._client.delete(VOLUMES, called)
        log.info("volume removed", volume=called)
