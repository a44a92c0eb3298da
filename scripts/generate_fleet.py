"""Generates random workloads and runtimes from a seed: `python scripts/generate_fleet.py 200 FOLDER`."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

API = "pinterest.com/v1"
TEAMS = ("ads", "boards", "edge", "feed", "images", "search")
TIERS = ("reserved", "on-demand", "on-demand", "preemptible")
LEVEL = {"description": "How much it prints.", "allowed": ["debug", "info"], "default": "info", "variable": "LOG_LEVEL"}


def runtimes() -> Iterator[dict[str, Any]]:
    """Runtime 42 is current; 43 has the next image of logs, and a new part for services of the reserved tier."""
    identity = {
        "volumes": [{"name": "identity", "emptyDir": {"medium": "Memory"}}],
        "mounts": [{"name": "identity", "mountPath": "/run/identity", "readOnly": True}],
        "environment": {"IDENTITY_FOLDER": "/run/identity"},
        "image": "identity:1.4",
    }
    mesh = {"image": "mesh:1.0", "port": 15001, "serves": {"kinds": ["PinterestService"], "tiers": ["reserved"]}}
    yield document("PinterestSidecar", {"name": "identity-1"}, identity)
    yield document("PinterestSidecar", {"name": "logs-2"}, {"image": "logs:2.0", "parameters": {"level": LEVEL}})
    yield document("PinterestSidecar", {"name": "logs-3"}, {"image": "logs:3.0", "parameters": {"level": LEVEL}})
    yield document("PinterestSidecar", {"name": "mesh-1"}, mesh)
    yield document("Runtime", {"name": "41"}, {"parts": ["identity-1"]})
    yield document("Runtime", {"name": "42"}, {"parts": ["identity-1", "logs-2"]})
    yield document("Runtime", {"name": "43"}, {"parts": ["identity-1", "logs-3", "mesh-1"]})


def workloads(count: int, seed: int = 1) -> Iterator[dict[str, Any]]:
    random_ = random.Random(seed)
    for number in range(count):
        team, tier = random_.choice(TEAMS), random_.choice(TIERS)
        name = {"name": f"{random_.choice(('web', 'api', 'rank', 'sync'))}-{number}", "project": team}
        spec: dict[str, Any] = {"image": f"{team}:{random_.randint(1, 9)}.0", "owner": f"team-{team}", "tier": tier}
        if random_.random() < 0.1:
            spec["hold"] = {"runtime": random_.choice((41, 42)), "until": "2099-12-31"}
        if random_.random() < 0.2:
            spec["sidecarConfig"] = {"logs": {"level": random_.choice(("debug", "info"))}}
        kind = random_.choice(("PinterestService", "PinterestService", "PinterestStatefulSet", "PinterestJobSet"))
        if kind == "PinterestJobSet":
            yield document(kind, name, {**spec, "tasks": random_.randint(1, 40)})
        else:
            port = 15001 if random_.random() < 0.06 else 8080
            yield document(kind, name, {**spec, "port": port, "replicas": random_.randint(1, 40)})


def document(kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


def write(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "runtimes.yaml").write_text(yaml.safe_dump_all(runtimes(), sort_keys=False))
    for workload in workloads(count):
        metadata = workload["metadata"]
        file = folder / f"{metadata['project']}-{metadata['name']}.yaml"
        file.write_text(yaml.safe_dump(workload, sort_keys=False))


if __name__ == "__main__":
    write(Path(sys.argv[2]), int(sys.argv[1]))
