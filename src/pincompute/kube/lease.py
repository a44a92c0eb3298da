"""A lease: of several who could act, one does. The others wait, and know within seconds when it is their turn."""

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


class Terms(NamedTuple):
    """Seconds."""

    lasts: float = 10.0
    """Nobody takes it from a holder who was heard this recently."""
    renewed: float = 2.0
    given_up: float = 6.0
    """A holder who could not renew it for so long acts no more: well before another may begin."""


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str = ""
    lease_transitions: int = 0


class _Lease(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Lease:
    """Time is only ever compared with our own clock: those of two machines need not agree."""

    def __init__(self, client: Client, namespace: str, name: str, holder: str, terms: Terms) -> None:
        self.holder = holder
        """Who holds this name lives only once: by it, who was killed and begins anew need not wait for itself."""
        self._client = client
        self._namespace = namespace
        self._name = name
        self._terms = terms
        self._until = 0.0
        self._seen: _Lease | None = None

    @property
    def held(self) -> bool:
        return self._client.clock.monotonic() < self._until

    async def acquire(self) -> None:
        """Return when it is ours."""
        while not self.held:
            try:
                self._seen = await self._find()
                if self._seen.spec.holder_identity in ("", self.holder) or await self._falls_free(self._seen):
                    await self._write(self._seen, takes=True)
            except (Conflict, AlreadyExists):
                # Somebody else was quicker.
                await self._rest()
            except ApiError as error:
                log.warning("the lease cannot be had", why=error.message)
                await self._rest()

    async def keep(self) -> None:
        """Renew it; return when it is lost."""
        while self.held:
            await self._client.clock.sleep(self._terms.renewed)
            # Whoever answers too late has not answered.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._until - self._client.clock.monotonic())):
                    await self._renew()
        log.warning("the lease is lost")

    async def release(self) -> None:
        """Whoever waits leads at once."""
        if not self.held:
            return
        self._until = 0.0
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._terms.renewed):
                lease = await self._find()
                if lease.spec.holder_identity == self.holder:
                    await self._patch(lease, {"holderIdentity": ""})

    async def _renew(self) -> None:
        try:
            self._seen = self._seen or await self._find()
            if self._seen.spec.holder_identity == self.holder:
                await self._write(self._seen, takes=False)
            else:
                self._until = 0.0
        except (Conflict, NotFound):
            # Somebody wrote to it; whether they took it, the next look tells.
            self._seen = None
        except ApiError as error:
            log.warning("the lease cannot be renewed", why=error.message)

    async def _find(self) -> _Lease:
        try:
            found = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            body: Object = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": {}}
            found = await self._client.create(LEASES, body, manager=self._name)
        return msgspec.convert(found, _Lease)

    async def _falls_free(self, lease: _Lease) -> bool:
        """Wait until its holder lets it go, or is not heard any more; it is then as it was last seen."""
        clock = asyncio.get_running_loop()
        events = self._client.watch(
            LEASES,
            self._namespace,
            revision=lease.metadata.resource_version,
            fields=f"metadata.name={self._name}",
            type=_Lease,
        )
        try:
            async with asyncio.timeout(self._terms.lasts) as patience, aclosing(events):
                async for event in events:
                    self._seen = event.object
                    if not event.object.spec.holder_identity:
                        return True
                    patience.reschedule(clock.time() + self._terms.lasts)
        except TimeoutError:
            return True
        # The watch ended by itself: look again.
        return False

    async def _write(self, lease: _Lease, *, takes: bool) -> None:
        """Fenced by the revision that was seen: of two who try, one does."""
        asked, now = self._client.clock.monotonic(), self._client.clock.now()
        spec: Object = {"holderIdentity": self.holder, "renewTime": _stamp(now)}
        if takes:
            spec["acquireTime"] = _stamp(now)
            spec["leaseDurationSeconds"] = int(self._terms.lasts)
            spec["leaseTransitions"] = lease.spec.lease_transitions + 1
        self._seen = await self._patch(lease, spec)
        self._until = asked + self._terms.given_up

    async def _patch(self, lease: _Lease, spec: Object) -> _Lease:
        body = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}
        after = await self._client.patch(LEASES, self._name, self._namespace, body, style="merge", manager=self._name)
        return msgspec.convert(after, _Lease)

    async def _rest(self) -> None:
        await self._client.clock.sleep(self._terms.renewed * (0.5 + self._client.chance() / 2))


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
