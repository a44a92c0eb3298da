"""Exporters of hostile tenants, scraped by a real Prometheus with the configuration of the platform.

Each exporter is a pod of its own workload. A scrape that exceeds a limit stores nothing, leads nowhere else, and costs
a bounded amount of memory.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from local_prometheus import api_data, local_platform, query, running_prometheus
from pincompute.agents.metrics.targets import scrape_targets
from pincompute.api.metrics_endpoint import TARGETS_PATH
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.http_process import serve_http
from pincompute.base.page_token import token_middlewares
from pincompute.engine import metrics_token
from pincompute.engine.platform import Platform
from pincompute.engine.prometheus import workloads
from polling import until
from scraped_pods import scraped_pod

LOOPBACK = "127.0.0.1"
WAIT_TIMEOUT_S = 240
MAX_PROMETHEUS_BYTES = 2**30
"""Resident memory. A body that was read to its end would be more than that."""
_CHUNK = b"".join(b'endless{at="%d"} 1\n' % at for at in range(2000))
_TEXT = b"Content-Type: text/plain\r\n"

FORGED = b"""\
mine{project="shop",workload="victim",kind="x",revision="x",replica="x",source="x",job="pincompute",instance="x"} 1
mine_old 1 1000
pincompute_leader 7
pincompute:reconcile_duration_seconds:p99 7
up{project="shop"} 0
scrape_samples_scraped 7
ALERTS{alertname="LeaderMissing",alertstate="firing"} 1
"""


class Exporter(NamedTuple):
    answer: Callable[[asyncio.StreamWriter], Awaitable[None]]
    error: str
    """Part of the reason why the target is down; empty for one that is up."""


def response(body: bytes, headers: bytes = _TEXT, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, headers, len(body), body)


def fixed(body: bytes, headers: bytes = _TEXT, status: bytes = b"200 OK") -> Callable[[asyncio.StreamWriter], Any]:
    async def send_response(writer: asyncio.StreamWriter) -> None:
        writer.write(response(body, headers, status))
        await writer.drain()

    return send_response


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n" + _TEXT + b"\r\n")
    while True:
        writer.write(_CHUNK)
        await writer.drain()


async def silent(writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    await asyncio.Event().wait()


def exporters(secret_port: int) -> dict[str, Exporter]:
    elsewhere = f"Location: http://{LOOPBACK}:{secret_port}/metrics\r\n".encode()
    compressed = gzip.compress(_CHUNK * 2000)
    many = b"".join(b'many{at="%d"} 1\n' % at for at in range(1001))
    labels = b",".join(b'l%d="v"' % at for at in range(40))
    return {
        "honest": Exporter(fixed(b"mine 1\n"), ""),
        "forger": Exporter(fixed(FORGED), ""),
        "endless": Exporter(endless, "body size limit exceeded"),
        "silent": Exporter(silent, "deadline exceeded"),
        "long-line": Exporter(fixed(b'long{a="' + b"x" * 10_000_000 + b'"} 1\n'), "body size limit exceeded"),
        "compressed": Exporter(fixed(compressed, _TEXT + b"Content-Encoding: gzip\r\n"), "body size limit exceeded"),
        "many": Exporter(fixed(many), "sample limit exceeded"),
        "labelled": Exporter(fixed(b"labelled{" + labels + b"} 1\n"), "label_limit exceeded"),
        "long-name": Exporter(fixed(b"long{" + b"n" * 200 + b'="v"} 1\n'), "label_name_length_limit exceeded"),
        "long-value": Exporter(fixed(b'long{l="' + b"v" * 600 + b'"} 1\n'), "label_value_length_limit exceeded"),
        "redirect": Exporter(fixed(b"", elsewhere, b"302 Found"), "HTTP status 302"),
        "garbage": Exporter(fixed(b"no metrics\n" * 10), "invalid syntax"),
        "failing": Exporter(fixed(b"mine 1\n", status=b"500 Oops"), "HTTP status 500"),
    }


@asynccontextmanager
async def listening(answer: Callable[[asyncio.StreamWriter], Awaitable[None]]) -> AsyncGenerator[int]:
    """Port of a server that gives every client the same answer."""
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                await answer(writer)
        except asyncio.CancelledError:
            # The end of the test: a stream server reports a cancelled handler as an error.
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks.copy():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Scraped(NamedTuple):
    platform: Platform
    prometheus: asyncio.subprocess.Process
    expected: dict[str, Exporter]
    secret_requests: list[str]

    async def targets(self) -> dict[str, dict[str, Any]]:
        """Targets of the workloads that have been scraped, by workload."""
        found = (await api_data(self.platform, "targets?state=active"))["activeTargets"]
        return {
            each["labels"]["workload"]: each
            for each in found
            if each["scrapePool"] == workloads.JOB and each["health"] != "unknown"
        }


@pytest.fixture
async def scraped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scraped]:
    # A third of the time of production, limits included, for an exporter that never answers.
    monkeypatch.setattr(workloads, "INTERVAL", "5s")
    monkeypatch.setitem(workloads.LIMITS, "scrape_timeout", "5s")
    platform = local_platform(tmp_path)
    secret_requests: list[str] = []

    async def secret(writer: asyncio.StreamWriter) -> None:
        secret_requests.append("asked")
        await fixed(b"secret 1\n")(writer)

    async with AsyncExitStack() as stack:
        expected = exporters(await stack.enter_async_context(listening(secret)))
        ports = {name: await stack.enter_async_context(listening(each.answer)) for name, each in expected.items()}
        await stack.enter_async_context(_discovery(platform, ports))
        prometheus = await stack.enter_async_context(running_prometheus(platform))
        yield Scraped(platform, prometheus, expected, secret_requests)


@asynccontextmanager
async def _discovery(platform: Platform, ports: dict[str, int]) -> AsyncGenerator[None]:
    """The page of the metrics agent, with pods on loopback."""
    pods = [
        scraped_pod(
            name,
            annotation=f"{port}/metrics",
            labels={WORKLOAD_LABEL: name},
            spec={"containers": [{"name": "main", "ports": [{"containerPort": port}]}]},
            podIP=LOOPBACK,
        )
        for name, port in ports.items()
    ]
    targets = [each.to_json() for each in scrape_targets(pods, ip_network("127.0.0.0/8")).chosen]
    application = web.Application(middlewares=token_middlewares(metrics_token.token_file(platform.home)))

    async def serve_targets(_: web.Request) -> web.Response:
        return web.json_response(targets)

    application.router.add_get(TARGETS_PATH, serve_targets)
    async with serve_http(f"{LOOPBACK}:{platform.ports['metrics']}", application, grace=0):
        yield


async def test_hostile_exporters_are_bounded_and_forge_nothing(scraped: Scraped) -> None:
    refused: set[str] = set()
    hostile = {name: each.error for name, each in scraped.expected.items() if each.error}

    async def all_are_refused() -> bool:
        # Remembered, as a scrape on a busy machine may also end for the reason that it took too long.
        for name, target in (await scraped.targets()).items():
            if name in hostile and hostile[name] in target["lastError"]:
                refused.add(name)
        return refused == hostile.keys()

    async def honest_is_up() -> bool:
        return {each["workload"] for each, _ in await query(scraped.platform, "mine")} == {"honest", "forger"}

    await until(all_are_refused, within=WAIT_TIMEOUT_S)
    await until(honest_is_up, within=WAIT_TIMEOUT_S)
    await _assert_nothing_forged(scraped)
    assert scraped.secret_requests == []
    assert await asyncio.to_thread(_peak_memory_bytes, scraped.prometheus.pid) < MAX_PROMETHEUS_BYTES


async def _assert_nothing_forged(scraped: Scraped) -> None:
    platform = scraped.platform
    stored = await query(platform, f'count by (workload, __name__) ({{job="{workloads.JOB}"}})')
    names = {(each["workload"], each["__name__"]) for each, _ in stored}
    own = {name for name in names if name[1] != "up" and not name[1].startswith("scrape_")}
    assert own == {("honest", "mine"), ("forger", "mine"), ("forger", "mine_old")}
    ((labels, _),) = await query(platform, 'mine{workload="forger"}')
    assert labels["project"] == "ads"
    assert (labels["replica"], labels["source"], labels["job"]) == ("forger", "application", workloads.JOB)
    assert (labels["exported_project"], labels["exported_job"]) == ("shop", "pincompute")
    # What the platform itself measures, or would alert on.
    assert await query(platform, "pincompute_leader") == []
    assert await query(platform, '{__name__="pincompute:reconcile_duration_seconds:p99"}') == []
    assert await query(platform, 'up{exported_project="shop"}') == []
    assert await query(platform, 'ALERTS{alertname="LeaderMissing",workload="forger"}') == []


def _peak_memory_bytes(pid: int) -> int:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024
