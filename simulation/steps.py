"""What people do, in steps: after each the world comes to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from pincompute.api.change import Change
from pincompute.api.names import API_VERSION
from pincompute.controller.resources import NOUNS
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object
from simulation.person import HOME, TRIES, Person

Action = Callable[[Person], Awaitable[None]]


class Step(NamedTuple):
    does: str
    action: Action
    hasty: bool = False
    """Something is taken back before it is done: how much of it was seen depends on the moment."""
    patient: bool = False
    """It needs what was before it to be done."""
    verb: str = ""
    """What it asks of a workload by name."""


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

    return Step(does, action, patient=patient, verb=type(change).__name__)


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


async def until(person: Person, kind: str, name: str, holds: Callable[[Any], bool]) -> None:
    """By looking at its status again and again, as people do, and no longer than they would."""
    resource = NOUNS[kind]
    for _ in range(TRIES):
        with suppress(NotFound):
            found = await person.client.get(resource, name, HOME if resource.namespaced else "")
            if holds(found.get("status", {})):
                return
        await asyncio.sleep(1)


def midway(does: str, work: Object, holds: Callable[[Any], bool], change: Change) -> Step:
    """A verb while the work is under way."""
    name = work["metadata"]["name"]

    async def action(person: Person) -> None:
        await person.write(work)
        await until(person, work["kind"], name, holds)
        await person.change(name, change)

    return Step(does, action, patient=True, verb=type(change).__name__)
