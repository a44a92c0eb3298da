"""Ten minutes of a platform in its desired state, in which the operator must write nothing."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from bench.figures import PIN, Figure, run_command
from pincompute.api.kinds import WORKLOADS
from pincompute.api.names import API_VERSION, CLI_MANAGER
from pincompute.base.settings import setting_value
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.client import Client
from pincompute.kube.errors import NotFound
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.objects.content import Object

NAME = "bench-settled"
MINUTES = 10
QUIET_S = 20.0
"""After this time without a write the platform counts as settled; jobs have finished by then."""
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
    run_command(PIN, "up", "--name", NAME, "--simulated", "--nodes", "3", "--with", "kubeflow")
    try:
        status = json.loads(run_command(PIN, "status", "--name", NAME, "-o", "json"))
        address = next(each["address"] for each in status["parts"] if each["name"] == "operator")
        name, _, value = Path(status["metrics_header"]).read_text().strip().partition(": ")
        metrics = urllib.request.Request(f"{address}/metrics", headers={name: value})
        asyncio.run(_apply())
        before = _wait_until_settled(metrics)
        time.sleep(MINUTES * 60)
        writes = _count_writes(metrics) - before
    finally:
        run_command(PIN, "down", "--name", NAME, "--purge")
    for resource, count in writes.items():
        print(f"writes to {resource}: {count}", flush=True)
    kinds = f"workloads of {len(SPECS)} kinds"
    yield Figure("P4.2", f"writes in {MINUTES} minutes with settled {kinds}", [writes.total()], 0, "")


async def _apply() -> None:
    assert SPECS.keys() == WORKLOADS.keys(), "SPECS must have every kind"
    kubeconfig = Path(setting_value("state")) / NAME / "kubeconfig"
    async with Client(load_kubeconfig(kubeconfig), agent="bench") as client:
        await client.apply({"apiVersion": API_VERSION, **PROJECT}, CUSTOM_RESOURCES["Project"], manager=CLI_MANAGER)
        for kind, spec in SPECS.items():
            project = INFRASTRUCTURE if kind == "PinterestDaemon" else "me"
            metadata = {"name": CUSTOM_RESOURCES[kind].plural.removeprefix("pinterest"), "namespace": project}
            body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": {"image": "none:1", **spec}}
            await _apply_once_namespace_exists(client, body)


async def _apply_once_namespace_exists(client: Client, body: Object) -> None:
    """Retries until the namespace of the new project exists."""
    while True:
        try:
            await client.apply(body, CUSTOM_RESOURCES[body["kind"]], manager=CLI_MANAGER)
        except NotFound:
            await asyncio.sleep(0.2)
        else:
            return


def _wait_until_settled(metrics: urllib.request.Request) -> Counter[str]:
    """Waits until there are no more writes, and returns their counts."""
    before, since = _count_writes(metrics), time.monotonic()
    while time.monotonic() - since < QUIET_S:
        time.sleep(1)
        now = _count_writes(metrics)
        if now != before:
            since = time.monotonic()
        before = now
    return before


def _count_writes(metrics: urllib.request.Request) -> Counter[str]:
    """Write requests by resource, including rejected ones. Lease renewals use another client and are not counted."""
    with urllib.request.urlopen(metrics) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    found: Counter[str] = Counter()
    for family in families:
        for sample in family.samples:
            if sample.name == "pincompute_api_requests_total" and sample.labels["verb"] not in READS:
                found[sample.labels["resource"]] += int(sample.value)
    return found
