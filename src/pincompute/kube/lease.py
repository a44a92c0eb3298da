"""Leader election by a Lease object: one of several processes holds it, the others take over within seconds."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import structlog

from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from pincompute.kube.resource import LEASES, Object

log = structlog.get_logger()


class LeaseTimings(NamedTuple):
    """Timings of leader election, as in client-go."""

    duration_s: float = 10.0
    """A lease that was renewed this recently is not taken over."""
    renew_interval_s: float = 2.0
    renew_deadline_s: float = 6.0
    """A holder that could not renew for this long stops acting: well before another process may take over."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str = ""
    lease_transitions: int = 0


class _Lease(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Lease:
    """A lease that this process can hold.

    Times are measured by our own clock from the events that we see, so that clocks of machines need not agree.
    """

    def __init__(self, client: Client, namespace: str, name: str, holder: str, timings: LeaseTimings) -> None:
        self.holder = holder
        """Unique name of this process. A restarted process with the same name takes its own lease back at once."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._timings = timings
        self._held_until = 0.0
        self._last_seen: _Lease | None = None

    @property
    def held(self) -> bool:
        return self._client.clock.monotonic() < self._held_until

    async def acquire(self) -> None:
        """Returns when this process holds the lease."""
        while not self.held:
            try:
                self._last_seen = await self._find()
                if self._last_seen.spec.holder_identity in ("", self.holder) or await self._wait_until_free(
                    self._last_seen
                ):
                    await self._write_holder(self._last_seen, acquire=True)
            except (Conflict, AlreadyExists):
                # Another process was faster.
                await self._sleep_before_retry()
            except ApiError as error:
                log.warning("lease acquire failed", why=error.message)
                await self._sleep_before_retry()

    async def renew_until_lost(self) -> None:
        """Renews the lease; returns when it is lost."""
        while self.held:
            await self._client.clock.sleep(self._timings.renew_interval_s)
            # A response after the deadline is too late: another process may hold the lease by then.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._held_until - self._client.clock.monotonic())):
                    await self._renew()
        log.warning("lease lost")

    async def release(self) -> None:
        """Gives the lease up, so that a waiting process takes over at once."""
        if not self.held:
            return
        self._held_until = 0.0
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._timings.renew_interval_s):
                lease = await self._find()
                if lease.spec.holder_identity == self.holder:
                    await self._patch(lease, {"holderIdentity": ""})

    async def _renew(self) -> None:
        try:
            self._last_seen = self._last_seen or await self._find()
            if self._last_seen.spec.holder_identity == self.holder:
                await self._write_holder(self._last_seen, acquire=False)
            else:
                self._held_until = 0.0
        except (Conflict, NotFound):
            # Another client wrote the lease. The next renewal reads whether it was taken over.
            self._last_seen = None
        except ApiError as error:
            log.warning("lease renew failed", why=error.message)

    async def _find(self) -> _Lease:
        try:
            found = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            body: Object = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": {}}
            found = await self._client.create(LEASES, body, manager=self._name)
        return msgspec.convert(found, _Lease)

    async def _wait_until_free(self, lease: _Lease) -> bool:
        """Waits until the holder gives the lease up or stops renewing it. False if the watch ended before."""
        clock = asyncio.get_running_loop()
        events = self._client.watch(
            LEASES,
            self._namespace,
            resource_version=lease.metadata.resource_version,
            fields=f"metadata.name={self._name}",
            type=_Lease,
        )
        try:
            async with asyncio.timeout(self._timings.duration_s) as expiry, aclosing(events):
                async for event in events:
                    self._last_seen = event.object
                    if not event.object.spec.holder_identity:
                        return True
                    expiry.reschedule(clock.time() + self._timings.duration_s)
        except TimeoutError:
            return True
        # The server ended the watch: read the lease again.
        return False

    async def _write_holder(self, lease: _Lease, *, acquire: bool) -> None:
        """Writes with the resourceVersion that was read: of two processes that try at once, one gets a Conflict."""
        requested_at, now = self._client.clock.monotonic(), self._client.clock.now()
        spec: Object = {"holderIdentity": self.holder, "renewTime": _stamp(now)}
        if acquire:
            spec["acquireTime"] = _stamp(now)
            spec["leaseDurationSeconds"] = int(self._timings.duration_s)
            spec["leaseTransitions"] = lease.spec.lease_transitions + 1
        self._last_seen = await self._patch(lease, spec)
        self._held_until = requested_at + self._timings.renew_deadline_s

    async def _patch(self, lease: _Lease, spec: Object) -> _Lease:
        body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        after = await self._client.patch(LEASES, self._name, self._namespace, body, style="merge", manager=self._name)
        return msgspec.convert(after, _Lease)

    async def _sleep_before_retry(self) -> None:
        await self._client.clock.sleep(self._timings.renew_interval_s * (0.5 + self._client.random() / 2))


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
