"""The operator's HTTP server: health and readiness, metrics, and the pass history of an object."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import aiohttp
import pytest

from control_plane import ControlPlane
from pincompute.controller.cluster_cache import ClusterCache
from pincompute.kube.access import Access
from pincompute.kube.client import Client
from pincompute.operator.health import MAX_CACHE_AGE_S, MAX_PASS_STALL_S, MAX_WATCH_STALL_S
from pincompute.operator.http_server import HttpServer
from pincompute.operator.manager import ControllerManager
from running_operator import TEST_CLUSTER, operated_cluster


async def fetch(server: HttpServer, *paths: str) -> list[tuple[int, str]]:
    port = await server.open("127.0.0.1:0")
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        responses = []
        for path in paths:
            async with session.get(path) as response:
                responses.append((response.status, await response.text()))
    await server.close()
    return responses


async def test_process_without_cluster_is_alive_and_not_ready() -> None:
    responses = await fetch(HttpServer(), "/healthz", "/readyz", "/metrics", "/history/me/web")
    assert [status for status, _ in responses] == [200, 503, 503, 404]


class Case(NamedTuple):
    text_start: str
    healthz: int = 200
    readyz: int = 200
    cache_age_s: float = 1
    watch_stalled_s: float = 1
    loop_stalled_s: float = 0
    complete: bool = True


@pytest.mark.parametrize(
    "case",
    [
        Case("leader; cache 1 s old; 0 passes, 0 queued, 0 failing"),
        Case("leader; cache", readyz=503, complete=False),
        # A restart would not bring the API server back.
        Case("no response from the API server for 301 s", 200, 503, cache_age_s=MAX_CACHE_AGE_S + 1),
        Case("a watch has been stalled for 601 s", 503, 503, watch_stalled_s=MAX_WATCH_STALL_S + 1),
        Case("no pass has ended for 121 s; 0 keys queued", 503, 503, loop_stalled_s=MAX_PASS_STALL_S + 1),
    ],
)
async def test_health_report_and_status_codes(monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    manager = ControllerManager(Client(Access("https://10.0.0.1"), "test"), TEST_CLUSTER)
    monkeypatch.setattr(manager.cache, "ages_s", lambda: {"Pod": case.cache_age_s})
    monkeypatch.setattr(manager.cache, "stalled_for_s", lambda: case.watch_stalled_s)
    monkeypatch.setattr(ClusterCache, "complete", case.complete)
    monkeypatch.setattr(manager.loop, "stalled_for_s", lambda: case.loop_stalled_s)
    server = HttpServer()
    server.manager = manager
    (healthz, text), (readyz, _) = await fetch(server, "/healthz", "/readyz")
    assert (healthz, readyz) == (case.healthz, case.readyz)
    assert text.startswith(case.text_start)


@pytest.mark.cluster
async def test_history_and_metrics_show_passes(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        await operated.write()
        await operated.wait_for_reason("Progressing", 1)
        await operated.wait_settled()
        await operated.write(breakGlass={"until": "2026-01-01T00:00:00Z", "by": "ann"})
        await operated.wait_for_reason("BreakGlassExpired", 2)
        server = HttpServer()
        server.manager = operated.manager
        history, metrics, unknown = await fetch(
            server, f"/history/{operated.project}/hello", "/metrics", "/history/unknown"
        )
    records: list[dict[str, Any]] = json.loads(history[1])
    assert records[0]["triggers"] == ["the owner's spec changed"]
    assert {"Create Deployment/hello", "Create Service/hello"} <= set(records[0]["steps"])
    assert records[0]["outcome"] == "changed"
    assert records[0]["key"] == f"{operated.project}/hello"
    assert unknown[0] == 404
    lines = metrics[1].splitlines()
    assert 'pincompute_reconcile_total{kind="Workload",outcome="changed"} ' in metrics[1]
    assert 'pincompute_reconcile_steps_total{kind="Deployment",verb="Create"} 1.0' in lines
    assert 'pincompute_api_requests_total{code="200",resource="deployments",verb="patch"} 1.0' in lines
    assert "pincompute_leader 1.0" in lines
    assert f'pincompute_unreviewed_workloads{{expired="true",project="{operated.project}"}} 1.0' in lines
    assert any(line.startswith('pincompute_cache_age_seconds{kind="Deployment"}') for line in lines)
    assert any(line.startswith('pincompute_reconcile_duration_seconds_bucket{le="+Inf"}') for line in lines)
