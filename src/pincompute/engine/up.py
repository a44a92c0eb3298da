"""Brings a platform up: `pin up` from its words to the nodes that are ready."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec

from pincompute.base.problem import Refused
from pincompute.engine import bootstrap, first_runtime, identity, logs, own, processes
from pincompute.engine.build import build
from pincompute.engine.down import foreigners, take_down
from pincompute.engine.first_project import await_project
from pincompute.engine.home import Home
from pincompute.engine.kubeflow import training_operator
from pincompute.engine.lock import held
from pincompute.engine.nodes import network, real_node, simulated_nodes
from pincompute.engine.nodes.awaiting import await_nodes
from pincompute.engine.platform import Platform
from pincompute.engine.processes import Process, Standing
from pincompute.engine.progress import Progress, span
from pincompute.engine.record import Record, read, write
from pincompute.engine.settle import Wish, platform_of, settle
from pincompute.engine.stages import prepare, stages
from pincompute.engine.tend import Tender
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.objects.times import stamp


def up(home: Home, wish: Wish, cache: Path, progress: Progress) -> Platform:
    """Idempotent: a platform that is up as wished stays as it is."""
    wish.check()
    programs = build(cache, progress)
    with held(home.lock, f"pin up --name {home.name}", progress.say):
        before = _remembered(home)
        record, obstacles = settle(home, before, wish)
        if obstacles:
            progress.say("\n".join(["no real node here:", *(problem.text() for problem in obstacles)]))
        neighbours = {name: str(training_operator.build(cache, progress)) for name in record.neighbours}
        record = msgspec.structs.replace(record, engine=str(programs.folder), neighbours=neighbours)
        if before.index not in (None, record.index):
            # Every address of it moves, so nothing of it can stay.
            take_down(home, before)
        platform = platform_of(home, record, programs)
        _bring_up(platform, Tender(home, record, progress.say), progress)
    return platform


def _remembered(home: Home) -> Record:
    """The record. Where it names what is not ours, that is corrected, and told once."""
    record = read(home) or Record()
    foreign = foreigners(record)
    if foreign:
        ours = {
            part: each for part, each in record.processes.items() if processes.standing(each) is not Standing.FOREIGN
        }
        write(home, msgspec.structs.replace(record, processes=ours))
        raise Refused(*foreign)
    return record


def _bring_up(platform: Platform, tender: Tender, progress: Progress) -> None:
    if platform.index is not None:
        network.lay(platform.index)
    prepare(platform, progress)
    first, *rest = stages(platform)
    tender.require_ports([first, *rest])
    tender.end_superfluous([first, *rest], everything=platform.authority.replaced)
    begun = time.monotonic()
    tender.start(first)
    progress.say(f"API ready in {span(time.monotonic() - begun)}")
    asyncio.run(_furnish(platform, kwok_stays=tender.process("kwok") is not None))
    for stage in rest:
        tender.start(stage)
    own.announce(platform)
    progress.say(f"all parts ready in {span(time.monotonic() - begun)}")
    asyncio.run(_await(platform, _since(tender.process("kubelet")), progress))
    progress.say(f"all nodes ready in {span(time.monotonic() - begun)}")


async def _furnish(platform: Platform, *, kwok_stays: bool) -> None:
    async with Client(load(platform.home.kubeconfig), agent="pin") as client:
        await bootstrap.furnish(client, platform)
        if training_operator.NAME not in platform.neighbours:
            await training_operator.leave(client)
        if not platform.bare:
            await identity.furnish(client, platform)
        if not kwok_stays:
            await simulated_nodes.release(client, platform)
        await simulated_nodes.adjust(client, platform)
        if platform.real:
            await asyncio.to_thread(real_node.furnish, platform)
            if not platform.bare:
                await logs.furnish(client, platform)
        if training_operator.NAME in platform.neighbours:
            await training_operator.furnish(client, platform)


async def _await(platform: Platform, since: str, progress: Progress) -> None:
    if platform.bare:
        await await_nodes(platform, since, progress)
        return
    await asyncio.gather(await_nodes(platform, since, progress), await_project(platform))
    if platform.runtime:
        if platform.real:
            await first_runtime.bring_images(platform, progress)
        async with Client(load(platform.home.kubeconfig), agent="pin") as client:
            await first_runtime.furnish(client, first_runtime.given())


def _since(kubelet: Process | None) -> str:
    return stamp(processes.birth(kubelet)) if kubelet else ""
