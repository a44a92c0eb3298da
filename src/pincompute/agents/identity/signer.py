"""The signer: answers every request for a pod's certificate once, with a certificate or with the reason why not."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime

import msgspec
import structlog

from pincompute.agents.identity.evidence import gather
from pincompute.agents.identity.issuing import Issuer, requested_key
from pincompute.api.names import IDENTITY, SIGNER
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import IDENTITY_FAILED
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Invalid, NotFound
from pincompute.kube.informer import Informer, Key
from pincompute.kube.resource import POD_CERTIFICATES, Object
from pincompute.kube.retry import backoff
from pincompute.kube.watch import DELETED, Event
from pincompute.objects.times import stamp
from pincompute.planning.identity import Granted, Request, decide

HANDS = 8
"""How many requests are worked at together: most of the time of one is waiting for the API server."""
LONGEST = 30.0
"""Seconds between two tries, where the cluster or the signer's own files are at fault."""

log = structlog.get_logger()


class Signer:
    def __init__(self, client: Client, issuer: Issuer) -> None:
        self.counts: Counter[str] = Counter()
        """Answers so far, by Issued, Denied and Failed, and what is tried again."""
        self.issuer = issuer
        self._client = client
        self._waiting: asyncio.Queue[Key] = asyncio.Queue()
        self._failures: Counter[Key] = Counter()
        self._requests = Informer(
            client, POD_CERTIFICATES, type=Request, fields=f"spec.signerName={IDENTITY}", on_change=self._take
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._requests.run())
            for _ in range(HANDS):
                group.create_task(self._work(group))

    @property
    def age(self) -> float:
        """Seconds since the API server was last heard."""
        return self._requests.age()

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def _take(self, event: Event[Request]) -> None:
        if event.type != DELETED and not event.object.answered:
            metadata = event.object.metadata
            self._waiting.put_nowait((metadata.namespace, metadata.name))

    async def _work(self, group: asyncio.TaskGroup) -> None:
        """What is nobody's decision is tried again: after a denial the pod would never start."""
        while True:
            key = await self._waiting.get()
            request = self._requests.items.get(key)
            if request is None or request.answered:
                self._failures.pop(key, None)
                continue
            try:
                await self._answer(request)
            except (Refused, OSError, msgspec.ValidationError) as error:
                self._failures[key] += 1
                self.counts["Again"] += 1
                log.warning("no answer yet", pod=_pod(request), why=str(error), failures=self._failures[key])
                group.create_task(self._later(key))

    async def _later(self, key: Key) -> None:
        await self._client.clock.sleep(backoff(self._failures[key], self._client.chance(), LONGEST))
        self._waiting.put_nowait(key)

    async def _answer(self, request: Request) -> None:
        now = self._client.clock.now()
        status = await self._status(request, now)
        condition = status["conditions"][0]
        # Whoever deleted it and made it anew under its name gets no answer that was not meant for it.
        metadata = {"uid": request.metadata.uid, "resourceVersion": request.metadata.resource_version}
        try:
            await self._write(request, {"metadata": metadata, "status": status})
        except (Conflict, NotFound):
            # It has another answer, or nobody waits for one any more.
            return
        except Invalid as error:
            problem = Problem(IDENTITY_FAILED, "the cluster does not accept the certificate", note=error.message)
            condition = _condition("Failed", problem, now)
            await self._write(request, {"metadata": metadata, "status": {"conditions": [condition]}})
        self.counts[condition["type"]] += 1
        log.info(condition["type"].lower(), pod=_pod(request), reason=condition["reason"], said=condition["message"])

    async def _write(self, request: Request, body: Object) -> None:
        name, place = request.metadata.name, request.metadata.namespace
        await self._client.patch(
            POD_CERTIFICATES, name, place, body, style="merge", manager=SIGNER, subresource="status"
        )

    async def _status(self, request: Request, now: datetime) -> Object:
        decision = decide(request, await gather(self._client, request), self.issuer.trust_domain, now)
        if isinstance(decision, Problem):
            return {"conditions": [_condition("Denied", decision, now)]}
        try:
            key = requested_key(request.spec.key)
        except Refused as refused:
            return {"conditions": [_condition("Denied", refused.problems[0], now)]}
        return {
            "certificateChain": self.issuer.chain(decision, key),
            "notBefore": stamp(decision.begin),
            "beginRefreshAt": stamp(decision.renew),
            "notAfter": stamp(decision.end),
            "conditions": [_issued(decision, now)],
        }


def _issued(granted: Granted, now: datetime) -> Object:
    return _said("Issued", "Issued", f"{granted.who} until {stamp(granted.end)}", now)


def _condition(type_: str, problem: Problem, now: datetime) -> Object:
    return _said(type_, problem.reason.code, problem.message(), now)


def _said(type_: str, reason: str, message: str, now: datetime) -> Object:
    return {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": stamp(now)}


def _pod(request: Request) -> str:
    return f"{request.metadata.namespace}/{request.spec.pod_name}"
