"""A pod that asks for its own certificate: of an API server that a test makes answer as it likes, by real TLS."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from authorities import DOMAIN, HOUR, NOW, svid
from authorities import authority as root_of
from pincompute.agents.identity import asking
from pincompute.agents.identity.asking import Failed, keep, valid
from pincompute.agents.identity.bundle import client_context, own_id
from pincompute.agents.identity.issuing import Issuer, requested_key
from pincompute.base.certificates import Authority
from pincompute.objects.spiffe import SpiffeId
from pincompute.planning.pods.identity import Granted

HALF = 0.5


class Server:
    """Answers the first question about a request with `says`; and signs, where that is nothing."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "root", name=DOMAIN)
        self.authority.establish()
        self.authority.delegate("signer", str(SpiffeId(DOMAIN)))
        self.authority.issue("server", hosts=("127.0.0.1",))
        self.asked: list[dict[str, Any]] = []
        self.tokens: list[str] = []
        self.says: dict[str, Any] = {}
        self.refuses = 0
        self.begins = NOW - timedelta(minutes=1)
        self.means = folder / "means"
        self.means.mkdir()
        (self.means / "token").write_text("the token\n")
        for name in ("ca.crt", "trust.pem"):
            (self.means / name).write_bytes(self.authority.bundle.read_bytes())
        self.folder = folder / "identity"
        self.folder.mkdir()

    def sign(self) -> str:
        issuer = Issuer(self.authority.certificate("signer"), self.authority.key("signer"))
        granted = Granted(SpiffeId(DOMAIN, ("me", "web")), self.begins, self.begins, self.begins + HOUR)
        key = requested_key(base64.b64decode(self.asked[-1]["spec"]["request"]))
        return base64.b64encode(issuer.chain(granted, key).encode()).decode()

    def answer(self, method: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if self.refuses:
            return self.refuses, {"message": "no rights"}
        if method == "POST":
            self.asked.append(json.loads(body))
            return 201, {"metadata": {"name": "web-0-abc"}}
        return 200, {"metadata": {"name": "web-0-abc"}, "status": self.says or {"certificate": self.sign()}}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    cluster = Server(tmp_path)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            cluster.tokens.append(self.headers["Authorization"])
            status, said = cluster.answer(self.command, body)
            whole = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(whole)))
            self.end_headers()
            self.wfile.write(whole)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (as its parent calls it)
            del format, args

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cluster.authority.certificate("server"), cluster.authority.key("server"))
    door = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    door.socket = context.wrap_socket(door.socket, server_side=True)
    thread = threading.Thread(target=door.serve_forever)
    thread.start()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(door.server_port))
    monkeypatch.setenv("POD_NAME", "web-0")
    yield cluster
    door.shutdown()
    thread.join()
    door.server_close()


def test_it_asks_by_the_pods_token_and_lays_down_what_any_program_can_use(server: Server) -> None:
    left = keep(server.folder, server.means, HALF)
    assert str(own_id(server.folder)) == f"spiffe://{DOMAIN}/me/web"
    client_context(server.folder)
    assert set(server.tokens) == {"Bearer the token"}
    (asked,) = server.asked
    assert asked["spec"]["signerName"] == "pinterest.com/identity"
    request = x509.load_pem_x509_csr(base64.b64decode(asked["spec"]["request"]))
    assert list(request.subject) == []
    assert 25 * 60 < left < 30 * 60
    assert valid(server.folder)


def test_what_is_good_is_kept_until_half_of_it_has_passed_and_the_next_has_another_key(server: Server) -> None:
    keep(server.folder, server.means, HALF)
    first = (server.folder / "identity.pem").read_bytes()
    keep(server.folder, server.means, HALF)
    assert (server.folder / "identity.pem").read_bytes() == first
    keep(server.folder, server.means, 0.01)
    assert len(server.asked) == 2
    key, _, _ = (server.folder / "identity.pem").read_bytes().partition(b"-----BEGIN CERTIFICATE")
    assert key not in first


def test_other_roots_are_taken_over(server: Server) -> None:
    keep(server.folder, server.means, HALF)
    more = root_of(name="the next").pem
    (server.means / "trust.pem").write_text(more)
    keep(server.folder, server.means, HALF)
    assert (server.folder / "trust.pem").read_text() == more
    assert len(server.asked) == 1


@pytest.mark.parametrize("type_", ["Denied", "Failed"])
def test_why_there_is_none_is_told_in_the_signers_words(server: Server, type_: str) -> None:
    server.says = {"conditions": [{"type": type_, "message": "web-0 gets no certificate: it has ended"}]}
    with pytest.raises(Failed, match="web-0 gets no certificate: it has ended"):
        keep(server.folder, server.means, HALF)
    assert not valid(server.folder)


def test_a_signer_that_is_silent_is_not_waited_for_for_ever(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.says = {"conditions": []}
    monkeypatch.setattr(asking, "PATIENCE", 0.5)
    with pytest.raises(Failed, match="has not answered to web-0-abc"):
        keep(server.folder, server.means, HALF)


def test_a_server_that_refuses_is_told_and_what_is_valid_stays(server: Server) -> None:
    keep(server.folder, server.means, HALF)
    server.refuses = 403
    with pytest.raises(Failed, match="answered 403: no rights"):
        keep(server.folder, server.means, 0.01)
    assert valid(server.folder)


def test_nobody_else_is_told_the_token(server: Server) -> None:
    (server.means / "ca.crt").write_text(root_of(name="another").pem)
    with pytest.raises(Failed, match="certificate verify failed"):
        keep(server.folder, server.means, HALF)
    assert server.tokens == []


def test_one_that_has_passed_is_not_valid(server: Server) -> None:
    root = root_of()
    svid(root, begin=NOW - 2 * HOUR).write(server.folder, root)
    assert not valid(server.folder)
    keep(server.folder, server.means, HALF)
    assert valid(server.folder)


def test_the_program_ends_with_the_reason_where_there_is_nothing_to_show(server: Server) -> None:
    server.says = {"conditions": [{"type": "Denied", "message": "web-0 gets no certificate: no workload made it"}]}
    words = (sys.executable, "-m", "pincompute.agents.identity.ask", str(server.folder), str(server.means))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "web-0 gets no certificate: no workload made it\n")


def test_the_program_stays_and_ends_when_told(server: Server) -> None:
    words = (sys.executable, "-m", "pincompute.agents.identity.ask", str(server.folder), str(server.means))
    with subprocess.Popen(words) as process:
        while not (server.folder / "identity.pem").exists():
            assert process.poll() is None
        process.terminate()
        assert process.wait(60) == 0
