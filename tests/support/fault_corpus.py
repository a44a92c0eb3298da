"""Corpus of faults and healthy states of workloads, as snapshots."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml

from pincompute.api.kinds import KINDS
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.planning.observed_pods import Pod
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Cluster, Native, Snapshot

CORPUS = Path(__file__).parents[1] / "planning" / "diagnosis"
FAULT_FILES = sorted(CORPUS.glob("faults/*.yaml"))
HEALTHY_FILES = sorted(CORPUS.glob("healthy/*.yaml"))
NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
METADATA_FIELDS = ("name", "annotations", "generation", "creationTimestamp", "deletionTimestamp")


def load_fault(file: Path) -> tuple[Snapshot, tuple[Pod, ...]]:
    """The snapshot of a file; fields that it leaves out are those of a service called hello."""
    fields = yaml.safe_load(file.read_text())
    owner = {
        "kind": fields.get("kind", "PinterestService"),
        "metadata": {"name": "hello", "namespace": "me", "uid": "owner-1", "generation": 1},
        "spec": {"image": "hello:dev", **({} if "kind" in fields else {"port": 8080}), **fields.get("spec", {})},
        "status": fields.get("status", {}),
    }
    present = tuple(build_pod(each, f"hello-{number}") for number, each in enumerate(fields.get("pods", ()), 1))
    others = tuple(build_pod(each, f"hello-old-{number}") for number, each in enumerate(fields.get("others", ()), 1))
    snapshot = Snapshot(
        owner=msgspec.convert(owner, KINDS[owner["kind"]]),
        natives=tuple(build_native(each) for each in fields.get("natives", ())),
        pods=present + others,
        cluster=Cluster(name="main", domain="localhost", port=8080),
        now=NOW,
        runtimes=Runtimes.from_resources(
            [msgspec.convert(each, KINDS[each["kind"]]) for each in fields.get("runtimes", ())]
        ),
    )
    return snapshot, present


def build_pod(fields: dict[str, Any], name: str) -> Pod:
    metadata = {"name": name, "namespace": "me", "labels": {WORKLOAD_LABEL: "hello"}} | {
        each: fields.pop(each) for each in METADATA_FIELDS if each in fields
    }
    spec = fields.pop("spec", {})
    status = {"conditions": [{"type": "PodScheduled", "status": "True"}], **fields}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def build_native(fields: dict[str, Any]) -> Native:
    kind = fields.pop("kind")
    metadata = {"name": "hello", "namespace": "me"} | {
        each: fields.pop(each) for each in METADATA_FIELDS if each in fields
    }
    return msgspec.convert({"kind": kind, "metadata": metadata, "status": fields}, Native)
