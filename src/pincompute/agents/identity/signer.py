"""Signer: decides each certificate request of a pod once, with a certificate or with the reason of the denial."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

import msgspec
import structlog

from pincompute.agents.identity.evidence import gather_evidence
from pincompute.agents.identity.issuer import Issuer, parse_requested_key
from pincompute.agents.identity.request_kinds import REQUEST_KINDS, AnyRequest, RequestKind, SigningResult
from pincompute.agents.identity.request_queue import PodKey, RequestQueue
from pincompute.api.names import IDENTITY_SIGNER
from pincompute.base.backoff import backoff_s
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import IDENTITY_FAILED
from pincompute.kube.client import Client
from pincompute.kube.errors import Conflict, Invalid, NotFound
from pincompute.kube.informer import Informer, Key
from pincompute.kube.watch import DELETED, Event
from pincompute.planning.pods.certificate_approval import PodCertificateRequest, ServiceAccountKey, decide_certificate

WORKER_COUNT = 8
"""Requests processed concurrently: each one mostly waits for the API server."""
MAX_PENDING_PER_POD = 4
"""Undecided requests of one pod by its own token; older ones are deleted. A pod needs one at a time."""
MAX_ANSWERED_PER_POD = 8
"""Decided requests of one pod that stay. Kubernetes deletes them after an hour; a pod needs four in that time."""
DELETER_COUNT = 4
"""Concurrent deletions: fewer than workers, so that a flood delays no certificate."""
MAX_BACKOFF_S = 30.0
"""Longest delay between two attempts, if the cluster or the signer's own files cause a failure."""

log = structlog.get_logger()

RequestRef = tuple[RequestKind, Key]


