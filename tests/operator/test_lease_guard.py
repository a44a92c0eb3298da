"""An operator without the lease may read and cannot write."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

import pytest

from pincompute.base.problem import Refused
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.request import Request
from pincompute.kube.resource import PODS
from pincompute.operator.lease_guard import LeaseGuard


class RecordingTransport:
    """Answers every request and records its verb."""

    def __init__(self) -> None:
        self.verbs: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    async def send(self, request: Request) -> bytes:
        self.verbs.append(request.verb)
        return b"{}"

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        self.verbs.append(request.verb)
        yield b"{}"


async def test_rejects_writes_without_the_lease() -> None:
    transport_, is_leader = RecordingTransport(), [False]
    async with Client(
        Access("https://10.0.0.1"), "test", transport=LeaseGuard(transport_, lambda: is_leader[0])
    ) as client:
        await client.get(PODS, "web", "me")
        pod = {"metadata": {"name": "web", "namespace": "me"}}
        for write in (
            client.create(PODS, pod, manager="test"),
            client.apply(pod, PODS, manager="test"),
            client.patch(PODS, "web", "me", {}, style="merge", manager="test"),
            client.delete(PODS, "web", "me"),
            client.raw("POST", "/evictions", body=b"{}"),
        ):
            with pytest.raises(Refused, match="another operator may be leader by now"):
                await write
        is_leader[0] = True
        await client.delete(PODS, "web", "me")
    assert transport_.verbs == ["get", "delete"]
