"""Storage agent: provisions, expands and deletes persistent volumes, which are folders of this machine."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

import structlog

from pincompute.agents.health import MetricsPage, serve_health
from pincompute.agents.volumes import (
    Claim,
    CreateVolume,
    DeleteVolume,
    ExpandVolume,
    ReportCapacity,
    Volume,
    VolumeStep,
    build_volume,
    unsupported_reason,
    volume_name,
    volume_steps,
)
from pincompute.api.names import STORAGE_PROVISIONER
from pincompute.base.backoff import backoff_s
from pincompute.base.http_process import cancel_on_signal
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError, NotFound
from pincompute.kube.informer import Informer
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import CORE_EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES

RECONCILE_INTERVAL_S = 0.05
"""Shortest time between two passes, so that a burst of changes causes one."""
MAX_CONCURRENT_STEPS = 20

log = structlog.get_logger()


async def run(kubeconfig: Path, listen: str, folder: Path, node: str, token_file: Path | None = None) -> None:
    """Runs until a signal."""
    with cancel_on_signal():
        async with Client(load_kubeconfig(kubeconfig), agent="storage") as client:
            agent = StorageAgent(client, folder, node)
            metrics = MetricsPage(token_file, client.request_stats) if token_file else None
            async with serve_health(listen, agent.staleness_s, metrics):
                await agent.run()


class StorageAgent:
    """Watches claims and volumes, and executes the steps that they need."""

    def __init__(self, client: Client, folder: Path, node: str) -> None:
        self._client = client
        self._folder = folder
        self._node = node
        self._changed = asyncio.Event()
        self._claims = Informer(client, PERSISTENT_VOLUME_CLAIMS, type=Claim, on_change=lambda _: self._changed.set())
        self._volumes = Informer(client, PERSISTENT_VOLUMES, type=Volume, on_change=lambda _: self._changed.set())
        self._reported: dict[str, str] = {}
        """Reasons already reported by an Event, by the uid of the claim."""

    def staleness_s(self) -> float:
        return max(self._claims.staleness_s(), self._volumes.staleness_s())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._claims.run())
            group.create_task(self._volumes.run())
            await self._claims.synced.wait()
            await self._volumes.synced.wait()
            await self._reconcile_loop()

    async def _reconcile_loop(self) -> None:
        failures = 0
        while True:
            self._changed.clear()
            failed = await self._run_pass()
            failures = failures + 1 if failed else 0
            await asyncio.sleep(backoff_s(failures, 1) if failures else RECONCILE_INTERVAL_S)
            if not failures:
                await self._changed.wait()

    async def _run_pass(self) -> bool:
        """Executes all current steps. Returns whether one of them failed."""
        slots = asyncio.Semaphore(MAX_CONCURRENT_STEPS)

        async def execute_in_slot(step: VolumeStep) -> bool:
            async with slots:
                return await self._execute(step)

        steps = list(volume_steps(self._claims.items.values(), self._volumes.items))
        return not all(await asyncio.gather(*map(execute_in_slot, steps)))

    async def _execute(self, step: VolumeStep) -> bool:
        try:
            match step:
                case CreateVolume(claim):
                    await self._create_volume(claim)
                case ExpandVolume(name, size):
                    body = {"spec": {"capacity": {"storage": size}}}
                    await self._client.patch(
                        PERSISTENT_VOLUMES, name, "", body, style="merge", manager=STORAGE_PROVISIONER
                    )
                case ReportCapacity((namespace, name), size):
                    body = {"status": {"capacity": {"storage": size}}}
                    await self._client.patch(
                        PERSISTENT_VOLUME_CLAIMS,
                        name,
                        namespace,
                        body,
                        style="merge",
                        manager=STORAGE_PROVISIONER,
                        subresource="status",
                    )
                case DeleteVolume(name, path):
                    await self._delete_volume(name, path)
        except NotFound:
            # The object was deleted in the meantime, and needs no step any more.
            return True
        except (ApiError, OSError) as error:
            log.warning("storage step failed", step=type(step).__name__, why=str(error))
            return False
        return True

    async def _create_volume(self, claim: Claim) -> None:
        if why := unsupported_reason(claim):
            await self._report_unsupported(claim, why)
            return
        storage_class = await self._client.get(STORAGE_CLASSES, claim.spec.storage_class_name)
        folder = self._folder / volume_name(claim)
        folder.mkdir(parents=True, exist_ok=True)
        # The program may run as any user. The parent folders keep other users of this machine out.
        folder.chmod(0o777)
        with suppress(AlreadyExists):
            body = build_volume(claim, storage_class.get("reclaimPolicy", "Delete"), folder, self._node)
            await self._client.create(PERSISTENT_VOLUMES, body, manager=STORAGE_PROVISIONER)
        log.info("volume created", claim="/".join(claim.key), volume=volume_name(claim))

    async def _report_unsupported(self, claim: Claim, why: str) -> None:
        """Creates an Event on the claim, once per reason."""
        if self._reported.get(claim.metadata.uid) == why:
            return
        reference = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "uid": claim.metadata.uid}
        namespace, name = claim.key
        event = {
            "metadata": {"name": f"{name}.{claim.metadata.uid[:8]}.refused", "namespace": namespace},
            "involvedObject": {**reference, "namespace": namespace, "name": name},
            "type": "Warning",
            "reason": "ProvisioningFailed",
            "message": why,
            "source": {"component": STORAGE_PROVISIONER},
        }
        with suppress(AlreadyExists):
            await self._client.create(CORE_EVENTS, event, manager=STORAGE_PROVISIONER)
        self._reported[claim.metadata.uid] = why

    async def _delete_volume(self, name: str, path: Path) -> None:
        """Deletes the folder and the volume. The check protects other folders if the volume's path was edited."""
        if path.parent == self._folder:
            with suppress(FileNotFoundError):
                await asyncio.to_thread(shutil.rmtree, path)
        await self._client.delete(PERSISTENT_VOLUMES, name)
        log.info("volume deleted", volume=name)
