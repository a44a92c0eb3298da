"""Signer against a fake cluster: each request gets one result, and failures are retried."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from certificate_factory import TRUST_DOMAIN, key_request
from pincompute.agents.identity.issuer import Issuer
from pincompute.agents.identity.signer import Signer
from pincompute.base.certificate_authority import Authority
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.errors import Unreachable, parse_error
from pincompute.kube.request import Request
from pincompute.objects.spiffe import SpiffeId
from scripted_transport import ConnectedTransport

KEY = base64.b64encode(key_request(ec.generate_private_key(ec.SECP256R1()))).decode()
WEAK = base64.b64encode(key_request(rsa.generate_private_key(65537, 2048))).decode()
LABELS = {"pinterest.com/project": "me", "pinterest.com/workload": "web", "pinterest.com/kind": "PinterestStatefulSet"}
REQUESTS = "/apis/certificates.k8s.io/v1beta1/podcertificaterequests"
SIGNING = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNING_METADATA = {"name": "b", "uid": "request-2", "resourceVersion": "7"}
SIGNING_SPEC: dict[str, Any] = {
    "signerName": "pinterest.com/identity", "request": KEY, "username": "system:serviceaccount:me:web",
    "uid": "account-1", "usages": ["digital signature", "client auth", "server auth"],
    "extra": {
        f"authentication.kubernetes.io/{name}": [value]
        for name, value in (("pod-name", "web-0"), ("pod-uid", "pod-1"), ("node-name", "node-1"))
    },
}  # fmt: skip


def owned_object(uid: str, above: str = "", kind: str = "", version: str = "") -> dict[str, Any]:
    owner = {"uid": above, "controller": True, "kind": kind, "apiVersion": version, "name": "web"}
    owners = [owner] if above else []
    return {"metadata": {"name": "web", "namespace": "me", "uid": uid, "labels": LABELS, "ownerReferences": owners}}


class FakeCluster(ConnectedTransport):
    """Transport of a cluster with one certificate request. `errors` are raised by the next writes."""

    def __init__(self) -> None:
        ours = ("workload-1", "PinterestStatefulSet", "pinterest.com/v1")
        pod = owned_object("pod-1", "native-1", "StatefulSet", "apps/v1")
        pod |= {"spec": {"nodeName": "node-1", "serviceAccountName": "web"}, "status": {"phase": "Pending"}}
        self.objects: dict[str, Any] = {
            "/api/v1/namespaces/me/pods/web-0": pod,
            "/api/v1/namespaces/me/serviceaccounts/web": owned_object("account-1", *ours),
            "/apis/apps/v1/namespaces/me/statefulsets/web": owned_object("native-1", *ours),
            "/apis/pinterest.com/v1/namespaces/me/pintereststatefulsets/web": owned_object("workload-1"),
        }
        self.spec = {
            "signerName": "pinterest.com/identity", "podName": "web-0", "podUID": "pod-1", "nodeName": "node-1",
            "serviceAccountName": "web", "serviceAccountUID": "account-1", "stubPKCS10Request": KEY,
        }  # fmt: skip
        self.condition: dict[str, str] = {}
        self.signing_status: dict[str, Any] | None = None
        """Status of a CertificateSigningRequest of the pod; None for a PodCertificateRequest of its node."""
        self.errors: list[Exception] = []
        self.last_error_is_final = False
        """Whether no further write follows the last error."""
        self.written: list[dict[str, Any]] = []
        self.signing_writes: list[tuple[str, str]] = []
        """Writes to the CertificateSigningRequest: subresource, and resourceVersion of the precondition."""
        self.answered = asyncio.Event()
        self.listed = asyncio.Event()
        """Set once the signer has received all initial events."""

    async def send(self, request: Request) -> bytes:
        if request.method == "PATCH":
            body = msgspec.json.decode(request.body)
            self.written.append(body)
            if self.signing_status is not None:
                return self._write_signing_request(request.path, body)
            assert (
                request.path
                == f"/apis/certificates.k8s.io/v1beta1/namespaces/me/{REQUESTS.rpartition('/')[2]}/a/status"
            )
            if len(self.errors) <= self.last_error_is_final:
                self.answered.set()
            if self.errors:
                raise self.errors.pop(0)
            return b"{}"
        if request.path in self.objects:
            return msgspec.json.encode(self.objects[request.path])
        raise parse_error(b'{"kind":"Status","reason":"NotFound","code":404}', about=request.about)

    async def lines(self, request: Request, *, silence: float | None) -> AsyncGenerator[bytes]:
        assert request.query["fieldSelector"] == "spec.signerName=pinterest.com/identity"
        metadata = {"name": "a", "namespace": "me", "uid": "request-1", "resourceVersion": "7"}
        status = {"conditions": [self.condition]} if self.condition else {}
        if request.path == SIGNING and self.signing_status is not None:
            yield _line("ADDED", {"metadata": SIGNING_METADATA, "spec": SIGNING_SPEC, "status": self.signing_status})
        if request.path == REQUESTS and self.signing_status is None:
            yield _line("ADDED", {"metadata": metadata, "spec": self.spec, "status": status})
        annotations = {"k8s.io/initial-events-end": "true"}
        yield _line("BOOKMARK", {"metadata": {"resourceVersion": "7", "annotations": annotations}})
        if request.path == REQUESTS:
            self.listed.set()
        await asyncio.Event().wait()

    def _write_signing_request(self, path: str, body: dict[str, Any]) -> bytes:
        subresource = path.removeprefix(f"{SIGNING}/b/")
        denied = any(each["type"] == "Denied" for each in body["status"].get("conditions", ()))
        self.signing_writes.append((subresource, body["metadata"]["resourceVersion"]))
        if subresource == "status" or denied:
            self.answered.set()
        metadata = {**SIGNING_METADATA, "resourceVersion": "8"}
        return msgspec.json.encode({"metadata": metadata, "spec": SIGNING_SPEC, "status": body["status"]})


def _line(kind: str, value: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "object": value})


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@asynccontextmanager
async def signing(cluster: FakeCluster, folder: Path) -> AsyncGenerator[Signer]:
    authority = Authority(folder, name=TRUST_DOMAIN)
    authority.establish()
    authority.delegate("signer", str(SpiffeId(TRUST_DOMAIN)))
    issuer = Issuer(authority.certificate("signer"), authority.key("signer"))
    async with Client(Access(server="https://test"), agent="test", transport=cluster, chance=lambda: 0) as client:
        signer = Signer(client, issuer)
        running = asyncio.create_task(signer.run())
        async with asyncio.timeout(60):
            yield signer
        running.cancel()
        await asyncio.wait({running})


async def last_status(cluster: FakeCluster, folder: Path) -> dict[str, Any]:
    """The status written last, and the signer's counts of results."""
    async with signing(cluster, folder) as signer:
        await cluster.answered.wait()
        # The signer updates its counts in the same iteration of the event loop in which the write returns.
        await asyncio.sleep(0)
        return {**cluster.written[-1]["status"], "counts": +signer.result_counts}


