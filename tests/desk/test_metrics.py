"""Metrics of the desk: their counts, their bounds under a hostile tenant, and the access to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from aiohttp import ClientSession
from click.testing import CliRunner
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from pincompute.api.project import Project
from pincompute.api.whoami import SignIn
from pincompute.desk.authn.authenticator import Authenticator
from pincompute.desk.http.server import route_table
from pincompute.desk.limits.middleware import REQUEST_LIMITER
from pincompute.desk.metrics import serve_metrics
from pincompute.desk.process import desk as desk_command
from pincompute.objects.content import Object
from tenant_projects import Believing
from unwatched_desk import PreviewingPlatform, UnwatchedDesk, unwatched_desk

DAN = {"Authorization": "Bearer dan"}
METRICS_TOKEN = "the-token-of-prometheus"
DOCUMENT = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: secret-workload}
spec: {image: hello, port: 8080}
"""


class MeteredDesk(NamedTuple):
    desk: UnwatchedDesk
    address: str

    async def call(self, method: str, path: str, body: str = "", headers: dict[str, str] | None = None) -> int:
        sent = {"Prefer": "respond-async", **(DAN if headers is None else headers)}
        async with self.desk.http.request(method, path, data=body.encode(), headers=sent) as response:
            await response.read()
            return response.status

    async def read_page(self, headers: dict[str, str], path: str = "/metrics") -> tuple[int, str]:
        async with ClientSession() as session, session.get(f"{self.address}{path}", headers=headers) as response:
            return response.status, await response.text()

    async def samples(self) -> dict[tuple[str, tuple[str, ...]], float]:
        """Values by name and labels."""
        status, text = await self.read_page({"Authorization": f"Bearer {METRICS_TOKEN}"})
        assert status == 200
        return {
            (sample.name, tuple(sample.labels[name] for name in sorted(sample.labels))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


def platform_requests() -> Iterable[Metric]:
    yield CounterMetricFamily("pincompute_api_requests", "Requests.", 7)


@pytest.fixture
async def metered(tmp_path: Path) -> AsyncIterator[MeteredDesk]:
    token_file = tmp_path / "token"
    token_file.write_text(METRICS_TOKEN)
    spec: Object = {
        "owner": "team-ads",
        "review": "open",
        "quota": {"on-demand": {}},
        "members": {"deployer": {"people": ["dan"]}},
    }
    project = msgspec.convert({"kind": "Project", "metadata": {"name": "ads"}, "spec": spec}, Project)
    async with unwatched_desk(tmp_path, project, PreviewingPlatform, Authenticator([Believing()])) as opened:
        app: Any = opened.http.app
        async with serve_metrics("127.0.0.1:0", token_file, app, opened.desk, platform_requests) as port:
            yield MeteredDesk(opened, f"http://127.0.0.1:{port}")


async def test_counts_requests_by_route_and_status(metered: MeteredDesk) -> None:
    assert await metered.call("GET", "/healthz") == 200
    assert await metered.call("GET", "/v1/projects/ads/workloads") == 200
    assert await metered.call("GET", "/v1/projects/ads/workloads", headers={}) == 401
    samples, route = await metered.samples(), ("GET", "/v1/projects/{project}/workloads")
    assert samples["pincompute_desk_requests_total", (*route, "200")] == 1
    assert samples["pincompute_desk_requests_total", (*route, "401")] == 1
    assert samples["pincompute_desk_request_duration_seconds_count", route] == 2
    assert samples["pincompute_desk_request_duration_seconds_bucket", ("+Inf", *route)] == 2
    assert samples["pincompute_api_requests_total", ()] == 7


async def test_counts_submissions_by_outcome(metered: MeteredDesk) -> None:
    path = "/v1/projects/ads/submissions"
    assert await metered.call("POST", path, DOCUMENT) == 202
    assert await metered.call("POST", path, DOCUMENT.replace("8080", "many")) == 422
    assert await metered.call("POST", "/v1/projects/none/submissions", DOCUMENT) == 404
    samples = await metered.samples()
    outcomes = {labels: value for (name, labels), value in samples.items() if name.endswith("submissions_total")}
    assert outcomes == {("accepted", ""): 1, ("refused", "DocumentInvalid"): 1}


async def test_counts_queued_requests_and_streams(metered: MeteredDesk) -> None:
    app: Any = metered.desk.http.app
    limiter = app[REQUEST_LIMITER]
    with limiter.streams.enter("a"), limiter.writes.enter("a"), limiter.writes.enter("b") as slot:
        await slot.wait_turn()
        samples = await metered.samples()
    assert samples["pincompute_desk_open_streams", ()] == 1
    queued = {labels: value for (name, labels), value in samples.items() if name == "pincompute_desk_queued_requests"}
    assert queued == {
        ("reads", "running"): 0, ("reads", "waiting"): 0, ("writes", "running"): 1, ("writes", "waiting"): 1,
    }  # fmt: skip


async def flood(metered: MeteredDesk, word: str) -> None:
    """Requests with names, paths, methods and headers that a tenant makes up."""
    for route in route_table(metered.desk.desk, SignIn()):
        path = route.path.replace("{project}", word).replace("{name}", word).replace("{id}", word)
        if "{project}" in route.path:
            await metered.call(route.method, f"{path}?{word}={word}", headers={**DAN, "User-Agent": word})
        await metered.call(route.method, path, headers={"Authorization": f"Basic {word}"})
    await metered.call("POST", "/v1/projects/ads/submissions", DOCUMENT.replace("secret-workload", word))
    for method in ("GET", "PROPFIND", "REPORT", word.upper()):
        for path in (f"/{word}", f"/v1/{word}/{word}", f"/v1//projects/{word}", f"/v1/projects/ads%2f{word}"):
            await metered.call(method, path)


async def test_hostile_tenant_creates_no_series(metered: MeteredDesk) -> None:
    await flood(metered, "first-canary")
    before = set(await metered.samples())
    await flood(metered, "second-canary")
    await flood(metered, "third-canary")
    after = set(await metered.samples())
    assert after == before
    assert not [labels for _, labels in after if any("canary" in label.lower() for label in labels)]
    unknown = [labels for name, labels in after if name == "pincompute_desk_requests_total" and "unknown" in labels]
    assert {labels[:2] for labels in unknown} == {("other", "unknown")}


@pytest.mark.parametrize("authorization", ["", "Bearer dan", f"Bearer {METRICS_TOKEN}x", f"Basic {METRICS_TOKEN}"])
async def test_page_is_closed_without_the_token_of_the_metrics(metered: MeteredDesk, authorization: str) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    for path in ("/metrics", "/unknown", "/healthz/../metrics"):
        status, text = await metered.read_page(headers, path)
        assert status == 401
        assert "pincompute_" not in text


async def test_api_has_no_metrics_page(metered: MeteredDesk) -> None:
    no_headers: dict[str, str] = {}
    for headers, status in ((DAN, 404), (no_headers, 401), ({"Authorization": f"Bearer {METRICS_TOKEN}"}, 404)):
        assert await metered.call("GET", "/metrics", headers=headers) == status


def test_address_without_a_token_file_is_refused(tmp_path: Path) -> None:
    options = ["--database", str(tmp_path / "d"), "--folder", str(tmp_path), "--metrics-listen", "127.0.0.1:0"]
    result = CliRunner().invoke(desk_command, options)
    assert result.exit_code == 2
    assert "--metrics-token-file" in result.output
