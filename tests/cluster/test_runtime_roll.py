"""`pin runtime roll` on a real node and on simulated nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from measure_rollout import KINDS, measure_rollouts

from cli_user import CliUser, wait_all_gone
from in_place_roll import check_in_place_roll
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load_kubeconfig
from pincompute.kube.resource import PODS
from shared_platform import SharedPlatform

pytestmark = pytest.mark.cluster


async def test_roll_restarts_the_sidecar_only(real_platform: Platform, tmp_path: Path) -> None:
    async with Client(load_kubeconfig(real_platform.home.kubeconfig), agent="test") as client:
        await check_in_place_roll(CliUser(real_platform, tmp_path), client)


async def test_failing_runtime_stops_is_reverted_and_next_one_rolls(platform: SharedPlatform) -> None:
    async with Client(load_kubeconfig(platform.kubeconfig), agent="test") as client:
        figures = await measure_rollouts(client, 8)
        try:
            await asyncio.to_thread(_by_desk_and_by_kubeconfig, platform)
        finally:
            await _forget(client)
    assert "have failed since" in figures.message
    assert figures.in_place == 1
    assert figures.broken == []


def _by_desk_and_by_kubeconfig(platform: SharedPlatform) -> None:
    """Commands with --kubeconfig work and answer like those through the desk."""
    ways = ((), ("--kubeconfig", str(platform.kubeconfig)))
    for words, code in ((("status",), 0), (("who", "logs-3"), 0), (("plan", "1"), 0), (("stop",), 1)):
        by_desk, direct = (platform.pin("runtime", *words, *way, code=code) for way in ways)
        assert by_desk == direct
    desk, direct = ways
    assert "runtime 3 stopped: rolling back to runtime 1" in platform.pin("runtime", "roll", "1", *direct)
    assert "runtime 1 is already current" in platform.pin("runtime", "roll", "1", *desk)
    assert "8 in place" in _rolled(platform, *direct)
    assert "runtime 3 is already current" in platform.pin("runtime", "roll", "3", *desk)


def _rolled(platform: SharedPlatform, *way: str) -> str:
    process = platform.spawn("runtime", "roll", "3", "--waves", "100", "--watch", "0", "--yes", *way)
    out, output = process.communicate()
    assert process.returncode == 0, output
    assert out == "runtime 3 is current\n"
    return output


async def _forget(client: Client) -> None:
    """Clean up the shared platform: workloads, then runtimes, then sidecars."""
    for kind in (*sorted(set(KINDS)), "Runtime", "PinterestSidecar"):
        for each in (await client.list(CUSTOM_RESOURCES[kind])).items:
            metadata = each["metadata"]
            await client.delete(CUSTOM_RESOURCES[kind], metadata["name"], metadata.get("namespace", ""))
    async with asyncio.timeout(60):
        await wait_all_gone(client, PODS, "me")
