"""Crash of a new revision: time from the kubelet's report to the output of `pin deploy`, with the last lines."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from bench.figures import PIN, ROOT, Figure, run_command
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.settings import setting_value
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import PODS, Object

NAME = "bench-tell"
CRASHES = 12
REQUEST_INTERVAL_S = 0.02
GOOD = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: web}
spec: {image: "hello:bench", port: 8080}
"""
BAD = GOOD.replace("8080", "8080, command: [sh, -c, 'for i in $(seq 30); do echo line $i; done; exit 3']")
LINES = [f"line {number}" for number in range(11, 31)]
FAILURES = ("[ProgramFailed]", "[CrashLoop]")


class CrashReport(NamedTuple):
    delay_s: float
    failed_requests: int
    """Requests that failed in the meantime, which the old revision should have served."""


def figures() -> Iterator[Figure]:
    run_command(PIN, "up", "--name", NAME)
    try:
        if not json.loads(run_command(PIN, "status", "--name", NAME, "-o", "json"))["nodes"]["real"]:
            return
        run_command(PIN, "image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:bench", "--name", NAME)
        found = asyncio.run(measure_crashes(NAME, CRASHES))
    finally:
        run_command(PIN, "down", "--name", NAME, "--purge")
    times = [each.delay_s for each in found]
    yield Figure("U5.1", f"time to report the crash of a new revision, longest of {CRASHES}", [max(times)], 2)
    yield Figure("tell", "the same, median", times)
    yield Figure(
        "tell.failed", "failed requests in the meantime", [sum(each.failed_requests for each in found)], 0, "requests"
    )


async def measure_crashes(platform: str, crashes: int) -> list[CrashReport]:
    with tempfile.TemporaryDirectory() as folder:
        good, bad = Path(folder) / "good.yaml", Path(folder) / "bad.yaml"
        good.write_text(GOOD)
        bad.write_text(BAD)
        output = run_command(PIN, "deploy", str(good), "--name", platform)
        address = re.search(r"^http://(\S+)", output, re.MULTILINE)[1]  # type: ignore[index]
        async with Client(
            load_kubeconfig(Path(setting_value("state")) / platform / "kubeconfig"), agent="bench"
        ) as client:
            found = []
            for _ in range(crashes):
                found.append(await _crash(client, platform, bad, address))
                run_command(PIN, "deploy", str(good), "--name", platform)
            run_command(PIN, "delete", "web", "--name", platform)
            return found


async def _crash(client: Client, platform: str, bad: Path, address: str) -> CrashReport:
    known = {each["metadata"]["uid"] for each in (await client.list(PODS, "me", labels=f"{WORKLOAD_LABEL}=web")).items}
    observed_at = asyncio.create_task(_wait_for_exit_status(client, known))
    async with _constant_requests(address) as statuses:
        deploying = await asyncio.create_subprocess_exec(
            PIN, "deploy", str(bad), "--name", platform,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert deploying.stdout is not None
        reported_at = 0.0
        lines: list[str] = []
        async for line in deploying.stdout:
            lines.append(line.decode().rstrip())
            if lines[-1].endswith(FAILURES):
                reported_at = time.perf_counter()
        assert await deploying.wait() == 1, lines
    assert [each.rpartition(" | ")[2] for each in lines if each.startswith("  | ") and " | line " in each] == LINES, (
        lines
    )
    return CrashReport(reported_at - await observed_at, sum(each != 200 for each in statuses))


async def _wait_for_exit_status(client: Client, known: set[str]) -> float:
    """Time when the kubelet first reported that a container of a new pod has terminated."""
    async for event in client.watch(PODS, "me", labels=f"{WORKLOAD_LABEL}=web"):
        if event.object["metadata"]["uid"] not in known and any(map(_has_terminated, _containers(event.object))):
            return time.perf_counter()
    raise AssertionError("the watch ended")


def _containers(pod: Object) -> list[Object]:
    found: list[Object] = pod.get("status", {}).get("containerStatuses", [])
    return found


def _has_terminated(container: Object) -> bool:
    return bool(container["state"].get("terminated") or container.get("lastState", {}).get("terminated"))


@asynccontextmanager
async def _constant_requests(address: str) -> AsyncIterator[list[int]]:
    """Sends requests without a pause and collects their statuses."""
    statuses: list[int] = []
    done = asyncio.Event()

    async def send_requests() -> None:
        while not done.is_set():
            statuses.append(await asyncio.to_thread(_get_status, address))
            await asyncio.sleep(REQUEST_INTERVAL_S)

    sending = asyncio.create_task(send_requests())
    yield statuses
    done.set()
    await sending


def _get_status(address: str) -> int:
    connection = HTTPConnection("127.0.0.1", int(address.partition(":")[2] or 80), timeout=5)
    connection.request("GET", "/", headers={"Host": address})
    status = connection.getresponse().status
    connection.close()
    return status
