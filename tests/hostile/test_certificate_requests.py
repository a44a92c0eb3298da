"""One pod floods certificate requests: the signer stays small, and other pods get their certificates at once."""

from __future__ import annotations

import asyncio
import base64
import tracemalloc
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from certificate_factory import TRUST_DOMAIN, key_request
from pincompute.agents.identity.issuer import Issuer
from pincompute.agents.identity.request_queue import PodKey, RequestQueue
from pincompute.agents.identity.signer import MAX_ANSWERED_PER_POD, MAX_PENDING_PER_POD, Signer
from pincompute.base.certificate_authority import Authority
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import parse_error
from pincompute.kube.request import Request
from pincompute.objects.spiffe import SpiffeId
from scripted_transport import ConnectedTransport

FLOOD = 10_000
KEY = base64.b64encode(key_request(ec.generate_private_key(ec.SECP256R1()))).decode()
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MEMORY_BYTES = 64 << 20


def signing_request(name: str, namespace: str) -> dict[str, Any]:
    extra = {
        f"authentication.kubernetes.io/{field}": [value]
        for field, value in (("pod-name", "web-0"), ("pod-uid", f"pod-of-{namespace}"), ("node-name", "node-1"))
    }
    spec = {
        "signerName": "pinterest.com/identity", "request": KEY, "uid": "account-1", "usages": ["client auth"],
        "username": f"system:serviceaccount:{namespace}:web", "extra": extra,
    }  # fmt: skip
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"}, "spec": spec, "status": {}}


class FloodedCluster(ConnectedTransport):
    """Transport of a cluster in which one pod has sent thousands of requests before another one sends its own."""

    def __init__(self) -> None:
        self.requests = {f"flood-{number}": signing_request(f"flood-{number}", "evil") for number in range(FLOOD)}
        self.requests["needed"] = signing_request("needed", "good")
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.decided: list[str] = []
        self.settled = asyncio.Event()
        self.answered = asyncio.Event()

    async def send(self, request: Request) -> bytes:
        name = request.path.removeprefix(f"{REQUESTS}/").partition("/")[0]
        if request.method == "GET":
            raise parse_error(b'{"kind":"Status","reason":"NotFound","code":404}', about=request.about)
        # Other requests run while this one is under way.
        await asyncio.sleep(0)
        found = self.requests[name]
        if request.method == "DELETE":
            del self.requests[name]
            self.events.put_nowait(_line("DELETED", found))
        else:
            found["status"] |= msgspec.json.decode(request.body)["status"]
            self.decided.append(name)
            self.events.put_nowait(_line("MODIFIED", found))
            if name == "needed":
                self.answered.set()
        if len(self.requests) <= MAX_PENDING_PER_POD + MAX_ANSWERED_PER_POD + 1:
            self.settled.set()
        return msgspec.json.encode(found)

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        if request.path == REQUESTS:
            for each in list(self.requests.values()):
                yield _line("ADDED", each)
        yield _line(
            "BOOKMARK", {"metadata": {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}}
        )
        while request.path == REQUESTS:
            yield await self.events.get()
        await asyncio.Event().wait()


def _line(kind: str, value: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "object": value})


async def test_flood_of_one_pod_delays_no_other_and_is_deleted(tmp_path: Path) -> None:
    authority = Authority(tmp_path, name=TRUST_DOMAIN)
    authority.establish()
    authority.delegate("signer", str(SpiffeId(TRUST_DOMAIN)))
    cluster = FloodedCluster()
    async with (
        Client(Access(server="https://test"), agent="test", transport=cluster, chance=lambda: 0) as client,
        asyncio.timeout(120),
    ):
        tracemalloc.start()
        signer = Signer(client, Issuer(authority.certificate("signer"), authority.key("signer")))
        running = asyncio.create_task(signer.run())
        try:
            await cluster.answered.wait()
            assert cluster.decided.index("needed") < 40
            await cluster.settled.wait()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            running.cancel()
            await asyncio.wait({running})
    assert most < MEMORY_BYTES
    assert len(cluster.decided) < 2_000, "excess requests are deleted without a decision"
    assert signer.result_counts["Deleted"] >= FLOOD - MAX_PENDING_PER_POD - MAX_ANSWERED_PER_POD
    assert "needed" in cluster.requests


async def test_projects_and_pods_take_turns() -> None:
    queue: RequestQueue[str] = RequestQueue()
    for number in range(3):
        queue.put(PodKey("evil", "a"), f"a{number}")
        queue.put(PodKey("evil", "b"), f"b{number}")
    queue.put(PodKey("good", "c"), "c0")
    assert [await queue.take() for _ in range(7)] == ["a0", "c0", "b0", "a1", "b1", "a2", "b2"]
    assert len(queue) == 0


async def test_queue_holds_a_request_once_and_few_of_a_pod() -> None:
    queue: RequestQueue[int] = RequestQueue()
    pod = PodKey("evil", "a")
    dropped = [queue.put(pod, number, 2) for number in (1, 1, 2, 3, 3, 4)]
    assert dropped == [None, None, None, 1, None, 2]
    queue.discard(pod, 3)
    assert (len(queue), await queue.take()) == (1, 4)
