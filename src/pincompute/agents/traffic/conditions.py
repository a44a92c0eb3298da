"""Reports the registration of each pod as its condition, which the planner and `pin endpoints` read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import structlog

from pincompute.agents.traffic.members import MemberPod
from pincompute.agents.traffic.registrar import Registrar
from pincompute.api.names import REGISTERED, REGISTRAR
from pincompute.base.clock import Clock
from pincompute.kube.client import Client
from pincompute.kube.errors import ApiError, NotFound
from pincompute.kube.resource import PODS
from pincompute.objects.times import format_time

RETRY_S = 1.0
MAX_CONCURRENT_PATCHES = 20

log = structlog.get_logger()


class Report(NamedTuple):
    """The condition of one pod."""

    registered: bool
    reason: str
    message: str


class Reporter:
    """Writes the conditions that differ from what was last written or observed."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._written: dict[str, Report] = {}
        self._pending: dict[str, tuple[MemberPod, Report]] = {}
        self._changed = asyncio.Event()

    def report(self, pods: Iterable[MemberPod], registrar: Registrar, session: int) -> None:
        """Compares the conditions of all pods with what is registered now."""
        current = {each.metadata.uid: each for each in pods}
        self._written = {uid: each for uid, each in self._written.items() if uid in current}
        self._pending = {}
        for uid, pod in current.items():
            known = self._written.get(uid, observed_report(pod))
            report = registration_report(pod, registrar, session, known)
            if report and report != known:
                self._pending[uid] = (pod, report)
        if self._pending:
            self._changed.set()

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            slots = asyncio.Semaphore(MAX_CONCURRENT_PATCHES)
            pending = self._pending
            self._pending = {}
            done = await asyncio.gather(*(self._patch(*each, slots) for each in pending.values()))
            if not all(done):
                await self._clock.sleep(RETRY_S)
                # A newer report wins over one that could not be written.
                failed = (each for each, written in zip(pending.items(), done, strict=True) if not written)
                self._pending = {**dict(failed), **self._pending}
                self._changed.set()

    async def _patch(self, pod: MemberPod, report: Report, slots: asyncio.Semaphore) -> bool:
        condition = {
            "type": REGISTERED,
            "status": str(report.registered),
            "reason": report.reason,
            "message": report.message,
        }
        known = self._written.get(pod.metadata.uid, observed_report(pod))
        if known is None or known.registered != report.registered:
            condition["lastTransitionTime"] = format_time(self._clock.now())
        # The uid protects a new pod of the same name, which a stateful set creates.
        body = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        name, namespace = pod.metadata.name, pod.metadata.namespace
        async with slots:
            try:
                await self._client.patch(
                    PODS, name, namespace, body, style="strategic", manager=REGISTRAR, subresource="status"
                )
            except NotFound:
                return True
            except ApiError as error:
                if 400 <= error.status < 500 and error.status != 429:
                    log.warning("condition not written", pod=pod.metadata.key, why=error.message)
                    return True
                return False
        self._written[pod.metadata.uid] = report
        return True


def registration_report(pod: MemberPod, registrar: Registrar, session: int, known: Report | None) -> Report | None:
    """The condition of a pod, `known` being the one before; None if there is nothing to report."""
    member = registrar.wanted.get(pod.metadata.uid)
    if member is None:
        was_registered = known is not None and known.registered
        return Report(False, "NotReady", "it is not ready, or is ending") if was_registered else None
    if registrar.is_registered(member):
        # While the connection is lost, the session is that of the last report.
        message = f"{member.name} of {member.serverset}, session {session & (1 << 64) - 1:#x}"
        return Report(True, "Registered", message) if session else known
    return Report(False, "EnsembleUnreachable", registrar.problem) if registrar.problem else None


def observed_report(pod: MemberPod) -> Report | None:
    found = next((each for each in pod.status.conditions if each.type == REGISTERED), None)
    return Report(found.status == "True", found.reason, found.message) if found else None
