"""What people do, in steps: after each the world comes to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from pincompute.api.change import Change
from pincompute.api.names import API_VERSION
from pincompute.kube.resource import Object
from simulation.person import Person

Action = Callable[[Person], Awaitable[None]]


class Step(NamedTuple):
    does: str
    action: Action
    hasty: bool = False
    """Something is taken back before it is done: how much of it was seen depends on the moment."""
    patient: bool = False
    """It needs what was before it to be done."""


class Scenario(NamedTuple):
    kind: str
    steps: tuple[Step, ...]


def document(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def writes(does: str, *documents: Object, patient: bool = False) -> Step:
    async def action(person: Person) -> None:
        for each in documents:
            await person.write(each)

    return Step(does, action, patient=patient)


def changes(does: str, name: str, change: Change, *, patient: bool = False) -> Step:
    async def action(person: Person) -> None:
        await person.change(name, change)

    return Step(does, action, patient=patient)


def deletes(does: str, kind: Any, *names: str) -> Step:
    async def action(person: Person) -> None:
        for each in names:
            await person.delete(kind, each)

    return Step(does, action)


def hastily(does: str, first: Object, then: Object, seconds: float = 0.3) -> Step:
    """There and back again, while the first is under way."""

    async def action(person: Person) -> None:
        await person.write(first)
        await asyncio.sleep(seconds)
        await person.write(then)

    return Step(does, action, hasty=True)


def waits(does: str, until: float) -> Step:
    async def action(person: Person) -> None:
        del person
        loop = asyncio.get_running_loop()
        await asyncio.sleep(until - loop.time())

    return Step(does, action)
