"""The signer: answers every request for a pod's certificate once, with a certificate or with the reason why not."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import msgspec
import structlog

from pincompute.agents.identity.evidence import gather
from pincompute.agents.identity.forms import FORMS, Answer, Asked, Form
from pincompute.agents.identity.issuing import Issuer, requested_key
from pincompute.api.names import IDENTITY
from pincompute.base.pause import backoff
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import IDENTITY_FAILED
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Invalid, NotFound
from pincompute.kube.informer import Informer, Key
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.pods.identity import Account, Request, decide

HANDS = 8
"""How many requests are worked at together: most of the time of one is waiting for the API server."""
LONGEST = 30.0
"""Seconds between two tries, where the cluster or the signer's own files are at fault."""

log = structlog.get_logger()


Place = tuple[Form, Key]
"""Where a request stands: of which form it is, and its key among those."""


class Signer:
    def __init__(self, client: Client, issuer: Issuer, parts: frozenset[Account] = frozenset()) -> None:
        self.counts: Counter[str] = Counter()
        """Answers so far, by Issued, Denied and Failed, and what is tried again."""
        self.issuer = issuer
        self._client = client
        self._parts = parts
        self._waiting: asyncio.Queue[Place] = asyncio.Queue()
        self._failures: Counter[Place] = Counter()
        ours = f"spec.signerName={IDENTITY}"
        self._requests: dict[Form, Informer[Any]] = {
            form: Informer(client, form.resource, type=form.type, fields=ours, on_change=partial(self._take, form))
            for form in FORMS
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for each in self._requests.values():
                group.create_task(each.run())
            for _ in range(HANDS):
                group.create_task(self._work(group))

    @property
    def age(self) -> float:
        """Seconds since the API server was last heard of those requests of which it was heard the longest ago."""
        return max(each.age() for each in self._requests.values())

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def _take(self, form: Form, event: Event[Asked]) -> None:
        if event.type != DELETED and not event.object.answered:
            metadata = event.object.metadata
            self._waiting.put_nowait((form, (metadata.namespace, metadata.name)))

    async def _work(self, group: asyncio.TaskGroup) -> None:
        """What is nobody's decision is tried again: after a denial the pod would never start."""
        while True:
            place = await self._waiting.get()
            form, key = place
            asked = self._requests[form].items.get(key)
            if asked is None or asked.answered:
                self._failures.pop(place, None)
                continue
            try:
                await self._answer(form, asked)
            except (Refused, OSError, msgspec.ValidationError) as error:
                self._failures[place] += 1
                self.counts["Again"] += 1
                failures = self._failures[place]
                log.warning("no answer yet", pod=_pod(form.request(asked)), why=str(error), failures=failures)
                group.create_task(self._later(place))

    async def _later(self, place: Place) -> None:
        await self._client.clock.sleep(backoff(self._failures[place], self._client.chance(), LONGEST))
        self._waiting.put_nowait(place)

    async def _answer(self, form: Form, asked: Asked) -> None:
        request = form.request(asked)
        answer = await self._decided(request)
        try:
            await form.write(self._client, asked, answer)
        except (Conflict, NotFound):
            # It has another answer, or nobody waits for one any more.
            return
        except Invalid as error:
            problem = Problem(IDENTITY_FAILED, "the cluster does not accept the certificate", note=error.message)
            answer = Answer.of(problem, answer.at, "Failed")
            await form.write(self._client, asked, answer)
        self.counts[answer.type] += 1
        log.info(answer.type.lower(), pod=_pod(request), reason=answer.reason, said=answer.message)

    async def _decided(self, request: Request) -> Answer:
        now = self._client.clock.now()
        evidence = await gather(self._client, request)
        decision = decide(request, evidence, self.issuer.trust_domain, now, self._parts)
        if isinstance(decision, Problem):
            return Answer.of(decision, now)
        try:
            key = requested_key(request.spec.key)
        except Refused as refused:
            return Answer.of(refused.problems[0], now)
        return Answer.granting(decision, self.issuer.chain(decision, key), now)


def _pod(request: Request) -> str:
    return f"{request.metadata.namespace}/{request.spec.pod_name}"
