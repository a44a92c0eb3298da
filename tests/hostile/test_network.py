"""A tenant with a shell in a pod tries to reach the pods of another project, on a real node."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from busybox import IMAGE, TEMPLATE
from cli_user import CliUser
from pincompute.api.names import ENGINE, WORKLOAD_LABEL
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine import processes
from pincompute.engine.platform import Platform
from pincompute.engine.processes import Process
from pincompute.engine.record import read_record
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, Object
from polling import until
from real_platform import WAIT_TIMEOUT_S, kubectl, wait_until

pytestmark = pytest.mark.cluster

WEB = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: web, project: {project}}}
spec:
  image: {image}
  command: [sh, -c, 'trap exit TERM; httpd -f -p 8080 -h /etc/configuration & wait']
  configuration: {{index.html: {project}}}
  port: 8080
  template: {template}
"""


class Tenants(NamedTuple):
    """Projects `ads` and `shop`, each with the service `web`. Eve has a shell in a pod of `shop`."""

    platform: Platform
    client: Client
    ads: str
    shop: str

    async def pod(self, project: str) -> Object:
        (pod,) = (await self.client.list(PODS, project, labels=f"{WORKLOAD_LABEL}=web")).items
        return pod

    async def get(self, project: str, url: str) -> str:
        """What `wget` prints in the pod of a project."""
        name = (await self.pod(project))["metadata"]["name"]
        shell = f"timeout 10 wget -qO- http://{url}/ 2>&1 || true"
        return await kubectl(self.platform, "exec", "--namespace", project, name, "-c", "web", "--", "sh", "-c", shell)


@pytest.fixture
async def tenants(real_platform: Platform, client: Client, tmp_path: Path) -> AsyncIterator[Tenants]:
    names = [f"{name}-{secrets.token_hex(3)}" for name in ("ads", "shop")]
    projects, services = CUSTOM_RESOURCES["Project"], CUSTOM_RESOURCES["PinterestService"]
    spec: Object = {"owner": "team", "review": "open", "quota": {"on-demand": {}}}
    for name in names:
        await client.apply({"metadata": {"name": name}, "spec": spec}, projects, manager=ENGINE)
        await wait_until(client, projects, "", _is_ready, name)
    user = CliUser(real_platform, tmp_path)
    for name in names:
        (tmp_path / f"{name}.yaml").write_text(WEB.format(project=name, image=IMAGE, template=TEMPLATE))
    await asyncio.gather(*(user.pin("deploy", f"{name}.yaml") for name in names))
    yield Tenants(real_platform, client, *names)
    for name in names:
        await client.delete(services, "web", name)
        await client.delete(projects, name)


async def test_tenant_reaches_no_pod_of_another_project(tenants: Tenants) -> None:
    address = (await tenants.pod(tenants.ads))["status"]["podIP"]
    targets = [f"{address}:8080", f"web.{tenants.ads}"]
    for target in targets:
        assert "Connection refused" in await tenants.get(tenants.shop, target), target
    # The same addresses answer inside the project, and Eve reaches her own.
    assert [await tenants.get(tenants.ads, target) for target in targets] == [tenants.ads] * 2
    assert await tenants.get(tenants.shop, f"web.{tenants.shop}") == tenants.shop


async def test_named_callers_reach_the_project(tenants: Tenants) -> None:
    await _name_caller(tenants)
    await until(lambda: _reaches(tenants), within=WAIT_TIMEOUT_S)


async def test_policies_are_enforced_while_the_agent_is_down_and_after_its_restart(tenants: Tenants) -> None:
    before = _agent(tenants.platform)
    processes.send_signal(before, signal.SIGKILL)
    assert not await _reaches(tenants)

    async def restarted() -> bool:
        return _agent(tenants.platform).pid != before.pid

    await until(restarted, within=WAIT_TIMEOUT_S)
    assert not await _reaches(tenants)
    await _name_caller(tenants)
    await until(lambda: _reaches(tenants), within=WAIT_TIMEOUT_S)


async def _name_caller(tenants: Tenants) -> None:
    body: Object = {"spec": {"callers": [tenants.shop]}}
    await tenants.client.patch(CUSTOM_RESOURCES["Project"], tenants.ads, "", body, style="merge", manager="test")


async def _reaches(tenants: Tenants) -> bool:
    """Whether Eve's pod reaches the service of `ads`; otherwise the connection is refused at once."""
    answer = await tenants.get(tenants.shop, f"web.{tenants.ads}")
    assert answer == tenants.ads or "Connection refused" in answer
    return answer == tenants.ads


def _agent(platform: Platform) -> Process:
    record = read_record(platform.home)
    assert record is not None
    return record.processes["network"]


def _is_ready(project: Object) -> bool:
    conditions = project.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
