"""A deployment on a real node from the command to the HTTP answer, through rollouts and failures."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cli_user import CliUser, wait_all_gone
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import DEPLOYMENTS, INGRESSES, PODS, SERVICES
from real_platform import WAIT_TIMEOUT_S
from transcripts import ROOT

pytestmark = pytest.mark.cluster


@pytest.fixture
async def person(real_platform: Platform, tmp_path: Path) -> CliUser:
    person = CliUser(real_platform, tmp_path)
    await person.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:test")
    return person


@asynccontextmanager
async def continuous_requests(person: CliUser, name: str) -> AsyncGenerator[list[int]]:
    """Send requests continuously after the first success; yields the list of status codes."""
    seen: list[int] = []
    await person.wait_answered(name)
    done = asyncio.Event()

    async def request_continuously() -> None:
        while not done.is_set():
            seen.append((await person.http_get(name))[0])

    asking = asyncio.create_task(request_continuously())
    try:
        yield seen
    finally:
        done.set()
        await asking


async def test_no_request_fails_during_rollout(person: CliUser) -> None:
    await person.pin("deploy", "web", "--image", "hello:test", "--port", "8080", "--replicas", "2")
    await person.wait_answered("web")
    assert "hello from web-" in (await person.http_get("web"))[1]
    file = person.folder / "web.yaml"
    async with continuous_requests(person, "web") as answers:
        file.write_text(file.read_text() + "  environment: {CHANGED: now}\n")
        assert "web@2" in await person.pin("deploy", "web.yaml")
    assert len(answers) > 10
    assert set(answers) == {200}
    await person.pin("delete", "web")


async def test_crashing_revision_is_reported_while_previous_one_serves(
    person: CliUser,
) -> None:
    """The delay is measured by `make bench SUITE=crash-report`."""
    await person.pin("deploy", "firm", "--image", "hello:test", "--port", "8080")
    file = person.folder / "firm.yaml"
    well = file.read_text()
    crash = "[sh, -c, 'for i in $(seq 30); do echo line $i; done; exit 3']"
    async with continuous_requests(person, "firm") as answers:
        file.write_text(f"{well}  command: {crash}\n")
        output = (await person.pin("deploy", "firm.yaml", code=1)).splitlines()
        assert (await person.http_get("firm"))[0] == 200
    assert set(answers) == {200}
    lines = [each.split(" | ") for each in output if each.startswith("  | ") and " | line " in each]
    assert [text for _, _, text in lines] == [f"line {number}" for number in range(11, 31)]
    # All lines are from the crashed pod.
    assert len({copy for _, copy, _ in lines}) == 1
    assert any(each.endswith(("[ProgramFailed]", "[CrashLoop]")) for each in output)
    # The running revision has not changed.
    assert "hello from firm-" in (await person.http_get("firm"))[1]
    await person.pin("delete", "firm")


async def test_workloads_keep_running_while_operator_and_desk_are_down(person: CliUser) -> None:
    await person.pin("deploy", "still", "--image", "hello:test", "--port", "8080")
    await person.wait_answered("still")
    parts = {part["name"]: part["pid"] for part in json.loads(await person.pin("status", "-o", "json"))["parts"]}
    for part in ("supervisor", "operator", "desk"):
        os.kill(parts[part], signal.SIGKILL)
    assert (await person.http_get("still"))[0] == 200
    assert "does not answer" in await person.pin("get", code=1)
    await person.pin("status", code=1)
    await person.pin("up")
    assert "still@1" in await person.pin("get")
    await person.pin("delete", "still")


async def test_deletion_leaves_no_objects(person: CliUser) -> None:
    await person.pin("deploy", "gone", "--image", "hello:test", "--port", "8080")
    await person.pin("delete", "gone")
    async with (
        Client(load_kubeconfig(person.platform.home.kubeconfig), agent="tests") as client,
        asyncio.timeout(WAIT_TIMEOUT_S),
    ):
        for resource in (DEPLOYMENTS, SERVICES, INGRESSES, PODS):
            await wait_all_gone(client, resource, "me", labels=f"{WORKLOAD_LABEL}=gone")
        # The ingress is updated later than this test sees the deletion.
        while (await person.http_get("gone"))[0] != 404:
            pass
