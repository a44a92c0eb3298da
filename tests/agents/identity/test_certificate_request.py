"""A pod requests its own certificate from a fake API server over real TLS."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from certificate_factory import HOUR, NOW, TRUST_DOMAIN, issue_authority as issue_root, issue_svid
from child_process import child_process
from pincompute.agents.identity import certificate_request
from pincompute.agents.identity.bundle import client_context, own_id
from pincompute.agents.identity.certificate_request import RequestFailed, ensure_certificate, has_valid_certificate
from pincompute.agents.identity.issuer import Issuer, parse_requested_key
from pincompute.base.certificate_authority import Authority
from pincompute.objects.spiffe import SpiffeId
from pincompute.planning.pods.certificate_approval import CertificateGrant

HALF = 0.5


class FakeCluster:
    """Responds with `status` to questions about a request, and signs it if there is none."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "root", name=TRUST_DOMAIN)
        self.authority.establish()
        self.authority.delegate("signer", str(SpiffeId(TRUST_DOMAIN)))
        self.authority.issue("server", hosts=("127.0.0.1",))
        self.requests: list[dict[str, Any]] = []
        self.tokens: list[str] = []
        self.status: dict[str, Any] = {}
        self.error_status = 0
        # Not the time at which the tests were collected, which may be many minutes ago.
        self.not_before = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
        self.credentials = folder / "means"
        self.credentials.mkdir()
        (self.credentials / "token").write_text("the token\n")
        for name in ("ca.crt", "trust.pem"):
            (self.credentials / name).write_bytes(self.authority.bundle.read_bytes())
        self.folder = folder / "identity"
        self.folder.mkdir()

    def sign(self) -> str:
        issuer = Issuer(self.authority.certificate("signer"), self.authority.key("signer"))
        granted = CertificateGrant(
            SpiffeId(TRUST_DOMAIN, ("me", "web")), self.not_before, self.not_before, self.not_before + HOUR
        )
        key = parse_requested_key(base64.b64decode(self.requests[-1]["spec"]["request"]))
        return base64.b64encode(issuer.issue_chain(granted, key).encode()).decode()

    def respond(self, method: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if self.error_status:
            return self.error_status, {"message": "no rights"}
        if method == "POST":
            self.requests.append(json.loads(body))
            return 201, {"metadata": {"name": "web-0-abc"}}
        return 200, {"metadata": {"name": "web-0-abc"}, "status": self.status or {"certificate": self.sign()}}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCluster]:
    cluster = FakeCluster(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond()

        def do_POST(self) -> None:
            self._respond()

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            cluster.tokens.append(self.headers["Authorization"])
            status, content = cluster.respond(self.command, body)
            encoded = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            self.wfile.write(encoded)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (as its parent calls it)
            del format, args

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cluster.authority.certificate("server"), cluster.authority.key("server"))
    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.socket = context.wrap_socket(listener.socket, server_side=True)
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(listener.server_port))
    monkeypatch.setenv("POD_NAME", "web-0")
    yield cluster
    listener.shutdown()
    thread.join()
    listener.server_close()


def test_requests_certificate_with_pod_token(server: FakeCluster) -> None:
    renews_in_s = ensure_certificate(server.folder, server.credentials, HALF)
    assert str(own_id(server.folder)) == f"spiffe://{TRUST_DOMAIN}/me/web"
    client_context(server.folder)
    assert set(server.tokens) == {"Bearer the token"}
    (request_object,) = server.requests
    assert request_object["spec"]["signerName"] == "pinterest.com/identity"
    request = x509.load_pem_x509_csr(base64.b64decode(request_object["spec"]["request"]))
    assert list(request.subject) == []
    assert 25 * 60 < renews_in_s < 30 * 60
    assert has_valid_certificate(server.folder)


def test_renews_at_half_of_lifetime_with_new_key(server: FakeCluster) -> None:
    ensure_certificate(server.folder, server.credentials, HALF)
    first = (server.folder / "identity.pem").read_bytes()
    ensure_certificate(server.folder, server.credentials, HALF)
    assert (server.folder / "identity.pem").read_bytes() == first
    ensure_certificate(server.folder, server.credentials, 0.01)
    assert len(server.requests) == 2
    key, _, _ = (server.folder / "identity.pem").read_bytes().partition(b"-----BEGIN CERTIFICATE")
    assert key not in first


def test_copies_changed_roots(server: FakeCluster) -> None:
    ensure_certificate(server.folder, server.credentials, HALF)
    more = issue_root(name="the next").pem
    (server.credentials / "trust.pem").write_text(more)
    ensure_certificate(server.folder, server.credentials, HALF)
    assert (server.folder / "trust.pem").read_text() == more
    assert len(server.requests) == 1


@pytest.mark.parametrize("type_", ["Denied", "Failed"])
def test_error_contains_message_of_signer(server: FakeCluster, type_: str) -> None:
    server.status = {"conditions": [{"type": type_, "message": "web-0 gets no certificate: it has ended"}]}
    with pytest.raises(RequestFailed, match="web-0 gets no certificate: it has ended"):
        ensure_certificate(server.folder, server.credentials, HALF)
    assert not has_valid_certificate(server.folder)


def test_times_out_without_decision(server: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    server.status = {"conditions": []}
    monkeypatch.setattr(certificate_request, "TIMEOUT_S", 0.5)
    with pytest.raises(RequestFailed, match="the signer did not decide on web-0-abc"):
        ensure_certificate(server.folder, server.credentials, HALF)


def test_keeps_valid_certificate_when_request_is_refused(server: FakeCluster) -> None:
    ensure_certificate(server.folder, server.credentials, HALF)
    server.error_status = 403
    with pytest.raises(RequestFailed, match="returned 403: no rights"):
        ensure_certificate(server.folder, server.credentials, 0.01)
    assert has_valid_certificate(server.folder)


def test_sends_token_only_to_verified_server(server: FakeCluster) -> None:
    (server.credentials / "ca.crt").write_text(issue_root(name="another").pem)
    with pytest.raises(RequestFailed, match="certificate verify failed"):
        ensure_certificate(server.folder, server.credentials, HALF)
    assert server.tokens == []


def test_expired_certificate_is_not_valid(server: FakeCluster) -> None:
    root = issue_root()
    issue_svid(root, begin=NOW - 2 * HOUR).write_bundle(server.folder, root)
    assert not has_valid_certificate(server.folder)
    ensure_certificate(server.folder, server.credentials, HALF)
    assert has_valid_certificate(server.folder)


def test_program_exits_with_reason_without_certificate(server: FakeCluster) -> None:
    server.status = {"conditions": [{"type": "Denied", "message": "web-0 gets no certificate: no workload made it"}]}
    words = (sys.executable, "-m", "pincompute.agents.identity.ask", str(server.folder), str(server.credentials))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "web-0 gets no certificate: no workload made it\n")


def test_program_runs_until_sigterm(server: FakeCluster) -> None:
    words = (sys.executable, "-m", "pincompute.agents.identity.ask", str(server.folder), str(server.credentials))
    with child_process(*words) as process:
        while not (server.folder / "identity.pem").exists():
            assert process.poll() is None
        process.terminate()
        assert process.wait(60) == 0
