"""The signer against a cluster that a test makes fail: each request has one answer, and what fails is tried again."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from authorities import DOMAIN, key_request
from pincompute.agents.identity.issuing import Issuer
from pincompute.agents.identity.signer import Signer
from pincompute.base.certificates import Authority
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import Unreachable, error_of
from pincompute.kube.request import Request
from pincompute.objects.spiffe import SpiffeId

KEY = base64.b64encode(key_request(ec.generate_private_key(ec.SECP256R1()))).decode()
WEAK = base64.b64encode(key_request(rsa.generate_private_key(65537, 2048))).decode()
LABELS = {"pinterest.com/project": "me", "pinterest.com/workload": "web", "pinterest.com/kind": "PinterestStatefulSet"}
REQUESTS = "/apis/certificates.k8s.io/v1beta1/podcertificaterequests"
SIGNING = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BY_ITSELF = {"name": "b", "uid": "request-2", "resourceVersion": "7"}
SIGNING_SPEC: dict[str, Any] = {
    "signerName": "pinterest.com/identity", "request": KEY, "username": "system:serviceaccount:me:web",
    "uid": "account-1", "usages": ["digital signature", "client auth", "server auth"],
    "extra": {
        f"authentication.kubernetes.io/{name}": [value]
        for name, value in (("pod-name", "web-0"), ("pod-uid", "pod-1"), ("node-name", "node-1"))
    },
}  # fmt: skip


def of(uid: str, above: str = "", kind: str = "", version: str = "") -> dict[str, Any]:
    owner = {"uid": above, "controller": True, "kind": kind, "apiVersion": version, "name": "web"}
    owners = [owner] if above else []
    return {"metadata": {"name": "web", "namespace": "me", "uid": uid, "labels": LABELS, "ownerReferences": owners}}


class Cluster:
    """A service with one pod that has asked; `fails` is what answers to the next writes instead."""

    def __init__(self) -> None:
        ours = ("workload-1", "PinterestStatefulSet", "pinterest.com/v1")
        pod = of("pod-1", "native-1", "StatefulSet", "apps/v1")
        pod |= {"spec": {"nodeName": "node-1", "serviceAccountName": "web"}, "status": {"phase": "Pending"}}
        self.objects: dict[str, Any] = {
            "/api/v1/namespaces/me/pods/web-0": pod,
            "/api/v1/namespaces/me/serviceaccounts/web": of("account-1", *ours),
            "/apis/apps/v1/namespaces/me/statefulsets/web": of("native-1", *ours),
            "/apis/pinterest.com/v1/namespaces/me/pintereststatefulsets/web": of("workload-1"),
        }
        self.spec = {
            "signerName": "pinterest.com/identity", "podName": "web-0", "podUID": "pod-1", "nodeName": "node-1",
            "serviceAccountName": "web", "serviceAccountUID": "account-1", "stubPKCS10Request": KEY,
        }  # fmt: skip
        self.condition: dict[str, str] = {}
        self.by_itself: dict[str, Any] | None = None
        """The status of a request by the pod itself, instead of its node's."""
        self.fails: list[Exception] = []
        self.last = False
        """Whether the last failure is the end of it."""
        self.written: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        """Of a request by the pod itself: what was written, and on which revision of it."""
        self.answered = asyncio.Event()
        self.heard = asyncio.Event()
        """Everything that happened was taken in."""

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    async def send(self, request: Request) -> bytes:
        if request.method == "PATCH":
            body = msgspec.json.decode(request.body)
            self.written.append(body)
            if self.by_itself is not None:
                return self._of_pod(request.path, body)
            assert (
                request.path
                == f"/apis/certificates.k8s.io/v1beta1/namespaces/me/{REQUESTS.rpartition('/')[2]}/a/status"
            )
            if len(self.fails) <= self.last:
                self.answered.set()
            if self.fails:
                raise self.fails.pop(0)
            return b"{}"
        if request.path in self.objects:
            return msgspec.json.encode(self.objects[request.path])
        raise error_of(b'{"kind":"Status","reason":"NotFound","code":404}', about=request.about)

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        assert request.query["fieldSelector"] == "spec.signerName=pinterest.com/identity"
        metadata = {"name": "a", "namespace": "me", "uid": "request-1", "resourceVersion": "7"}
        status = {"conditions": [self.condition]} if self.condition else {}
        if request.path == SIGNING and self.by_itself is not None:
            yield _line("ADDED", {"metadata": BY_ITSELF, "spec": SIGNING_SPEC, "status": self.by_itself})
        if request.path == REQUESTS and self.by_itself is None:
            yield _line("ADDED", {"metadata": metadata, "spec": self.spec, "status": status})
        marked = {"k8s.io/initial-events-end": "true"}
        yield _line("BOOKMARK", {"metadata": {"resourceVersion": "7", "annotations": marked}})
        if request.path == REQUESTS:
            self.heard.set()
        await asyncio.Event().wait()

    def _of_pod(self, path: str, body: dict[str, Any]) -> bytes:
        what = path.removeprefix(f"{SIGNING}/b/")
        denied = any(each["type"] == "Denied" for each in body["status"].get("conditions", ()))
        self.asked.append((what, body["metadata"]["resourceVersion"]))
        if what == "status" or denied:
            self.answered.set()
        metadata = {**BY_ITSELF, "resourceVersion": "8"}
        return msgspec.json.encode({"metadata": metadata, "spec": SIGNING_SPEC, "status": body["status"]})


