"""Annotations and issuers of Ingresses at the desk, and at the API server for services that are written past it."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_plane import ControlPlane
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.errors import Invalid
from tenant_projects import tenant_projects
from workloads import HELLO

pytestmark = pytest.mark.cluster

TIMEOUT = "nginx.ingress.kubernetes.io/proxy-read-timeout"
SNIPPET = "nginx.ingress.kubernetes.io/server-snippet"
GRANTS = {"ingress": {"annotations": [TIMEOUT], "issuers": {"letsencrypt": "ClusterIssuer"}}}


def hello_behind(balancer: str) -> str:
    return HELLO.replace("port: 8080", f"port: 8080, loadBalancer: {balancer}")


async def test_desk_and_api_server_refuse_what_is_closed(plane: ControlPlane, tmp_path: Path) -> None:
    async with tenant_projects(plane, tmp_path, GRANTS) as here:
        opened = hello_behind(f'{{issuer: letsencrypt, annotations: {{{TIMEOUT}: "60"}}}}')
        for balancer, what in (
            ("{annotations: {example.com/a: b}}", "annotation example.com/a is not open to project"),
            ("{issuer: other}", "issuer other is not open to project"),
        ):
            told = await here.deploy("dan", here.ads, hello_behind(balancer))
            assert (told.status, told.reason) == (403, "Forbidden"), balancer
            assert what in told.body["errors"][0]["detail"]
        told = await here.deploy("dan", here.ads, hello_behind(f"{{annotations: {{{SNIPPET}: return 200}}}}"))
        assert f"the Ingress cannot have the annotation {SNIPPET}" in told.body["errors"][0]["detail"]
        # What one project opens is closed in the others.
        assert (await here.deploy("otto", here.search, opened)).reason == "Forbidden"
        assert (await here.deploy("dan", here.ads, opened)).status == 201
        many = {
            "apiVersion": "pinterest.com/v1",
            "kind": "PinterestService",
            "metadata": {"name": "many", "namespace": here.ads},
            "spec": {
                "image": "hello:dev",
                "port": 8080,
                "loadBalancer": {"annotations": {f"example.com/a{number}": "x" for number in range(1000)}},
            },
        }
        with pytest.raises(Invalid) as refused:
            await here.world.client.create(CUSTOM_RESOURCES["PinterestService"], many, manager="kubectl")
        assert "at most 32" in refused.value.message
