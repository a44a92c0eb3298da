"""The two kinds of certificate requests: PodCertificateRequest by a kubelet, CertificateSigningRequest by a pod."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import SIGNER
from pincompute.base.problem import Problem
from pincompute.kube.client import Client
from pincompute.kube.resource import CERTIFICATE_SIGNING_REQUESTS, POD_CERTIFICATE_REQUESTS, Object, Resource
from pincompute.objects.times import format_time
from pincompute.planning.pods.certificate_approval import (
    CertificateGrant,
    CertificateSigningRequest,
    PodCertificateRequest,
)

AnyRequest = PodCertificateRequest | CertificateSigningRequest


class SigningResult(NamedTuple):
    """Decision on a request: Issued, Denied or Failed. If issued, with the certificate chain."""

    type: str
    reason: str
    message: str
    at: datetime
    granted: CertificateGrant | None = None
    chain: str = ""

    @classmethod
    def from_problem(cls, problem: Problem, at: datetime, type_: str = "Denied") -> SigningResult:
        return cls(type_, problem.reason.code, problem.message(), at)

    @classmethod
    def issued(cls, granted: CertificateGrant, chain: str, at: datetime) -> SigningResult:
        return cls(
            "Issued", "Issued", f"{granted.spiffe_id} until {format_time(granted.not_after)}", at, granted, chain
        )

    def condition(self, type_: str = "") -> Object:
        condition = {"type": type_ or self.type, "status": "True", "reason": self.reason, "message": self.message}
        return {**condition, "lastTransitionTime": format_time(self.at)}


class RequestKind(NamedTuple):
    """A kind of request, with the functions that read it and write its result."""

    resource: Resource
    type: Any
    as_pod_request: Callable[[Any], PodCertificateRequest]
    """Converts a request of this kind to a PodCertificateRequest."""
    write_result: Callable[[Client, Any, SigningResult], Awaitable[None]]
    sent_by_pods: bool = False
    """Whether pods send it, rather than their nodes, so that its number must be limited."""


def _unchanged(request: PodCertificateRequest) -> PodCertificateRequest:
    return request


async def _write_pod_request(client: Client, request: PodCertificateRequest, result: SigningResult) -> None:
    status: Object = {"conditions": [result.condition()]}
    if result.granted:
        status |= {
            "certificateChain": result.chain,
            "notBefore": format_time(result.granted.not_before),
            "beginRefreshAt": format_time(result.granted.begin_refresh_at),
            "notAfter": format_time(result.granted.not_after),
        }
    await _patch(client, POD_CERTIFICATE_REQUESTS, request, status, "status")


async def _write_signing_request(client: Client, request: CertificateSigningRequest, result: SigningResult) -> None:
    """Approves first and then signs. A signer that crashes in between decides again after its restart."""
    if result.type == "Failed":
        await _patch(client, CERTIFICATE_SIGNING_REQUESTS, request, {"conditions": [result.condition()]}, "status")
        return
    if not request.approved:
        approval = result.condition("Approved" if result.granted else "Denied")
        patched = await _patch(client, CERTIFICATE_SIGNING_REQUESTS, request, {"conditions": [approval]}, "approval")
        request = msgspec.convert(patched, CertificateSigningRequest)
    if result.granted:
        chain = base64.b64encode(result.chain.encode()).decode()
        await _patch(client, CERTIFICATE_SIGNING_REQUESTS, request, {"certificate": chain}, "status")


async def _patch(client: Client, resource: Resource, request: AnyRequest, status: Object, subresource: str) -> Object:
    metadata = request.metadata
    # A request that was deleted and created again under the same name must not get this result.
    precondition = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    body: Object = {"metadata": precondition, "status": status}
    return await client.patch(
        resource, metadata.name, metadata.namespace, body, style="merge", manager=SIGNER, subresource=subresource
    )


REQUEST_KINDS = (
    RequestKind(POD_CERTIFICATE_REQUESTS, PodCertificateRequest, _unchanged, _write_pod_request),
    RequestKind(
        CERTIFICATE_SIGNING_REQUESTS,
        CertificateSigningRequest,
        CertificateSigningRequest.to_pod_request,
        _write_signing_request,
        sent_by_pods=True,
    ),
)
