"""Limits the request bodies that are received at a time, so that senders cannot exhaust the memory of the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import LOGS_UNAVAILABLE

MAX_BODIES = 24
"""Bodies of pods, and as many of nodes: a pod that sends slowly must not delay the standard output of others."""
MAX_BODIES_PER_PROJECT = 3
MAX_WAITING_PER_PROJECT = 200
RECEIVE_TIMEOUT_S = 20.0


class Intake:
    """Slots for the bodies of batches."""

    def __init__(self) -> None:
        self._nodes = asyncio.Semaphore(MAX_BODIES)
        self._pods = asyncio.Semaphore(MAX_BODIES)
        self._projects: dict[str, _ProjectSlots] = {}

    @asynccontextmanager
    async def slot(self, project: str) -> AsyncGenerator[None]:
        """Slot of a pod of the project, or with an empty name of a node; waits for one. The block has a time limit."""
        try:
            async with asyncio.timeout(RECEIVE_TIMEOUT_S):
                if project:
                    async with self._project_slot(project), self._pods:
                        yield
                else:
                    async with self._nodes:
                        yield
        except TimeoutError:
            what = f"the batch was not received within {RECEIVE_TIMEOUT_S:.0f} s"
            raise Refused(Problem(LOGS_UNAVAILABLE, what, next="send it again")) from None

    @asynccontextmanager
    async def _project_slot(self, project: str) -> AsyncGenerator[None]:
        slots = self._projects.setdefault(project, _ProjectSlots())
        if slots.users >= MAX_WAITING_PER_PROJECT:
            what = f"{slots.users} batches of {project} are waiting already"
            raise Refused(Problem(LOGS_UNAVAILABLE, what, next="send them one after the other"))
        slots.users += 1
        try:
            async with slots.semaphore:
                yield
        finally:
            slots.users -= 1
            if not slots.users:
                del self._projects[project]


class _ProjectSlots:
    def __init__(self) -> None:
        self.semaphore = asyncio.Semaphore(MAX_BODIES_PER_PROJECT)
        self.users = 0
        """Requests that have a slot or wait for one."""
