"""A runtime rolled by the command that people type, on a real node and over a fleet of simulated ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from roll import KINDS, measure

from person import Person, all_gone
from pincompute.controller.resources import NOUNS
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.kube.resource import PODS
from rolled import rolled_in_place
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster


async def test_a_sidecar_is_started_again_and_nothing_else(real_platform: Platform, tmp_path: Path) -> None:
    async with Client(load(real_platform.home.kubeconfig), agent="test") as client:
        await rolled_in_place(Person(real_platform, tmp_path), client)


async def test_a_runtime_that_fails_stands_still_and_goes_back_and_the_next_one_comes(platform: SharedPlatform) -> None:
    async with Client(load(platform.kubeconfig), agent="test") as client:
        figures = await measure(client, 8)
        try:
            await asyncio.to_thread(_by_desk_and_by_kubeconfig, platform)
        finally:
            await _forget(client)
    assert "fail since it reached them" in figures.message
    assert figures.in_place == 1
    assert figures.broken == []


def _by_desk_and_by_kubeconfig(platform: SharedPlatform) -> None:
    """Whoever has only a kubeconfig is told the same, and can do the same."""
    ways = ((), ("--kubeconfig", str(platform.kubeconfig)))
    for words, code in ((("status",), 0), (("who", "logs-3"), 0), (("plan", "1"), 0), (("stop",), 1)):
        by_desk, direct = (platform.pin("runtime", *words, *way, code=code) for way in ways)
        assert by_desk == direct
    desk, direct = ways
    assert "runtime 3 is taken back" in platform.pin("runtime", "roll", "1", *direct)
    assert "runtime 1 is current already" in platform.pin("runtime", "roll", "1", *desk)
    assert "8 in place" in _rolled(platform, *direct)
    assert "runtime 3 is current already" in platform.pin("runtime", "roll", "3", *desk)


def _rolled(platform: SharedPlatform, *way: str) -> str:
    process = platform.start("runtime", "roll", "3", "--waves", "100", "--watch", "0", "--yes", *way)
    out, told = process.communicate()
    assert process.returncode == 0, told
    assert out == "runtime 3 is current\n"
    return told


async def _forget(client: Client) -> None:
    """The platform is others' as well: workloads first, and parts when no runtime names them."""
    for kind in (*sorted(set(KINDS)), "Runtime", "PinterestSidecar"):
        for each in (await client.list(NOUNS[kind])).items:
            metadata = each["metadata"]
            await client.delete(NOUNS[kind], metadata["name"], metadata.get("namespace", ""))
    async with asyncio.timeout(60):
        await all_gone(client, PODS, "me")
