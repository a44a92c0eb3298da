"""The whole way on a real node: from a typed line to an answer, and through every change."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from person import Person, all_gone
from pincompute.api.names import WORKLOAD
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import DEPLOYMENTS, INGRESSES, PODS, SERVICES
from real_platform import PATIENCE
from transcripts import ROOT

pytestmark = pytest.mark.cluster


@pytest.fixture
async def person(real_platform: Platform, tmp_path: Path) -> Person:
    person = Person(real_platform, tmp_path)
    await person.pin("image", "load", str(ROOT / "examples" / "hello"), "--as", "hello:test")
    return person


@asynccontextmanager
async def asked_all_the_time(person: Person, name: str) -> AsyncGenerator[list[int]]:
    """Every answer that somebody gets who, once answered, never stops asking."""
    seen: list[int] = []
    await person.is_answered(name)
    done = asyncio.Event()

    async def ask() -> None:
        while not done.is_set():
            seen.append((await person.ask(name))[0])

    asking = asyncio.create_task(ask())
    try:
        yield seen
    finally:
        done.set()
        await asking


async def test_a_change_is_rolled_out_without_a_failed_request(person: Person) -> None:
    await person.pin("deploy", "web", "--image", "hello:test", "--port", "8080", "--replicas", "2")
    await person.is_answered("web")
    assert "hello from web-" in (await person.ask("web"))[1]
    file = person.folder / "web.yaml"
    async with asked_all_the_time(person, "web") as answers:
        file.write_text(file.read_text() + "  environment: {CHANGED: now}\n")
        assert "web@2" in await person.pin("deploy", "web.yaml")
    assert len(answers) > 10
    assert set(answers) == {200}
    await person.pin("delete", "web")


async def test_a_next_revision_that_crashes_is_told_with_its_last_lines_while_the_one_before_serves(
    person: Person,
) -> None:
    """How soon is measured by `make bench SUITE=tell`."""
    await person.pin("deploy", "firm", "--image", "hello:test", "--port", "8080")
    file = person.folder / "firm.yaml"
    well = file.read_text()
    crash = "[sh, -c, 'for i in $(seq 30); do echo line $i; done; exit 3']"
    async with asked_all_the_time(person, "firm") as answers:
        file.write_text(f"{well}  command: {crash}\n")
        said = (await person.pin("deploy", "firm.yaml", code=1)).splitlines()
        assert (await person.ask("firm"))[0] == 200
    assert set(answers) == {200}
    lines = [each.split(" | ") for each in said if each.startswith("  | ") and " | line " in each]
    assert [text for _, _, text in lines] == [f"line {number}" for number in range(11, 31)]
    # All are of the one that crashed, and say so.
    assert len({copy for _, copy, _ in lines}) == 1
    assert any(each.endswith(("[ProgramFailed]", "[CrashLoop]")) for each in said)
    # Nor has it changed by that what runs.
    assert "hello from firm-" in (await person.ask("firm"))[1]
    await person.pin("delete", "firm")


async def test_when_our_own_parts_are_down_nobody_notices_and_later_all_is_as_wanted(person: Person) -> None:
    await person.pin("deploy", "still", "--image", "hello:test", "--port", "8080")
    await person.is_answered("still")
    parts = {part["name"]: part["pid"] for part in json.loads(await person.pin("status", "-o", "json"))["parts"]}
    for part in ("operator", "desk"):
        os.kill(parts[part], signal.SIGKILL)
    assert (await person.ask("still"))[0] == 200
    assert "does not answer" in await person.pin("get", code=1)
    await person.pin("status", code=1)
    await person.pin("up")
    assert "still@1" in await person.pin("get")
    await person.pin("delete", "still")


async def test_deleting_leaves_nothing_behind(person: Person) -> None:
    await person.pin("deploy", "gone", "--image", "hello:test", "--port", "8080")
    await person.pin("delete", "gone")
    async with Client(load(person.platform.home.kubeconfig), agent="tests") as client, asyncio.timeout(PATIENCE):
        for resource in (DEPLOYMENTS, SERVICES, INGRESSES, PODS):
            await all_gone(client, resource, "me", labels=f"{WORKLOAD}=gone")
        # Whoever answers for all addresses hears of it after we do.
        while (await person.ask("gone"))[0] != 404:
            pass
