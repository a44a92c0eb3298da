"""Workloads, parts and runtimes as tests write them: by a few words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from pincompute.api.kinds import KINDS
from pincompute.api.noun import Noun
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Cluster, Snapshot

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
CLUSTER = Cluster(name="main", domain="localhost", port=8080)
DONE = "2026-01-01T00:00:00Z"


def noun(document: dict[str, Any]) -> Any:
    """As the cluster would hold it: the project is the namespace."""
    metadata = {"namespace": document["metadata"].get("project", "me"), **document["metadata"]}
    return msgspec.convert({**document, "metadata": metadata}, KINDS[document["kind"]])


def service(name: str = "hello", uid: str = "", status: dict[str, Any] | None = None, **spec: Any) -> Any:
    metadata = {"name": name, "uid": uid, "generation": 1}
    whole = {"image": "hello:dev", "port": 8080, **spec}
    return noun({"kind": "PinterestService", "metadata": metadata, "spec": whole, "status": status or {}})


def part(name: str, **spec: Any) -> Any:
    return noun({"kind": "PinterestSidecar", "metadata": {"name": name}, "spec": spec or {"image": f"{name}:1"}})


def runtime(number: int, *parts: str, roll: dict[str, Any] | None = None, **status: Any) -> Any:
    """In a cluster."""
    spec: dict[str, Any] = {"parts": list(parts)} | ({} if roll is None else {"roll": roll})
    metadata = {"name": str(number), "uid": f"runtime-{number}", "generation": 1}
    return noun({"kind": "Runtime", "metadata": metadata, "spec": spec, "status": status})


def runtimes(*nouns: Noun) -> Runtimes:
    return Runtimes.of(nouns)


def snapshots(owners: Iterable[Noun], known: Runtimes) -> list[Snapshot]:
    return [Snapshot(owner, (), (), CLUSTER, NOW, None, known) for owner in owners]
