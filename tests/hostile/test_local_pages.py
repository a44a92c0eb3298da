"""Another user of the machine reads the pages of the operator and the signer, which listen on loopback."""

from __future__ import annotations

import asyncio
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from pincompute.agents.health import MetricsPage, serve_health
from pincompute.agents.identity.issuer import Issuer
from pincompute.agents.identity.process import serve_status
from pincompute.agents.identity.signer import Signer
from pincompute.base.certificate_authority import Authority
from pincompute.controller.pass_history import PassRecord
from pincompute.controller.passes import Key, Outcome
from pincompute.engine import metrics_token, own_services
from pincompute.engine.home import Home
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.kube.retrying_transport import RequestStats
from pincompute.operator.http_server import HttpServer
from pincompute.operator.manager import ControllerManager
from real_platform import free_port
from running_operator import TEST_CLUSTER
from shared_platform import SharedPlatform

TOKEN = "the-token-of-the-pages"
PROJECT, WORKLOAD = "secret-project", "secret-workload"
HISTORY = f"/history/{PROJECT}/{WORKLOAD}"
PATHS = (
    "/metrics", HISTORY, f"/history/{WORKLOAD}", "/history/unknown", "/unknown", "/",
    # Other spellings of the pages, and of paths that begin like a probe's.
    "//metrics", "/metrics/", "/%6detrics", "/healthz/../metrics", "/healthz/metrics", "/healthz%2f..%2fmetrics",
    "/healthz?/metrics", "/metrics?token=" + TOKEN, "/metrics?/healthz", "/metrics#/healthz", "http://x/metrics",
)  # fmt: skip
PROBES = {"/healthz?/metrics"}
"""Paths of the above that are probes."""
HEADERS = (
    "",
    "Authorization:",
    "Authorization: Bearer",
    "Authorization: Bearer ",
    f"Authorization: {TOKEN}",
    f"Authorization: Basic {TOKEN}",
    f"Authorization: Bearer {TOKEN[:-1]}",
    f"Authorization: Bearer {TOKEN}x",
    f"Authorization: Bearer {TOKEN.upper()}",
    f"Authorization: Bearer {TOKEN},{TOKEN}",
    "Authorization: Bearer é\udcff",
    f"Authorization: Bearer wrong\r\nAuthorization: Bearer {TOKEN}",
    f"Cookie: token={TOKEN}",
    "X-Original-URL: /healthz\r\nX-Forwarded-For: 127.0.0.1",
)


class Response(NamedTuple):
    status: int
    text: str