def _line(kind: str, value: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "object": value})


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@asynccontextmanager
async def signing(cluster: Cluster, folder: Path) -> AsyncGenerator[Signer]:
    authority = Authority(folder, name=DOMAIN)
    authority.establish()
    authority.delegate("signer", str(SpiffeId(DOMAIN)))
    issuer = Issuer(authority.certificate("signer"), authority.key("signer"))
    async with Client(Access(server="https://test"), agent="test", transport=cluster, chance=lambda: 0) as client:
        signer = Signer(client, issuer)
        running = asyncio.create_task(signer.run())
        async with asyncio.timeout(60):
            yield signer
        running.cancel()
        await asyncio.wait({running})


async def answer(cluster: Cluster, folder: Path) -> dict[str, Any]:
    """The status that was written last, and the signer's own count of its answers."""
    async with signing(cluster, folder) as signer:
        await cluster.answered.wait()
        # What it counts it counts in the very turn in which the answer comes.
        await asyncio.sleep(0)
        return {**cluster.written[-1]["status"], "counts": +signer.counts}


async def test_a_pod_of_a_workload_is_answered_once_and_only_as_it_was_seen(cluster: Cluster, tmp_path: Path) -> None:
    status = await answer(cluster, tmp_path)
    assert len(x509.load_pem_x509_certificates(status["certificateChain"].encode())) == 2
    assert [each["type"] for each in status["conditions"]] == ["Issued"]
    assert cluster.written[0]["metadata"]["uid"] == "request-1"
    assert cluster.written[0]["metadata"]["resourceVersion"] == "7"


async def test_one_that_is_nobodys_is_told_why(cluster: Cluster, tmp_path: Path) -> None:
    del cluster.objects["/apis/pinterest.com/v1/namespaces/me/pintereststatefulsets/web"]
    status = await answer(cluster, tmp_path)
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [("Denied", "IdentityDenied")]
    assert "certificateChain" not in status


async def test_a_key_of_an_unknown_kind_is_told_which_is_known(cluster: Cluster, tmp_path: Path) -> None:
    cluster.spec["stubPKCS10Request"] = WEAK
    status = await answer(cluster, tmp_path)
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [("Denied", "UnsupportedKeyType")]


async def test_a_cluster_that_cannot_answer_is_no_denial(cluster: Cluster, tmp_path: Path) -> None:
    cluster.fails = [Unreachable("https://test", "gone"), error_of(b"no leader", status=500)]
    status = await answer(cluster, tmp_path)
    assert status["counts"]["Again"] == 2
    assert {each["status"]["conditions"][0]["type"] for each in cluster.written} == {"Issued"}


async def test_a_certificate_that_the_cluster_refuses_is_given_up_in_words(cluster: Cluster, tmp_path: Path) -> None:
    said = b'{"kind":"Status","reason":"Invalid","code":422,"message":"within 5 minutes of its current time"}'
    cluster.fails = [error_of(said)]
    status = await answer(cluster, tmp_path)
    (failed,) = status["conditions"]
    assert (failed["type"], failed["reason"]) == ("Failed", "IdentityFailed")
    assert failed["message"].endswith("within 5 minutes of its current time")
    assert "certificateChain" not in status
    assert status["counts"] == {"Failed": 1}


async def test_another_answer_stands(cluster: Cluster, tmp_path: Path) -> None:
    conflict = b'{"kind":"Status","reason":"Conflict","code":409,"message":"modified"}'
    cluster.fails = [error_of(conflict)]
    cluster.last = True
    status = await answer(cluster, tmp_path)
    assert len(cluster.written) == 1
    assert status["counts"] == {}


async def test_what_has_an_answer_is_left_alone(cluster: Cluster, tmp_path: Path) -> None:
    cluster.condition = {"type": "Denied", "status": "True"}
    async with signing(cluster, tmp_path) as signer:
        await cluster.heard.wait()
        assert signer.waiting == 0
    assert cluster.written == []


async def test_a_pod_that_asks_for_itself_is_approved_and_then_signed(cluster: Cluster, tmp_path: Path) -> None:
    cluster.by_itself = {}
    status = await answer(cluster, tmp_path)
    chain = x509.load_pem_x509_certificates(base64.b64decode(status["certificate"]))
    (who,) = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert who.value == f"spiffe://{DOMAIN}/me/web"
    assert chain[0].public_key() == x509.load_der_x509_csr(base64.b64decode(KEY)).public_key()
    # The second write is on what the first has made, so that nothing comes in between.
    assert cluster.asked == [("approval", "7"), ("status", "8")]
    assert status["counts"] == {"Issued": 1}


async def test_who_crashed_between_approval_and_signature_signs(cluster: Cluster, tmp_path: Path) -> None:
    cluster.by_itself = {"conditions": [{"type": "Approved", "status": "True"}]}
    assert (await answer(cluster, tmp_path))["certificate"]
    assert cluster.asked == [("status", "7")]


async def test_a_pod_that_asks_for_itself_and_is_nobodys_is_told_why(cluster: Cluster, tmp_path: Path) -> None:
    cluster.by_itself = {}
    cluster.objects["/api/v1/namespaces/me/pods/web-0"]["metadata"]["uid"] = "pod-2"
    status = await answer(cluster, tmp_path)
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [("Denied", "IdentityDenied")]
    assert cluster.asked == [("approval", "7")]
