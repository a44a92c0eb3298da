"""Local platform: startup times, memory, and the first HTTP response of a deployed service."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from bench.figures import PIN, ROOT, Figure, run_command

NAME = "bench"
RUNS = 5
_LINES = {
    "api": re.compile(r"API ready in (\d+\.?\d*) s"),
    "parts": re.compile(r"parts ready in (\d+\.?\d*) s"),
    "nodes": re.compile(r"nodes ready in (\d+\.?\d*) s"),
}


def figures() -> Iterator[Figure]:
    run_command(PIN, "up", "--name", NAME)
    real = json.loads(run_command(PIN, "status", "--name", NAME, "-o", "json"))["nodes"]["real"]
    if real:
        run_command(PIN, "image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:bench", "--name", NAME)
    starts: list[dict[str, float]] = []
    first_responses: list[float] = []
    failures: list[float] = []
    for _ in range(RUNS):
        run_command(PIN, "down", "--name", NAME)
        began = time.perf_counter()
        output = run_command(PIN, "up", "--name", NAME)
        starts.append({what: float(found[1]) for what, line in _LINES.items() if (found := line.search(output))})
        with tempfile.TemporaryDirectory() as folder:
            deployed = _deploy(Path(folder), "hello", "hello:bench")
            if real:
                _wait_for_response(re.search(r"^(http\S+)", deployed, re.MULTILINE)[1])  # type: ignore[index]
                first_responses.append(time.perf_counter() - began)
                failures.append(_time_to_report_failure(Path(folder)))
            run_command(PIN, "delete", "hello", "--name", NAME)
    yield Figure("engine.api", "API ready", [each["api"] for each in starts], 6)
    yield Figure("engine.parts", "platform ready", [each["parts"] for each in starts], 15)
    yield Figure("engine.nodes", "nodes ready, after that", [each["nodes"] - each["parts"] for each in starts], 12)
    if real:
        yield Figure("U2.1", "first HTTP 200 from the service's address, from a stopped platform", first_responses, 30)
        yield Figure("U5", "time to report a detectable failure (missing image)", failures, 2)
    yield _memory()
    run_command(PIN, "down", "--name", NAME, "--purge")


def _deploy(folder: Path, name: str, image: str, *, check: bool = True) -> str:
    before = Path.cwd()
    os.chdir(folder)
    try:
        return run_command(PIN, "deploy", name, "--image", image, "--port", "8080", "--name", NAME, check=check)
    finally:
        os.chdir(before)


def _wait_for_response(address: str) -> None:
    parts = urlsplit(address)
    while True:
        connection = HTTPConnection("127.0.0.1", parts.port or 80, timeout=2)
        try:
            connection.request("GET", "/", headers={"Host": parts.netloc})
            if connection.getresponse().status == 200:
                return
        except (OSError, HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(0.02)


def _time_to_report_failure(folder: Path) -> float:
    began = time.perf_counter()
    _deploy(folder, "nowhere", "nowhere:bench", check=False)
    took = time.perf_counter() - began
    run_command(PIN, "delete", "nowhere", "--name", NAME)
    return took


def _memory() -> Figure:
    parts = json.loads(run_command(PIN, "status", "--name", NAME, "-o", "json"))["parts"]
    total = sum(part["memory"] or 0 for part in parts) / 2**20
    return Figure("engine.memory", f"all {len(parts)} parts, idle", [total], unit="MiB")
