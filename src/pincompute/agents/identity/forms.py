"""The two forms in which a certificate is asked for: by the node for its pod, and by a pod for itself."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from pincompute.api.names import SIGNER
from pincompute.base.problem import Problem
from pincompute.kube.client import Client
from pincompute.kube.resource import POD_CERTIFICATES, SIGNING_REQUESTS, Object, Resource
from pincompute.objects.times import stamp
from pincompute.planning.pods.identity import Granted, Request, SigningRequest

Asked = Request | SigningRequest


class Answer(NamedTuple):
    """Issued, Denied or Failed, in words; and the certificate with the signer's own, where it was issued."""

    type: str
    reason: str
    message: str
    at: datetime
    granted: Granted | None = None
    chain: str = ""

    @classmethod
    def of(cls, problem: Problem, at: datetime, type_: str = "Denied") -> Answer:
        return cls(type_, problem.reason.code, problem.message(), at)

    @classmethod
    def granting(cls, granted: Granted, chain: str, at: datetime) -> Answer:
        return cls("Issued", "Issued", f"{granted.who} until {stamp(granted.end)}", at, granted, chain)

    def condition(self, type_: str = "") -> Object:
        said = {"type": type_ or self.type, "status": "True", "reason": self.reason, "message": self.message}
        return {**said, "lastTransitionTime": stamp(self.at)}


class Form(NamedTuple):
    resource: Resource
    type: Any
    request: Callable[[Any], Request]
    """What is asked, as a node would."""
    write: Callable[[Client, Any, Answer], Awaitable[None]]


def _itself(asked: Request) -> Request:
    return asked


async def _tell_node(client: Client, asked: Request, answer: Answer) -> None:
    status: Object = {"conditions": [answer.condition()]}
    if answer.granted:
        status |= {
            "certificateChain": answer.chain,
            "notBefore": stamp(answer.granted.begin),
            "beginRefreshAt": stamp(answer.granted.renew),
            "notAfter": stamp(answer.granted.end),
        }
    await _patch(client, POD_CERTIFICATES, asked, status, "status")


async def _tell_pod(client: Client, asked: SigningRequest, answer: Answer) -> None:
    """It is first approved, and then signed: who crashes between both decides anew."""
    if answer.type == "Failed":
        await _patch(client, SIGNING_REQUESTS, asked, {"conditions": [answer.condition()]}, "status")
        return
    if not asked.approved:
        approval = answer.condition("Approved" if answer.granted else "Denied")
        made = await _patch(client, SIGNING_REQUESTS, asked, {"conditions": [approval]}, "approval")
        asked = msgspec.convert(made, SigningRequest)
    if answer.granted:
        chain = base64.b64encode(answer.chain.encode()).decode()
        await _patch(client, SIGNING_REQUESTS, asked, {"certificate": chain}, "status")


async def _patch(client: Client, resource: Resource, asked: Asked, status: Object, subresource: str) -> Object:
    metadata = asked.metadata
    # Whoever deleted it and made it anew under its name gets no answer that was not meant for it.
    seen = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    body: Object = {"metadata": seen, "status": status}
    return await client.patch(
        resource, metadata.name, metadata.namespace, body, style="merge", manager=SIGNER, subresource=subresource
    )


FORMS = (
    Form(POD_CERTIFICATES, Request, _itself, _tell_node),
    Form(SIGNING_REQUESTS, SigningRequest, SigningRequest.of_pod, _tell_pod),
)
