"""A project as somebody sees it who goes on looking: all workloads, and then those that are not as they were."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from pincompute.api.kinds import WORKLOADS
from pincompute.api.summary import Sight, Summary
from pincompute.base.problem import refuse_all
from pincompute.base.reasons import KIND_NOT_SERVED
from pincompute.controller.resources import NOUNS
from pincompute.kube.client import Client
from pincompute.kube.informer import Informer
from pincompute.kube.watch import Event
from pincompute.planning.people.summary import summarize

REST = 0.1
"""Seconds in which what happens is told together."""


async def watching(client: Client, project: str) -> AsyncGenerator[Sight]:
    """The first is told once every kind was seen; a watch that breaks is mended, and nothing is missed by it."""
    changed = asyncio.Event()

    def told(_: Event[Any]) -> None:
        changed.set()

    informers: list[Informer[Any]] = [
        Informer(client, NOUNS[kind], type=noun, namespace=project, on_change=told) for kind, noun in WORKLOADS.items()
    ]
    tasks = [asyncio.create_task(each.run()) for each in informers]
    try:
        for each in informers:
            await each.answered.wait()
        problems = [each.problem for each in informers if each.problem]
        refuse_all(each for each in problems if each.reason is not KIND_NOT_SERVED or len(problems) == len(informers))
        before: dict[str, Summary] | None = None
        while True:
            changed.clear()
            now = _seen(informers)
            sight = _news(before or {}, now)
            if before is None or sight.now or sight.gone:
                yield sight
            before = now
            await changed.wait()
            await client.clock.sleep(REST)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _seen(informers: Sequence[Informer[Any]]) -> dict[str, Summary]:
    """The eldest of a name, where somebody went past the desk."""
    workloads = [each for informer in informers for each in informer.items.values()]
    eldest_last = sorted(workloads, key=lambda each: each.metadata.creation_timestamp, reverse=True)
    return {each.metadata.name: summarize(each) for each in eldest_last}


def _news(before: dict[str, Summary], now: dict[str, Summary]) -> Sight:
    return Sight(
        now=[each for name, each in sorted(now.items()) if each != before.get(name)],
        gone=sorted(before.keys() - now.keys()),
    )
