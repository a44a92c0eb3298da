"""Metrics of a program on a real node: from its file by discovery into a real Prometheus, with its use of resources."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_network
from pathlib import Path

import pytest
from aiohttp import web

from busybox import IMAGE, TEMPLATE
from cli_user import CliUser
from local_prometheus import local_platform, query, running_prometheus
from pincompute.agents.metrics.process import MetricsAgent
from pincompute.api.names import ENGINE, METRICS_NAMESPACE_LABEL, WORKLOAD_LABEL
from pincompute.base.http_process import serve_http
from pincompute.base.page_token import token_middlewares
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine import metrics_token
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import NAMESPACES, PODS, Object
from polling import until
from real_platform import kubectl, wait_until

pytestmark = pytest.mark.cluster

WAIT_TIMEOUT_S = 240
SHOP = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: shop, project: {project}}}
spec:
  image: {image}
  command: [sh, -c, 'trap exit TERM; for at in 8080 9102; do httpd -p $at -h /etc/configuration; done; sleep 1d & wait']
  configuration:
    index.html: shop
    metrics: |
      orders_total{{project="forged"}} 7
      pincompute_leader 1
  port: 8080
  metrics: 9102
  template: {template}
"""


@pytest.fixture
async def project(real_platform: Platform, client: Client, tmp_path: Path) -> AsyncIterator[str]:
    """A project with the service `shop`, which serves metrics."""
    name = f"metered-{secrets.token_hex(3)}"
    projects, services = CUSTOM_RESOURCES["Project"], CUSTOM_RESOURCES["PinterestService"]
    spec: Object = {"owner": "team", "review": "open", "quota": {"on-demand": {}}}
    await client.apply({"metadata": {"name": name}, "spec": spec}, projects, manager=ENGINE)
    await wait_until(client, projects, "", _is_ready, name)
    (tmp_path / "shop.yaml").write_text(SHOP.format(project=name, image=IMAGE, template=TEMPLATE))
    await CliUser(real_platform, tmp_path).pin("deploy", "shop.yaml")
    yield name
    await client.delete(services, "shop", name)
    await client.delete(projects, name)


def _is_ready(resource: Object) -> bool:
    conditions = resource.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@asynccontextmanager
async def serving_agent(real: Platform, scraper: Platform, client: Client) -> AsyncGenerator[None]:
    """The metrics agent at the address from which this Prometheus reads its targets."""
    agent = MetricsAgent(client, ip_network(real.pod_range))
    application = web.Application(middlewares=token_middlewares(metrics_token.token_file(scraper.home)))
    application.add_routes(agent.routes())
    watching = asyncio.create_task(agent.run())
    try:
        async with serve_http(f"127.0.0.1:{scraper.ports['metrics']}", application, grace=0):
            yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def test_program_and_its_use_are_scraped(
    real_platform: Platform, client: Client, project: str, tmp_path: Path
) -> None:
    scraper = local_platform(tmp_path)
    async with serving_agent(real_platform, scraper, client), running_prometheus(scraper):
        expected = {"project": project, "workload": "shop", "kind": "PinterestService"}
        scraped = await _series_of(scraper, f'orders_total{{project="{project}"}}')
        used = await _series_of(scraper, f'pincompute_workload_memory_bytes{{project="{project}"}}')
        burnt = await _series_of(scraper, f'pincompute_workload_cpu_seconds_total{{project="{project}"}}')
        (pod,) = (await client.list(PODS, project, labels=f"{WORKLOAD_LABEL}=shop")).items
        for labels in (scraped, used, burnt):
            assert expected.items() <= labels.items()
            assert labels["replica"] == pod["metadata"]["name"]
        assert scraped["revision"] == used["revision"]
        assert (scraped["source"], scraped["exported_project"]) == ("application", "forged")
        assert await query(scraper, f'pincompute_leader{{project="{project}"}}') == []


async def _series_of(scraper: Platform, expression: str) -> dict[str, str]:
    """Labels of the first series of the expression, which appears with one of the next scrapes."""
    found: list[dict[str, str]] = []

    async def is_there() -> bool:
        found[:] = [labels for labels, _ in await query(scraper, expression)]
        return bool(found)

    await until(is_there, within=WAIT_TIMEOUT_S)
    return found[0]


async def test_scraper_in_the_cluster_reaches_the_metrics_and_no_other_port(
    real_platform: Platform, client: Client, project: str
) -> None:
    scraper = f"scraper-{secrets.token_hex(3)}"
    namespace: Object = {"metadata": {"name": scraper, "labels": {METRICS_NAMESPACE_LABEL: "true"}}}
    await client.create(NAMESPACES, namespace, manager=ENGINE)
    try:
        await kubectl(
            real_platform, "run", "--namespace", scraper, "scraper", f"--image={await _image(client, project)}",
            "--image-pull-policy=IfNotPresent", f"--overrides={_OVERRIDES}", "--command", "--", "sleep", "1d",
        )  # fmt: skip
        await wait_until(client, PODS, scraper, _is_ready, "scraper")
        (pod,) = (await client.list(PODS, project, labels=f"{WORKLOAD_LABEL}=shop")).items
        address = pod["status"]["podIP"]

        async def fetched(port: int) -> str:
            shell = f"timeout 30 wget -qO- http://{address}:{port}/metrics 2>&1 || true"
            return await kubectl(real_platform, "exec", "--namespace", scraper, "scraper", "--", "sh", "-c", shell)

        async def metrics_are_reached() -> bool:
            return "orders_total" in await fetched(9102)

        # The rules of a new pod come a moment after its start.
        await until(metrics_are_reached, within=WAIT_TIMEOUT_S)
        assert "Connection refused" in await fetched(8080)
    finally:
        await client.delete(NAMESPACES, scraper)


_OVERRIDES = (
    '{"spec": {"terminationGracePeriodSeconds": 0, "securityContext": {"runAsUser": 1000, "runAsNonRoot": true}}}'
)


async def _image(client: Client, project: str) -> str:
    """The image of the service, as the node pulls it."""
    (pod,) = (await client.list(PODS, project, labels=f"{WORKLOAD_LABEL}=shop")).items
    return str(pod["spec"]["containers"][0]["image"])
