"""Brings a platform up: what runs and is healthy stays, what is missing is started, what changed is started anew."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import msgspec

from pincompute.base.problem import Refused
from pincompute.engine import bootstrap, control_plane, down, network, own, processes, real_node, simulated_nodes
from pincompute.engine.build import build
from pincompute.engine.home import Home
from pincompute.engine.lock import held
from pincompute.engine.nodes import await_nodes
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform
from pincompute.engine.ports import require_free
from pincompute.engine.processes import Process, Standing
from pincompute.engine.progress import Progress, span
from pincompute.engine.readiness import place
from pincompute.engine.record import Record, read, write
from pincompute.engine.settle import Wish, platform_of, settle
from pincompute.engine.stages import Stages, prepare, stages
from pincompute.kube.client import Client
from pincompute.kube.kubeconfig import load
from pincompute.objects.times import stamp

# One that runs and does not answer may still be on its way: somebody may just have started it.
PATIENCE_WITH_RUNNING = 10.0


def up(home: Home, wish: Wish, cache: Path, progress: Progress) -> Platform:
    """Everything that can be wrong with the words, the machine and the ports is found before anything is touched."""
    wish.check()
    programs = build(cache, progress)
    with held(home.lock, f"pin up --name {home.name}", progress.say):
        before = _known(home)
        record, obstacles = settle(home, before, wish)
        for problem in obstacles:
            progress.say(f"no real node: {problem.text()}")
        record = msgspec.structs.replace(record, engine=str(programs.folder))
        if before.index not in (None, record.index):
            # Every address of it moves, so nothing of it can stay.
            down.take_down(home, before)
        platform = platform_of(home, record, programs)
        _Up(platform, record, progress).run()
    return platform


def _known(home: Home) -> Record:
    """The record, cleared of what is not ours: that is told once, and corrected."""
    record = read(home) or Record()
    if foreign := down.foreigners(record):
        ours = {
            name: each for name, each in record.processes.items() if processes.standing(each) is not Standing.FOREIGN
        }
        write(home, msgspec.structs.replace(record, processes=ours))
        raise Refused(*foreign)
    return record


class _Up:
    def __init__(self, platform: Platform, record: Record, progress: Progress) -> None:
        self._platform = platform
        self._home = platform.home
        self._record = record
        self._progress = progress

    def run(self) -> None:
        self._keep(self._record)
        if self._platform.index is not None:
            network.lay(self._platform.index)
        prepare(self._platform, self._progress)
        first, *rest = stages(self._platform)
        self._require_ports(chain(first, *rest))
        self._end_what_must_go([first, *rest])
        self._begun = time.monotonic()
        self._start(first)
        self._progress.say(f"API ready in {self._elapsed()}")
        asyncio.run(self._furnish())
        for stage in rest:
            self._start(stage)
        own.announce(self._platform)
        self._progress.say(f"all {len(self._record.processes)} parts ready in {self._elapsed()}")
        asyncio.run(await_nodes(self._platform, self._kubelet_since(), self._progress))

    def _end_what_must_go(self, wanted: Stages) -> None:
        """Strays of a start that was killed, parts no longer wanted, and, where its ground moves, everything."""
        parts = {part.name: part for part in chain(*wanted)}
        known = {process.pid for process in self._record.processes.values()}
        strays = [process for process in processes.marked(self._home) if process.leader and process.pid not in known]
        down.end(strays)
        running = [process for process in self._record.processes.values() if processes.running(process)]
        changed = [each for each in running if each.command != _fingerprint(parts.get(each.part))]
        ground = {control_plane.ETCD, control_plane.API_SERVER}
        if self._platform.authority.replaced or any(process.part in ground for process in changed):
            changed = running
        down.end(changed)
        staying = {each.part: each for each in running if each not in changed}
        self._keep(msgspec.structs.replace(self._record, processes=staying))

    def _require_ports(self, parts: Iterable[Part]) -> None:
        for part in parts:
            listens = place(part.ready)
            if listens and not part.namespace:
                require_free(*listens, part.name, self._home)

    def _start(self, stage: list[Part]) -> None:
        started = {}
        for part in stage:
            process = self._running(part)
            if process is not None and not self._answers(part, process):
                processes.stop([process])
                process = None
            if process is None:
                process = processes.start(part, self._home)
                self._keep(self._record.with_process(process))
            started[part.name] = (part, process)
        processes.await_ready(started, self._home)

    def _running(self, part: Part) -> Process | None:
        process = self._record.processes.get(part.name)
        return process if process is not None and processes.running(process) else None

    def _answers(self, part: Part, process: Process) -> bool:
        try:
            processes.await_ready({part.name: (part, process)}, self._home, PATIENCE_WITH_RUNNING)
        except Refused:
            self._progress.say(f"{part.name} (pid {process.pid}) does not answer; it is started anew")
            return False
        return True

    async def _furnish(self) -> None:
        async with Client(load(self._home.kubeconfig), agent="pin") as client:
            await bootstrap.furnish(client, self._platform)
            await simulated_nodes.adjust(client, self._platform)
        if self._platform.real:
            await asyncio.to_thread(real_node.furnish, self._platform)

    def _kubelet_since(self) -> str:
        kubelet = self._record.processes.get("kubelet")
        return stamp(processes.birth(kubelet)) if kubelet else ""

    def _keep(self, record: Record) -> None:
        self._record = record
        write(self._home, record)

    def _elapsed(self) -> str:
        return span(time.monotonic() - self._begun)


def _fingerprint(part: Part | None) -> str:
    return processes.fingerprint(part) if part else ""
