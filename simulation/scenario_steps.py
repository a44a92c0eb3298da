"""The steps of scenarios: actions of users, after each of which the cluster settles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from pincompute.api.change import Change
from pincompute.api.names import API_VERSION
from pincompute.controller.resources import CUSTOM_RESOURCES
from pincompute.kube.errors import NotFound
from pincompute.kube.resource import Object
from simulation.user import DEFAULT_PROJECT, MAX_TRIES, SimulatedUser

Action = Callable[[SimulatedUser], Awaitable[None]]


class ScenarioStep(NamedTuple):
    """One action, and how its result may be compared."""

    description: str
    action: Action
    is_transient: bool = False
    """An edit is reverted before it is carried out: how far it got depends on timing."""
    needs_previous_step: bool = False
    """The step cannot start before the one before it is done."""
    verb: str = ""
    """The name of the change, for steps that apply one."""


class Scenario(NamedTuple):
    name: str
    steps: tuple[ScenarioStep, ...]


def make_document(kind: str, name: str, **spec: Any) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def write_step(description: str, *documents: Object, needs_previous_step: bool = False) -> ScenarioStep:
    async def action(user: SimulatedUser) -> None:
        for document in documents:
            await user.write(document)

    return ScenarioStep(description, action, needs_previous_step=needs_previous_step)


def change_step(description: str, name: str, change: Change, *, needs_previous_step: bool = False) -> ScenarioStep:
    async def action(user: SimulatedUser) -> None:
        await user.change(name, change)

    return ScenarioStep(description, action, needs_previous_step=needs_previous_step, verb=type(change).__name__)


def delete_step(description: str, kind: Any, *names: str) -> ScenarioStep:
    async def action(user: SimulatedUser) -> None:
        for name in names:
            await user.delete(kind, name)

    return ScenarioStep(description, action)


def transient_step(description: str, first: Object, then: Object, delay_s: float = 0.3) -> ScenarioStep:
    """Writes one version and soon after another, while the first is being rolled out."""

    async def action(user: SimulatedUser) -> None:
        await user.write(first)
        await asyncio.sleep(delay_s)
        await user.write(then)

    return ScenarioStep(description, action, is_transient=True)


def wait_step(description: str, until_s: float) -> ScenarioStep:
    """Waits until a time of the virtual clock, such as that of a schedule."""

    async def action(user: SimulatedUser) -> None:
        del user
        loop = asyncio.get_running_loop()
        await asyncio.sleep(until_s - loop.time())

    return ScenarioStep(description, action)


async def wait_for_status(user: SimulatedUser, kind: str, name: str, holds: Callable[[Any], bool]) -> None:
    """Polls the status of a resource, and gives up after a while as users do."""
    resource = CUSTOM_RESOURCES[kind]
    for _ in range(MAX_TRIES):
        with suppress(NotFound):
            found = await user.client.get(resource, name, DEFAULT_PROJECT if resource.namespaced else "")
            if holds(found.get("status", {})):
                return
        await asyncio.sleep(1)


def change_midway_step(description: str, work: Object, holds: Callable[[Any], bool], change: Change) -> ScenarioStep:
    """Applies a change once the work has reached a status."""
    name = work["metadata"]["name"]

    async def action(user: SimulatedUser) -> None:
        await user.write(work)
        await wait_for_status(user, work["kind"], name, holds)
        await user.change(name, change)

    return ScenarioStep(description, action, needs_previous_step=True, verb=type(change).__name__)
