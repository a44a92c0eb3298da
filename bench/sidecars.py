"""Memory of all sidecars of a pod at rest, on the real node, with the bundled runtime."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import PIN, ROOT, Figure, run_command
from pincompute.engine import proc

NAME = "bench-sidecars"
SAMPLES = 10
SAMPLE_INTERVAL_S = 2.0
SETTLE_S = 30.0
"""Time after the start until a sidecar counts as resting."""


def figures() -> Iterator[Figure]:
    run_command(PIN, "up", "--name", NAME, "--runtime")
    try:
        if not json.loads(run_command(PIN, "status", "--name", NAME, "-o", "json"))["nodes"]["real"]:
            raise SystemExit("this suite needs a real node: run it as root")
        samples = _measure_pod()
    finally:
        run_command(PIN, "down", "--name", NAME, "--purge")
    names = sorted(samples[0])
    yield Figure("U8.1", f"sidecars of a pod at rest: {', '.join(names)}", _sums(samples), 60, "MiB")
    for name in names:
        yield Figure(f"sidecar.{name}", f"sidecar {name} at rest", [each[name] for each in samples], unit="MiB")


def _measure_pod() -> list[dict[str, float]]:
    """Proportional set sizes in MiB by sidecar, of several moments."""
    run_command(PIN, "image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:bench", "--name", NAME)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hello.yaml"
        file.write_text(
            "apiVersion: pinterest.com/v1\nkind: PinterestService\nmetadata: {name: hello}\n"
            'spec: {image: "hello:bench", port: 8080}\n'
        )
        run_command(PIN, "deploy", str(file), "--name", NAME)
    listed = run_command(PIN, "kubectl", "--name", NAME, "get", "pods", "-n", "me", "-o", "json")
    (pod,) = json.loads(listed)["items"]
    ids = {
        each["name"]: each["containerID"].rpartition("/")[2]
        for each in pod["status"]["initContainerStatuses"]
        if "running" in each["state"]
    }
    time.sleep(SETTLE_S)
    samples = []
    for _ in range(SAMPLES):
        samples.append({name: _memory_mib(id_) for name, id_ in ids.items()})
        time.sleep(SAMPLE_INTERVAL_S)
    return samples


def _memory_mib(container: str) -> float:
    """Memory of all processes of a container, which its control group names."""
    own = [pid for pid in proc.pids() if container in _control_groups(pid)]
    if not own:
        raise SystemExit(f"no process of container {container} on this machine")
    return sum(map(proc.memory_bytes, own)) / (1 << 20)


def _control_groups(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""


def _sums(samples: list[dict[str, float]]) -> list[float]:
    return [sum(each.values()) for each in samples]
