"""Ten minutes of a platform on which everything is as wanted: what the operator writes meanwhile, which is nothing."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from bench.figures import PIN, Figure, run
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION, HAND
from pincompute.base.settings import setting
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.kubeconfig import load
from pincompute.objects.content import Object

NAME = "bench-settled"
MINUTES = 10
QUIET = 20.0
"""Seconds without a write, after which it counts as settled; what runs to its end has ended by then."""
READS = {"get", "list", "watch"}

INFRASTRUCTURE = "infrastructure"
PROJECT: Object = {
    "kind": "Project",
    "metadata": {"name": INFRASTRUCTURE},
    "spec": {"owner": INFRASTRUCTURE, "review": "open", "quota": {"infrastructure": {}, "on-demand": {"pods": 100}}},
}
SPECS: dict[str, Object] = {
    "PinterestService": {"port": 8080, "replicas": 3, "configuration": {"a.txt": "b"}},
    "PinterestStatefulSet": {"port": 8080, "replicas": 2, "storage": "1Mi"},
    "PinterestDaemon": {"port": 8080},
    "PinterestCronJob": {"schedule": "30 3 1 1 *"},
    "PinterestJobSet": {"tasks": 3},
    "PinterestTrainingJob": {"command": ["true"], "workers": 2},
}


def figures() -> Iterator[Figure]:
    run(PIN, "up", "--name", NAME, "--simulated", "--nodes", "3", "--with", "kubeflow")
    try:
        parts = json.loads(run(PIN, "status", "--name", NAME, "-o", "json"))["parts"]
        door = next(each["address"] for each in parts if each["name"] == "operator")
        asyncio.run(_apply())
        before = _settled(door)
        time.sleep(MINUTES * 60)
        written = _written(door) - before
    finally:
        run(PIN, "down", "--name", NAME, "--purge")
    for resource, count in written.items():
        print(f"written: {count} of {resource}", flush=True)
    kinds = f"workloads of {len(SPECS)} kinds"
    yield Figure("P4.2", f"writes in {MINUTES} minutes in which {kinds} are settled", [written.total()], 0, "")


async def _apply() -> None:
    assert SPECS.keys() == WORKLOADS.keys(), "a kind is left out"
    kubeconfig = Path(setting("state")) / NAME / "kubeconfig"
    async with Client(load(kubeconfig), agent="bench") as client:
        await client.apply({"apiVersion": API_VERSION, **PROJECT}, NOUNS["Project"], manager=HAND)
        for kind, spec in SPECS.items():
            project = INFRASTRUCTURE if kind == "PinterestDaemon" else "me"
            metadata = {"name": NOUNS[kind].plural.removeprefix("pinterest"), "namespace": project}
            body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": {"image": "none:1", **spec}}
            await _as_soon_as_there(client, body)


async def _as_soon_as_there(client: Client, body: Object) -> None:
    """A project was made just now, and its namespace comes a little later."""
    while True:
        try:
            await client.apply(body, NOUNS[body["kind"]], manager=HAND)
        except NotFound:
            await asyncio.sleep(0.2)
        else:
            return


def _settled(door: str) -> Counter[str]:
    """What was written until nothing more was."""
    before, since = _written(door), time.monotonic()
    while time.monotonic() - since < QUIET:
        time.sleep(1)
        now = _written(door)
        if now != before:
            since = time.monotonic()
        before = now
    return before


def _written(door: str) -> Counter[str]:
    """By resource, what was refused too; the lease is renewed by a client of its own, and is no part of it."""
    with urllib.request.urlopen(f"{door}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    found: Counter[str] = Counter()
    for family in families:
        for sample in family.samples:
            if sample.name == "pincompute_api_requests_total" and sample.labels["verb"] not in READS:
                found[sample.labels["resource"]] += int(sample.value)
    return found
