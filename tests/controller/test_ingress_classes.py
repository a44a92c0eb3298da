"""A service waits for its ingress class and for the class' controller, on a real API server."""

from __future__ import annotations

import pytest

from control_plane import ControlPlane
from pincompute.kube.resource import INGRESS_CLASSES, INGRESSES
from running_operator import operated_cluster

pytestmark = pytest.mark.cluster

CLASS = "appears-late"


async def test_service_becomes_ready_once_its_class_exists_and_its_controller_serves_it(plane: ControlPlane) -> None:
    async with operated_cluster(plane) as operated:
        # No node runs here: a service without replicas is ready as soon as its address leads to it.
        await operated.write(replicas=0, loadBalancer={"class": CLASS})
        unknown = await operated.wait_for_reason("IngressClassUnknown", 1)
        assert f"no ingress class '{CLASS}'" in unknown.message
        assert unknown.next == "pin edit hello --remove loadBalancer.class"
        ingress_class = {"metadata": {"name": CLASS}, "spec": {"controller": "example.com/late"}}
        await operated.client.apply(ingress_class, INGRESS_CLASSES, manager="test")
        try:
            waiting = await operated.wait_for_reason("Progressing", 1)
            assert "waiting for the ingress to serve hello." in waiting.message
            ingress = await operated.client.get(INGRESSES, "hello", operated.project)
            assert ingress["spec"]["ingressClassName"] == CLASS
            status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
            await operated.client.patch(
                INGRESSES, "hello", operated.project, status, style="merge", manager="late", subresource="status"
            )
            ready = await operated.wait_for_reason("Available", 1)
            assert ready.message == "0 of 0 replicas ready"
            # The address is no manual edit of the Ingress, so that nothing is written because of it.
            await operated.wait_settled()
            assert await operated.client.get(INGRESSES, "hello", operated.project) | {"metadata": {}} == {
                **ingress,
                **status,
                "metadata": {},
            }
        finally:
            await operated.client.delete(INGRESS_CLASSES, CLASS)
        await operated.wait_for_reason("IngressClassUnknown", 1)
