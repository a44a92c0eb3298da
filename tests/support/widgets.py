"""A custom resource for tests, without a schema."""

from __future__ import annotations

from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS, Resource
from workloads import wait_until_established


async def define_widgets(client: Client, group: str) -> Resource:
    """Apply the CRD; return when the API server serves it."""
    widgets = Resource(f"{group}.test", "v1", "widgets", "Widget")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": widgets.group, "scope": "Namespaced", "names": names, "versions": [version]}
    name = f"widgets.{widgets.group}"
    await client.apply({"metadata": {"name": name}, "spec": spec}, CRDS, manager="test")
    await wait_until_established(client, name)
    return widgets
