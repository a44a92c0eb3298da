"""Configuration bundles on a real node: files before the start, live changes, rollouts and back, a store that hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from busybox import IMAGE, TEMPLATE
from cli_user import CliUser, wait_all_gone
from pincompute.api.names import ENGINE, WORKLOAD_LABEL
from pincompute.base.progress import Progress
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.first_runtime import PARTS_FOLDER
from pincompute.engine.images import own_image, registry
from pincompute.engine.platform import Platform
from pincompute.engine.record import read_record
from pincompute.kube.client import Client
from pincompute.kube.resource import PODS, Object
from real_platform import wait_until

pytestmark = pytest.mark.cluster

NUMBER = "61"
NAME = "configured"
PATIENCE_S = 240.0
SERVICE = f"""\
apiVersion: pinterest.com/v1
kind: PinterestService
metadata: {{name: {NAME}, labels: {{parts: config}}}}
spec:
  image: {IMAGE}
  config: [limits, flags@live]
  command:
    - sh
    - -c
    - |
      test -s $CONFIG_FOLDER/limits/deep/api.toml && test -s $LIVE_CONFIG_FOLDER/flags/flags.json || exit 9
      touch $CONFIG_FOLDER/limits/mine 2> /dev/null && exit 8
      trap exit TERM; httpd -f -p $PORT -h /etc/pinterest & wait
  port: 8080
  loadBalancer: {{healthCheck: {{path: ""}}}}
  shutdown: {{leaveSeconds: 0}}
  template: {TEMPLATE}
"""
LIMITS, FLAGS = "/etc/pinterest/config/limits/deep/api.toml", "/etc/pinterest/live/flags/flags.json"


@pytest.fixture(name="person")
async def bundle_publisher(real_platform: Platform, client: Client, tmp_path: Path) -> AsyncIterator[CliUser]:
    """A user on a platform with a runtime of the bundled parts, which serve the workload of this test only."""
    async with registry.open_registry(real_platform) as images:
        await own_image.push_variants(images, Progress(), ["pincompute-config:1"])
    made: list[tuple[str, Object]] = []
    for name in ("identity", "config", "config-live"):
        part: Object = yaml.safe_load((PARTS_FOLDER / f"{name}-1.yaml").read_text())
        part["metadata"]["name"] = f"{name}-{NUMBER}"
        part["spec"]["serves"]["selector"] = {"parts": "config"}
        made.append(("PinterestSidecar", part))
    names = [part["metadata"]["name"] for _, part in made]
    spec = {"parts": names, "roll": {"waves": [100], "pauseSeconds": 0}}
    made.append(("Runtime", {"metadata": {"name": NUMBER}, "spec": spec}))
    for kind, body in made:
        await client.create(CUSTOM_RESOURCES[kind], body, manager=ENGINE)
    await wait_until(client, CUSTOM_RESOURCES["Runtime"], "", lambda seen: seen.get("status", {}).get("done"), NUMBER)
    (tmp_path / "web.yaml").write_text(SERVICE)
    yield CliUser(real_platform, tmp_path)
    for kind, body in reversed(made):
        await client.delete(CUSTOM_RESOURCES[kind], body["metadata"]["name"])


async def publish_text(person: CliUser, bundle: str, path: str, text: str) -> str:
    file = person.folder / bundle / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return await person.pin("config", "publish", bundle, bundle)


async def wait_for_output(person: CliUser, text: str, *words: str) -> str:
    """Run a command until its output has the text. Its exit code does not matter."""
    output = ""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while text not in output:
                output = await run_pin(person, *words)
    except TimeoutError:
        raise AssertionError(f"pin {' '.join(words)} does not say {text!r}: {output}") from None
    return output


async def run_pin(person: CliUser, *words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pincompute", *words, cwd=person.folder, env=person.variables,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    return output.decode()


async def test_bundles_from_publishing_to_a_store_that_hangs(
    real_platform: Platform, client: Client, person: CliUser
) -> None:
    assert "limits@1  published" in await publish_text(person, "limits", "deep/api.toml", "requests = 1\n")
    assert "flags@1  published" in await publish_text(person, "flags", "flags.json", '{"new": 1}')
    await person.pin("deploy", "web.yaml")
    assert await person.pin("shell", NAME, "--", "cat", LIMITS) == "requests = 1\n"

    # Live, without a restart.
    await publish_text(person, "flags", "flags.json", '{"new": 2}')
    await wait_for_output(person, '{"new": 2}', "shell", NAME, "--", "cat", FLAGS)
    await person.pin("config", "roll", "flags", "1")
    await wait_for_output(person, '{"new": 1}', "shell", NAME, "--", "cat", FLAGS)
    assert f"{NAME}@1" in await person.pin("get", NAME)

    # A rollout like that of an image, and back with the revision.
    await publish_text(person, "limits", "deep/api.toml", "requests = 2\n")
    await person.pin("deploy", "web.yaml")
    assert f"{NAME}@2" in await person.pin("get", NAME)
    await wait_for_output(person, "requests = 2", "shell", NAME, "--", "cat", LIMITS)
    await person.pin("rollback", NAME)
    await wait_for_output(person, "requests = 1", "shell", NAME, "--", "cat", LIMITS)
    assert "ConfigInUse" in await person.pin("config", "delete", "limits", code=1)

    record = read_record(real_platform.home)
    assert record
    store = record.processes["config-store"].pid
    os.kill(store, signal.SIGSTOP)
    try:
        # The running replica keeps its files, and a new one waits.
        await person.pin("restart", NAME, "--no-wait")
        output = await wait_for_output(person, "ConfigMissing", "why", NAME)
        assert "https://config-store.pincompute-system.svc since 20" in output
        assert "me/limits@1" in output
        assert (await person.http_get(NAME))[0] in {200, 404}
    finally:
        os.kill(store, signal.SIGCONT)
    await person.pin("wait", NAME, "--timeout", f"{PATIENCE_S:.0f}")
    await person.pin("delete", NAME)
    await wait_all_gone(client, PODS, "me", labels=f"{WORKLOAD_LABEL}={NAME}")
    for bundle in ("limits", "flags"):
        await person.pin("config", "delete", bundle)