async def test_issues_certificate_once_with_precondition(cluster: FakeCluster, tmp_path: Path) -> None:
    status = await last_status(cluster, tmp_path)
    assert len(x509.load_pem_x509_certificates(status["certificateChain"].encode())) == 2
    assert [each["type"] for each in status["conditions"]] == ["Issued"]
    assert cluster.written[0]["metadata"]["uid"] == "request-1"
    assert cluster.written[0]["metadata"]["resourceVersion"] == "7"


async def test_denies_pod_without_workload(cluster: FakeCluster, tmp_path: Path) -> None:
    del cluster.objects["/apis/pinterest.com/v1/namespaces/me/pintereststatefulsets/web"]
    status = await last_status(cluster, tmp_path)
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [("Denied", "IdentityDenied")]
    assert "certificateChain" not in status


async def test_denies_unsupported_key(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.spec["stubPKCS10Request"] = WEAK
    status = await last_status(cluster, tmp_path)
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [("Denied", "UnsupportedKeyType")]


async def test_retries_when_cluster_is_unavailable(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.errors = [Unreachable("https://test", "gone"), parse_error(b"no leader", status=500)]
    status = await last_status(cluster, tmp_path)
    assert status["counts"]["Retried"] == 2
    assert {each["status"]["conditions"][0]["type"] for each in cluster.written} == {"Issued"}


async def test_fails_when_cluster_rejects_certificate(cluster: FakeCluster, tmp_path: Path) -> None:
    error = (
        b'{"kind":"Status","reason":"Invalid","code":422,"message":"within 5 minutes owned_object its current time"}'
    )
    cluster.errors = [parse_error(error)]
    status = await last_status(cluster, tmp_path)
    (failed,) = status["conditions"]
    assert (failed["type"], failed["reason"]) == ("Failed", "IdentityFailed")
    assert failed["message"].endswith("within 5 minutes owned_object its current time")
    assert "certificateChain" not in status
    assert status["counts"] == {"Failed": 1}


async def test_conflicting_result_stands(cluster: FakeCluster, tmp_path: Path) -> None:
    conflict = b'{"kind":"Status","reason":"Conflict","code":409,"message":"modified"}'
    cluster.errors = [parse_error(conflict)]
    cluster.last_error_is_final = True
    status = await last_status(cluster, tmp_path)
    assert len(cluster.written) == 1
    assert status["counts"] == {}


async def test_ignores_answered_request(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.condition = {"type": "Denied", "status": "True"}
    async with signing(cluster, tmp_path) as signer:
        await cluster.listed.wait()
        assert signer.queue_length == 0
    assert cluster.written == []


async def test_approves_and_then_signs_request_of_pod(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.signing_status = {}
    status = await last_status(cluster, tmp_path)
    chain = x509.load_pem_x509_certificates(base64.b64decode(status["certificate"]))
    (name,) = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert name.value == f"spiffe://{TRUST_DOMAIN}/me/web"
    assert chain[0].public_key() == x509.load_der_x509_csr(base64.b64decode(KEY)).public_key()
    # The second write requires the resourceVersion of the first, so that no other write can come in between.
    assert cluster.signing_writes == [("approval", "7"), ("status", "8")]
    assert status["counts"] == {"Issued": 1}


async def test_signs_approved_request_after_crash(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.signing_status = {"conditions": [{"type": "Approved", "status": "True"}]}
    assert (await last_status(cluster, tmp_path))["certificate"]
    assert cluster.signing_writes == [("status", "7")]


async def test_denies_request_of_pod_without_workload(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.signing_status = {}
    cluster.objects["/api/v1/namespaces/me/pods/web-0"]["metadata"]["uid"] = "pod-2"
    status = await last_status(cluster, tmp_path)
    assert [(each["type"], each["reason"]) for each in status["conditions"]] == [("Denied", "IdentityDenied")]
    assert cluster.signing_writes == [("approval", "7")]
