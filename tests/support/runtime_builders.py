"""Builders of workloads, parts and runtimes for tests."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from pincompute.api.custom_resource import CustomResource
from pincompute.api.kinds import KINDS
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Cluster, Snapshot

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
CLUSTER = Cluster(name="main", domain="localhost", port=8080)
DONE_AT = "2026-01-01T00:00:00Z"


def build_resource(document: dict[str, Any]) -> Any:
    """Decode a document as it would be in the cluster, where the project is the namespace."""
    metadata = {"namespace": document["metadata"].get("project", "me"), **document["metadata"]}
    return msgspec.convert({**document, "metadata": metadata}, KINDS[document["kind"]])


def build_service(name: str = "hello", uid: str = "", status: dict[str, Any] | None = None, **spec: Any) -> Any:
    metadata = {"name": name, "uid": uid, "generation": 1}
    whole = {"image": "hello:dev", "port": 8080, **spec}
    return build_resource({"kind": "PinterestService", "metadata": metadata, "spec": whole, "status": status or {}})


def build_part(name: str, **spec: Any) -> Any:
    return build_resource(
        {"kind": "PinterestSidecar", "metadata": {"name": name}, "spec": spec or {"image": f"{name}:1"}}
    )


def build_runtime(number: int, *parts: str, roll: dict[str, Any] | None = None, **status: Any) -> Any:
    """Build a Runtime as it is in a cluster."""
    spec: dict[str, Any] = {"parts": list(parts)} | ({} if roll is None else {"roll": roll})
    metadata = {"name": str(number), "uid": f"runtime-{number}", "generation": 1}
    return build_resource({"kind": "Runtime", "metadata": metadata, "spec": spec, "status": status})


def build_runtimes(*resources: CustomResource) -> Runtimes:
    return Runtimes.from_resources(resources)


def build_snapshots(owners: Iterable[CustomResource], runtimes: Runtimes) -> list[Snapshot]:
    return [Snapshot(owner, (), (), CLUSTER, NOW, None, runtimes) for owner in owners]
