"""A next revision that crashes: from when the kubelet shows it to when its deployer is told, with its last lines."""

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

from bench.figures import PIN, ROOT, Figure, run
from pincompute.api.names import WORKLOAD
from pincompute.base.settings import setting
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import PODS, Object

NAME = "bench-tell"
CRASHES = 12
PAUSE = 0.02
GOOD = """\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {name: web}
spec: {image: "hello:bench", port: 8080}
"""
BAD = GOOD.replace("8080", "8080, command: [sh, -c, 'for i in $(seq 30); do echo line $i; done; exit 3']")
LINES = [f"line {number}" for number in range(11, 31)]
FAILURES = ("[ProgramFailed]", "[CrashLoop]")


class Told(NamedTuple):
    seconds: float
    failed: int
    """Requests that the old revision did not answer meanwhile."""


def figures() -> Iterator[Figure]:
    run(PIN, "up", "--name", NAME)
    try:
        if not json.loads(run(PIN, "status", "--name", NAME, "-o", "json"))["nodes"]["real"]:
            return
        run(PIN, "image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:bench", "--name", NAME)
        found = asyncio.run(measured(NAME, CRASHES))
    finally:
        run(PIN, "down", "--name", NAME, "--purge")
    times = [each.seconds for each in found]
    yield Figure("U5.1", f"a crash of a next revision is told, the longest of {CRASHES}", [max(times)], 2)
    yield Figure("tell", "the same, median", times)
    yield Figure("tell.failed", "requests that failed meanwhile", [sum(each.failed for each in found)], 0, "requests")


async def measured(platform: str, crashes: int) -> list[Told]:
    with tempfile.TemporaryDirectory() as folder:
        good, bad = Path(folder) / "good.yaml", Path(folder) / "bad.yaml"
        good.write_text(GOOD)
        bad.write_text(BAD)
        said = run(PIN, "deploy", str(good), "--name", platform)
        address = re.search(r"^http://(\S+)", said, re.MULTILINE)[1]  # type: ignore[index]
        async with Client(load(Path(setting("state")) / platform / "kubeconfig"), agent="bench") as client:
            found = []
            for _ in range(crashes):
                found.append(await _crash(client, platform, bad, address))
                run(PIN, "deploy", str(good), "--name", platform)
            run(PIN, "delete", "web", "--name", platform)
            return found


async def _crash(client: Client, platform: str, bad: Path, address: str) -> Told:
    known = {each["metadata"]["uid"] for each in (await client.list(PODS, "me", labels=f"{WORKLOAD}=web")).items}
    seen = asyncio.create_task(_seen(client, known))
    async with _asked(address) as answers:
        deploying = await asyncio.create_subprocess_exec(
            PIN, "deploy", str(bad), "--name", platform,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        assert deploying.stdout is not None
        told = 0.0
        lines: list[str] = []
        async for line in deploying.stdout:
            lines.append(line.decode().rstrip())
            if lines[-1].endswith(FAILURES):
                told = time.perf_counter()
        assert await deploying.wait() == 1, lines
    assert [each.rpartition(" | ")[2] for each in lines if each.startswith("  | ") and " | line " in each] == LINES, (
        lines
    )
    return Told(told - await seen, sum(each != 200 for each in answers))


async def _seen(client: Client, known: set[str]) -> float:
    """When the kubelet first showed that a new copy has ended."""
    async for event in client.watch(PODS, "me", labels=f"{WORKLOAD}=web"):
        if event.object["metadata"]["uid"] not in known and any(map(_ended, _containers(event.object))):
            return time.perf_counter()
    raise AssertionError("the watch has ended")


def _containers(pod: Object) -> list[Object]:
    found: list[Object] = pod.get("status", {}).get("containerStatuses", [])
    return found


def _ended(container: Object) -> bool:
    return bool(container["state"].get("terminated") or container.get("lastState", {}).get("terminated"))


@asynccontextmanager
async def _asked(address: str) -> AsyncIterator[list[int]]:
    """Every answer that somebody gets who never stops asking."""
    answers: list[int] = []
    done = asyncio.Event()

    async def ask() -> None:
        while not done.is_set():
            answers.append(await asyncio.to_thread(_answer, address))
            await asyncio.sleep(PAUSE)

    asking = asyncio.create_task(ask())
    yield answers
    done.set()
    await asking


def _answer(address: str) -> int:
    connection = HTTPConnection("127.0.0.1", int(address.partition(":")[2] or 80), timeout=5)
    connection.request("GET", "/", headers={"Host": address})
    status = connection.getresponse().status
    connection.close()
    return status
