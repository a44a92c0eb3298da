"""The StatsD sidecar on real sockets: what it accepts, and what a hostile client costs it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from pincompute.agents.statsd import process
from pincompute.agents.statsd.process import MAX_REQUEST_BYTES, StatsdSidecar
from polling import until

WAIT_TIMEOUT_S = 60
LOOPBACK = "127.0.0.1"


@pytest.fixture
def sidecar() -> Iterator[StatsdSidecar]:
    running = StatsdSidecar(0, 0, LOOPBACK)
    threads = [threading.Thread(target=each) for each in (running.receive_datagrams, running.serve_requests)]
    for thread in threads:
        thread.start()
    yield running
    running.close()
    for thread in threads:
        thread.join(WAIT_TIMEOUT_S)
        assert not thread.is_alive()


def send(sidecar: StatsdSidecar, *datagrams: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for datagram in datagrams:
            client.sendto(datagram, (LOOPBACK, sidecar.ports[0]))


def send_head(sidecar: StatsdSidecar, head: bytes) -> bytes:
    with socket.create_connection((LOOPBACK, sidecar.ports[1]), timeout=WAIT_TIMEOUT_S) as client:
        client.sendall(head)
        answer = b""
        while received := client.recv(65_536):
            answer += received
        return answer


def page(sidecar: StatsdSidecar) -> str:
    return send_head(sidecar, b"GET /metrics HTTP/1.1\r\nHost: pod\r\n\r\n").decode()


async def test_datagrams_are_served_as_metrics(sidecar: StatsdSidecar) -> None:
    send(sidecar, b"orders:2|c|#route:home\nrender:20|ms", b"\xff\x00", b"")

    async def all_applied() -> bool:
        return 'statsd_lines_total{result="malformed"} 1' in await asyncio.to_thread(page, sidecar)

    await until(all_applied, within=WAIT_TIMEOUT_S)
    head, _, body = page(sidecar).partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4")
    assert f"Content-Length: {len(body)}\r\n" in head
    assert 'orders_total{route="home"} 2.0\n' in body
    assert 'render_seconds_bucket{le="0.025"} 1.0\n' in body


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"\r\n\r\n"])
def test_other_requests_are_not_found(sidecar: StatsdSidecar, head: bytes) -> None:
    assert send_head(sidecar, head).startswith(b"HTTP/1.1 404 ")
    assert "statsd_series 0" in page(sidecar)


def test_request_without_an_end_is_closed(sidecar: StatsdSidecar) -> None:
    with socket.create_connection((LOOPBACK, sidecar.ports[1]), timeout=WAIT_TIMEOUT_S) as client:
        client.sendall(b"x" * (MAX_REQUEST_BYTES + 1))
        # A reset, if it has not read all of them.
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
    assert "statsd_series 0" in page(sidecar)


def test_silent_client_is_closed_and_the_next_one_answered(
    sidecar: StatsdSidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "REQUEST_TIMEOUT_S", 0.2)
    with socket.create_connection((LOOPBACK, sidecar.ports[1]), timeout=WAIT_TIMEOUT_S) as silent:
        silent.sendall(b"GET /metrics")
        assert "statsd_series 0" in page_with_retry(sidecar)
        assert silent.recv(1) == b""


def page_with_retry(sidecar: StatsdSidecar) -> str:
    """The page; on a busy machine the short timeout of this test may hit the other client as well."""
    while True:
        try:
            if answer := page(sidecar):
                return answer
        except ConnectionResetError:
            continue


def test_process_imports_the_standard_library_and_its_own_package_only() -> None:
    code = "import sys, pincompute.agents.statsd.process; print(*{n.partition('.')[0] for n in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    foreign = {each for each in done.stdout.split() if each not in sys.stdlib_module_names}
    # An editable installation has finders of its own.
    assert {each for each in foreign if not each.startswith(("_", "sitecustomize"))} == {"pincompute"}
