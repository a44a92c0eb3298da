"""A kind of the tests' own, whose fields may hold anything."""

from __future__ import annotations

from pincompute.kube.client import Client
from pincompute.kube.resource import CRDS, Resource
from workloads import established


async def serve_widgets(client: Client, group: str) -> Resource:
    """The API server serves it when this returns."""
    widgets = Resource(f"{group}.test", "v1", "widgets", "Widget")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": widgets.group, "scope": "Namespaced", "names": names, "versions": [version]}
    name = f"widgets.{widgets.group}"
    await client.apply({"metadata": {"name": name}, "spec": spec}, CRDS, manager="test")
    await established(client, name)
    return widgets