class Signer:
    """Watches both kinds of requests and processes them by a queue."""

    def __init__(self, client: Client, issuer: Issuer, parts: frozenset[ServiceAccountKey] = frozenset()) -> None:
        self.result_counts: Counter[str] = Counter()
        """Results so far: Issued, Denied, Failed, Deleted, and Retried attempts."""
        self.issuer = issuer
        self._client = client
        self._parts = parts
        self._queue: RequestQueue[RequestRef] = RequestQueue()
        self._answered: dict[PodKey, dict[RequestRef, None]] = {}
        """Decided requests that a pod sent itself, oldest first."""
        self._excess: RequestQueue[RequestRef] = RequestQueue()
        """Requests to delete."""
        self._failures: Counter[RequestRef] = Counter()
        fields = f"spec.signerName={IDENTITY_SIGNER}"
        self._informers: dict[RequestKind, Informer[Any]] = {
            kind: Informer(client, kind.resource, type=kind.type, fields=fields, on_change=partial(self._enqueue, kind))
            for kind in REQUEST_KINDS
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())
            for _ in range(WORKER_COUNT):
                group.create_task(self._work(group))
            for _ in range(DELETER_COUNT):
                group.create_task(self._delete_excess())

    @property
    def staleness_s(self) -> float:
        """Seconds since the last message of the API server, for the kind of request with the older one."""
        return max(each.staleness_s() for each in self._informers.values())

    @property
    def queue_length(self) -> int:
        return len(self._queue)

    def _enqueue(self, kind: RequestKind, event: Event[AnyRequest]) -> None:
        request = event.object
        ref, pod = (kind, (request.metadata.namespace, request.metadata.name)), _pod_key(kind, request)
        if event.type == DELETED:
            self._queue.discard(pod, ref)
            self._excess.discard(pod, ref)
            self._forget_answered(pod, ref)
            self._failures.pop(ref, None)
        elif request.answered:
            self._queue.discard(pod, ref)
            if kind.sent_by_pods:
                self._remember_answered(pod, ref)
        else:
            self._put(pod, ref)

    def _put(self, pod: PodKey, ref: RequestRef) -> None:
        dropped = self._queue.put(pod, ref, MAX_PENDING_PER_POD if ref[0].sent_by_pods else None)
        if dropped:
            self._excess.put(pod, dropped)

    def _remember_answered(self, pod: PodKey, ref: RequestRef) -> None:
        answered = self._answered.setdefault(pod, {})
        answered[ref] = None
        if len(answered) > MAX_ANSWERED_PER_POD:
            oldest = next(iter(answered))
            del answered[oldest]
            self._excess.put(pod, oldest)

    def _forget_answered(self, pod: PodKey, ref: RequestRef) -> None:
        answered = self._answered.get(pod, {})
        answered.pop(ref, None)
        if not answered:
            self._answered.pop(pod, None)

    async def _delete_excess(self) -> None:
        """Deletes requests beyond the limits of a pod. One that cannot be deleted now is left to Kubernetes."""
        while True:
            kind, key = await self._excess.take()
            request = self._informers[kind].items.get(key)
            if request is None:
                continue
            try:
                await self._client.delete(kind.resource, request.metadata.name, uid=request.metadata.uid)
                self.result_counts["Deleted"] += 1
            except (NotFound, Conflict):
                continue
            except (Refused, OSError) as error:
                log.warning("excess request not deleted", request=request.metadata.name, why=str(error))

    async def _work(self, group: asyncio.TaskGroup) -> None:
        """Processes queued requests. Errors of the signer or cluster are retried, because a denial would be final."""
        while True:
            ref = await self._queue.take()
            kind, key = ref
            request = self._informers[kind].items.get(key)
            if request is None or request.answered:
                self._failures.pop(ref, None)
                continue
            try:
                await self._process(kind, request)
                self._failures.pop(ref, None)
            except (Refused, OSError, msgspec.ValidationError) as error:
                self._failures[ref] += 1
                self.result_counts["Retried"] += 1
                failures = self._failures[ref]
                pod = _pod_name(kind.as_pod_request(request))
                log.warning("certificate request failed", pod=pod, why=str(error), failures=failures)
                group.create_task(self._enqueue_later(ref))

    async def _enqueue_later(self, ref: RequestRef) -> None:
        await self._client.clock.sleep(backoff_s(self._failures[ref], self._client.random(), MAX_BACKOFF_S))
        request = self._informers[ref[0]].items.get(ref[1])
        if request is not None:
            self._put(_pod_key(ref[0], request), ref)

    async def _process(self, kind: RequestKind, request: AnyRequest) -> None:
        pod_request = kind.as_pod_request(request)
        result = await self._decide(pod_request)
        try:
            await kind.write_result(self._client, request, result)
        except (Conflict, NotFound):
            # The request has a result already, or was deleted.
            return
        except Invalid as error:
            problem = Problem(IDENTITY_FAILED, "the cluster rejected the certificate", note=error.message)
            result = SigningResult.from_problem(problem, result.at, "Failed")
            await kind.write_result(self._client, request, result)
        self.result_counts[result.type] += 1
        event = f"certificate {result.type.lower()}"
        log.info(event, pod=_pod_name(pod_request), reason=result.reason, message=result.message)

    async def _decide(self, request: PodCertificateRequest) -> SigningResult:
        now = self._client.clock.now()
        evidence = await gather_evidence(self._client, request)
        decision = decide_certificate(request, evidence, self.issuer.trust_domain, now, self._parts)
        if isinstance(decision, Problem):
            return SigningResult.from_problem(decision, now)
        try:
            key = parse_requested_key(request.spec.key)
        except Refused as refused:
            return SigningResult.from_problem(refused.problems[0], now)
        return SigningResult.issued(decision, self.issuer.issue_chain(decision, key), now)


def _pod_key(kind: RequestKind, request: AnyRequest) -> PodKey:
    pod_request = kind.as_pod_request(request)
    return PodKey(pod_request.metadata.namespace, pod_request.spec.pod_uid)


def _pod_name(request: PodCertificateRequest) -> str:
    return f"{request.metadata.namespace}/{request.spec.pod_name}"
