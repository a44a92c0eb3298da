"""Hosts of services at the desk: which project may have which, and what stays possible after a host is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane import ControlPlane
from pincompute.api.names import OPERATOR
from pincompute.controller.resources import CUSTOM_RESOURCES
from tenant_projects import TenantProjects, tenant_projects
from workloads import HELLO

pytestmark = pytest.mark.cluster

SERVICES = CUSTOM_RESOURCES["PinterestService"]


def hello_at(host: str) -> str:
    return HELLO.replace("port: 8080", f"port: 8080, loadBalancer: {{host: {host}}}")


async def report_address(here: TenantProjects, project: str, host: str) -> None:
    """Report the host as the address of the service, as the operator does, and wait until the desk has seen it."""
    change = {"status": {"address": f"http://{host}:8080"}}
    client = here.world.client
    await client.patch(SERVICES, "hello", project, change, style="merge", manager=OPERATOR, subresource="status")


async def test_custom_host_needs_the_list_of_the_project(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path, {"hosts": ["a.ads.example", "*.b.example"]}) as here:
        assert (await here.deploy("dan", here.ads, hello_at("a.ads.example"))).status == 201
        assert (await here.deploy("dan", here.ads, hello_at("x.b.example"))).status == 201
        for host, status, reason in (
            ("c.example", 403, "HostNotListed"),
            (f"hello.{here.search}.localhost", 409, "HostTaken"),
            ("localhost", 403, "HostReserved"),
        ):
            told = await here.deploy("dan", here.ads, hello_at(host))
            assert (told.status, told.reason) == (status, reason), host
            assert f"the host {host}" in told.body["errors"][0]["detail"]
        told = await here.deploy("otto", here.search, hello_at("a.ads.example"))
        assert (told.status, told.reason) == (409, "HostTaken")
        assert told.body["errors"][0]["detail"] == f"the host a.ads.example was given to project {here.ads}"


async def test_service_that_lost_its_host_can_be_scaled(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path, {"hosts": ["a.ads.example"]}) as here:
        client = here.world.client
        # Written when there were no lists of hosts.
        service = {
            "apiVersion": "pinterest.com/v1",
            "kind": "PinterestService",
            "metadata": {"name": "hello", "namespace": here.search},
            "spec": {"image": "hello:dev", "port": 8080, "loadBalancer": {"host": "a.ads.example"}},
        }
        await client.create(SERVICES, service, manager="kubectl")
        await report_address(here, here.search, "a.ads.example")
        assert (await here.deploy("dan", here.ads, hello_at("a.ads.example"))).status == 201
        told = await here.deploy("otto", here.search, hello_at("a.ads.example"))
        assert (told.status, told.reason) == (409, "HostTaken")
        path = f"/projects/{here.search}/workloads/hello/changes"
        told = await here.request("otto", "POST", path, {"change": "scale", "replicas": 3})
        assert told.status == 200, told
