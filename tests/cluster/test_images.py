"""An image is built from a folder, loaded into a platform, pulled by its node, and run."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from pincompute import __version__
from pincompute.base.progress import Progress
from pincompute.engine.images import own_image, registry
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, Object
from real_platform import wait_until

pytestmark = pytest.mark.cluster

HELLO = Path(__file__).parents[2] / "examples/hello"


async def test_example_is_built_and_answers_and_second_load_uploads_nothing(real_platform: Platform, client: Client):
    output = await pin(real_platform, "image", "load", str(HELLO), "--as", "greeting:dev")
    name, size, unit, *layers = output.split()
    assert (name, unit, " ".join(layers)) == ("greeting:dev", "MB", "2 layers, 2 new")
    assert 50 < float(size) < 200
    assert (await pin(real_platform, "image", "load", str(HELLO), "--as", "greeting:dev")).endswith("0 new\n")
    assert "greeting:dev\n" in await pin(real_platform, "image", "list")
    pod = await run(client, "greeting", "greeting:dev")
    await wait_until(client, PODS, "default", ready, pod)
    assert await client.raw("GET", f"/api/v1/namespaces/default/pods/{pod}:8080/proxy/") == b"hello from greeting\n"
    await client.delete(PODS, pod, "default")


async def test_own_image_runs_unprivileged(real_platform: Platform, client: Client):
    async with registry.open_registry(real_platform) as store:
        (loaded,) = await own_image.push_variants(store, Progress(), ["own:1"])
    assert loaded.name == "own:1"
    pod = await run(client, "own", "own:1", "--version")
    await wait_until(client, PODS, "default", lambda pod: pod["status"].get("phase") == "Succeeded", pod)
    assert [line async for line in client.logs("default", pod)] == [f"pin {__version__}"]
    await client.delete(PODS, pod, "default")


async def run(client: Client, name: str, image: str, *arguments: str) -> str:
    """Create a pod that must not run as root."""
    container = {
        "name": "app",
        "image": image,
        "args": list(arguments),
        "securityContext": {"runAsNonRoot": True},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 1},
    }
    spec = {"containers": [container], "restartPolicy": "Never", "automountServiceAccountToken": False}
    await client.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec}, manager="test")
    return name


def ready(pod: Object) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


async def pin(platform: Platform, *words: str) -> str:
    """Run `pin`; return its output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pincompute", *words, "--name", platform.name,
        env={**os.environ, "PIN_STATE": str(platform.home.root.parent)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()
