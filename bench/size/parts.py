"""Processor time and memory of a platform's processes, sampled while they run, and what its servers count."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from bench.accounting import resident_bytes, used_s
from bench.figures import PIN, run_command
from pincompute.base.settings import setting_value
from pincompute.engine.home import home_of
from pincompute.engine.record import read_record
from pincompute.kube.client import Client

_INTERVAL_S = 1.0
_STORED_OBJECTS, _STORED_BYTES = "apiserver_storage_objects", "apiserver_storage_size_bytes"
_BYTES_BY_RESOURCE = "apiserver_resource_size_estimate_bytes"


class PartSampler:
    """Sums up the processor time of each part, also over restarts, and keeps the largest resident size."""

    def __init__(self, platform: str) -> None:
        self._platform = platform
        self._used_by_pid: dict[int, float] = {}
        self.cpu_s: defaultdict[str, float] = defaultdict(float)
        self.peak_bytes: dict[str, int] = {}

    async def run(self) -> None:
        while True:
            self.sample()
            await asyncio.sleep(_INTERVAL_S)

    def sample(self) -> None:
        for part, pid in pids_of_parts(self._platform).items():
            try:
                used, resident = used_s(pid), resident_bytes(pid)
            except (FileNotFoundError, ProcessLookupError, StopIteration):
                continue  # It has just ended.
            self.cpu_s[part] += used - self._used_by_pid.get(pid, 0.0)
            self._used_by_pid[pid] = used
            self.peak_bytes[part] = max(resident, self.peak_bytes.get(part, 0))


def pids_of_parts(platform: str) -> dict[str, int]:
    record = read_record(home_of(platform, Path(setting_value("state"))))
    return {name: each.pid for name, each in record.processes.items()} if record else {}


def kill_part(platform: str, part: str) -> None:
    """Kills its process. The supervisor starts it again."""
    os.kill(pids_of_parts(platform)[part], signal.SIGKILL)


class RequestCounter:
    """Requests of the operator by verb and resource, over its restarts if it is read before each."""

    def __init__(self, platform: str) -> None:
        status = json.loads(run_command(PIN, "status", "--name", platform, "-o", "json"))
        address = next(each["address"] for each in status["parts"] if each["name"] == "operator")
        name, _, value = Path(status["metrics_header"]).read_text().strip().partition(": ")
        self._metrics = urllib.request.Request(f"{address}/metrics", headers={name: value})
        self._before = self._read()

    def since_last_read(self, *, restarts: bool = False) -> Counter[str]:
        now = self._read()
        requests = now - self._before
        self._before = Counter() if restarts else now
        return requests

    def _read(self) -> Counter[str]:
        with urllib.request.urlopen(self._metrics) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        return Counter(
            {
                f"{sample.labels['verb']} {sample.labels['resource']} {sample.labels['code']}": int(sample.value)
                for family in families
                for sample in family.samples
                if sample.name == "pincompute_api_requests_total"
            }
        )


class Store(NamedTuple):
    """What the API server has stored: objects and, estimated, bytes of each resource."""

    bytes: int
    objects: dict[str, int]
    bytes_by_resource: dict[str, int]


async def read_store(client: Client) -> Store:
    text = (await client.raw("GET", "/metrics")).decode()
    found: dict[str, dict[str, int]] = {_STORED_OBJECTS: {}, _STORED_BYTES: {}, _BYTES_BY_RESOURCE: {}}
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        if name in found:
            labels, _, value = rest.rpartition("} ")
            resource = next((each[10:-1] for each in labels.split(",") if each.startswith("resource=")), "")
            found[name][resource] = int(float(value))
    return Store(
        sum(found[_STORED_BYTES].values()), _largest(found[_STORED_OBJECTS]), _largest(found[_BYTES_BY_RESOURCE])
    )


def _largest(values: dict[str, int], count: int = 12) -> dict[str, int]:
    return dict(Counter(values).most_common(count))