async def request(port: int, path: str, header: str = "", method: str = "GET") -> Response:
    """Send bytes that an HTTP client would correct."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", *([header] if header else []), "", ""]
    writer.write("\r\n".join(lines).encode(errors="surrogateescape"))
    answer = (await reader.read()).decode()
    writer.close()
    return Response(int(answer.split()[1]), answer)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


def replace_token(file: Path, content: str | None) -> None:
    file.unlink(missing_ok=True)
    if content is not None:
        file.write_text(content)


@asynccontextmanager
async def operator_pages(token_file: Path | None) -> AsyncIterator[int]:
    """The pages of an operator that reconciled a workload."""
    async with Client(Access("https://10.0.0.1"), "test") as client:
        server = HttpServer(token_file)
        server.manager = ControllerManager(client, TEST_CLUSTER)
        step = f"Create Deployment/{WORKLOAD}"
        record = PassRecord(datetime(2026, 1, 1, tzinfo=UTC), ("created",), 0.0, (step,), "", Outcome.CHANGED, 0.1)
        server.manager.loop.history.add(Key(PROJECT, WORKLOAD), record)
        port = await server.open("127.0.0.1:0")
        try:
            yield port
        finally:
            await server.close()


@asynccontextmanager
async def signer_pages(token_file: Path, folder: Path) -> AsyncIterator[int]:
    authority = Authority(folder)
    authority.establish()
    authority.delegate("signer", "spiffe://test")
    port = free_port()
    async with Client(Access("https://10.0.0.1"), "test") as client:
        signer = Signer(client, Issuer(authority.certificate("signer"), authority.key("signer")))
        async with serve_status(f"127.0.0.1:{port}", signer, token_file):
            yield port


@pytest.mark.parametrize("header", HEADERS)
async def test_pages_of_the_operator_are_closed_without_the_token(token_file: Path, header: str) -> None:
    async with operator_pages(token_file) as port:
        responses = {path: await request(port, path, header) for path in PATHS}
    # 400: a request with two Authorization headers is malformed.
    opened = {path for path, each in responses.items() if each.status not in {400, 401}}
    assert opened <= PROBES
    assert not [path for path, each in responses.items() if WORKLOAD in each.text or "pincompute_" in each.text]


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "GETX"])
async def test_no_method_opens_a_page(token_file: Path, method: str) -> None:
    async with operator_pages(token_file) as port:
        assert {(await request(port, path, method=method)).status for path in ("/metrics", HISTORY)} <= {400, 401}


async def test_pages_open_with_the_token_and_probes_without(token_file: Path) -> None:
    async with operator_pages(token_file) as port:
        history = await request(port, HISTORY, f"Authorization: Bearer {TOKEN}")
        metrics = await request(port, "/metrics", f"authorization: bearer  {TOKEN}")
        probes = [await request(port, "/healthz"), await request(port, "/readyz")]
    assert (history.status, metrics.status) == (200, 200)
    assert WORKLOAD in history.text
    assert "pincompute_leader" in metrics.text
    # The cache of this operator is empty, so it is not ready.
    assert [each.status for each in probes] == [200, 503]
    assert not [each for each in probes if WORKLOAD in each.text or PROJECT in each.text]


async def test_rejection_names_the_option_and_not_the_token(token_file: Path) -> None:
    async with operator_pages(token_file) as port:
        rejected = await request(port, "/metrics", "Authorization: Bearer guessed")
    head, _, body = rejected.text.partition("\r\n\r\n")
    assert "WWW-Authenticate: Bearer" in head
    assert "Content-Type: text/plain" in head
    assert body == (
        "token missing or wrong: send the header 'Authorization: Bearer TOKEN' with the token in the file of "
        "--token-file\n"
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "cannot be read: No such file or directory"), ("", "is empty"), (" \n", "is empty")],
)
async def test_pages_stay_closed_while_the_file_has_no_token(token_file: Path, content: str | None, why: str) -> None:
    replace_token(token_file, content)
    async with operator_pages(token_file) as port:
        for header in ("", "Authorization: Bearer", "Authorization: Bearer ", f"Authorization: Bearer {TOKEN}"):
            rejected = await request(port, HISTORY, header)
            assert rejected.status == 401
            assert f"\r\n\r\nno token is accepted: the file of --token-file {why}\nnext: write" in rejected.text
        # A Secret that is created or renewed later takes effect in the running process.
        replace_token(token_file, "renewed")
        assert (await request(port, HISTORY, "Authorization: Bearer renewed")).status == 200


async def test_metrics_of_the_signer_are_closed_without_the_token(token_file: Path, tmp_path: Path) -> None:
    async with signer_pages(token_file, tmp_path / "ca") as port:
        rejected = {(await request(port, "/metrics", header)).status for header in HEADERS}
        opened = await request(port, "/metrics", f"Authorization: Bearer {TOKEN}")
        assert (await request(port, "/healthz")).status == 200
    assert rejected <= {400, 401}
    assert opened.status == 200
    assert "pincompute_signer_queue_length" in opened.text


async def test_metrics_of_an_agent_are_closed_without_the_token(token_file: Path) -> None:
    port = free_port()
    async with serve_health(f"127.0.0.1:{port}", lambda: 1.0, MetricsPage(token_file, RequestStats())):
        rejected = {(await request(port, path, header)).status for header in HEADERS for path in ("/metrics", "/x")}
        opened = await request(port, "/metrics", f"Authorization: Bearer {TOKEN}")
        assert (await request(port, "/healthz")).status == 200
    assert rejected <= {400, 401}
    assert "pincompute_agent_cache_age_seconds 1.0" in opened.text


async def test_agent_without_a_token_has_no_metrics() -> None:
    port = free_port()
    async with serve_health(f"127.0.0.1:{port}", lambda: 1.0):
        assert (await request(port, "/metrics")).status == 404


def test_token_is_in_private_files_and_no_command_line(tmp_path: Path) -> None:
    home = Home("t", tmp_path / "state" / "t")
    authority = Authority(home.certificates)
    authority.establish()
    platform = Platform(home, Programs(tmp_path), authority, choose_ports({}, None), real=True)
    own_services.issue_certificates(platform)
    own_services.write_files(platform)
    token = metrics_token.token_file(home).read_bytes()
    assert len(token) >= 43
    holders = [file for file in home.root.rglob("*") if file.is_file() and token in file.read_bytes()]
    assert {file: file.stat().st_mode & 0o777 for file in holders} == {
        metrics_token.token_file(home): 0o600,
        metrics_token.header_file(home): 0o600,
    }
    parts = {part.name: part for stage in own_services.own_service_stages(platform) for part in stage}
    option = ("--token-file", str(metrics_token.token_file(home)))
    for name in ("operator", "signer", "storage"):
        assert parts[name].command[-2:] == option
    assert f"--metrics-token-file {metrics_token.token_file(home)}" in " ".join(parts["desk"].command)
    described = str([(part.command, part.environment) for part in parts.values()])
    assert token.decode() not in described
    # Scrapers are configured with it, so a later start keeps it.
    own_services.write_files(platform)
    assert metrics_token.token_file(home).read_bytes() == token


@pytest.mark.cluster
def test_pages_of_a_running_platform_need_its_header_file(platform: SharedPlatform) -> None:
    status = platform.status()
    address = next(each["address"] for each in status["parts"] if each["name"] == "operator")
    name, _, value = Path(status["metrics_header"]).read_text().strip().partition(": ")
    for path in ("/metrics", "/history/me"):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}{path}")
        with urllib.request.urlopen(urllib.request.Request(f"{address}{path}", headers={name: value})) as answer:
            assert answer.status == 200
    with urllib.request.urlopen(f"{address}/readyz") as answer:
        assert answer.status == 200
    commands = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert address.rpartition(":")[2] in commands
    assert value.removeprefix("Bearer ") not in commands
