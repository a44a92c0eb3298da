"""Somebody who writes, edits and deletes what is ours; nothing of it ever fails on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from pincompute.api.admission import admit
from pincompute.api.change import Change
from pincompute.api.documents import read
from pincompute.api.names import HAND
from pincompute.api.workload import Workload
from pincompute.base.problem import Refused
from pincompute.base.reasons import PROJECT_UNKNOWN
from pincompute.controller.resources import NOUNS
from pincompute.controller.workloads import Workloads
from pincompute.kube.client import Client
from pincompute.kube.resource import Object, Resource

HOME = "me"
"""The project of whoever does not say."""
TRIES = 600


class Person:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def write(self, document: Object) -> None:
        """By the way of the desk, where it takes the kind."""
        noun: Any = admit(read(msgspec.json.encode(document).decode())[0], HOME)
        if isinstance(noun, Workload):
            await self._submit(noun)
            return
        said = {"metadata": {"name": noun.metadata.name}, "spec": msgspec.to_builtins(noun.spec)}
        await self.client.apply(said, NOUNS[noun.kind], manager=HAND)

    async def _submit(self, workload: Workload) -> None:
        """Once its project is there: whoever made that a moment ago tries again."""
        for _ in range(TRIES):
            try:
                await Workloads(self.client).write(workload, manager=HAND)
            except Refused as refused:
                if refused.problems[0].reason is not PROJECT_UNKNOWN:
                    raise
                await asyncio.sleep(1)
            else:
                return
        raise AssertionError(f"{workload.metadata.namespace} has not come")

    async def change(self, name: str, change: Change) -> None:
        """By a verb, once that can be: nothing has failed yet, or what it was before is not on record."""
        for left in range(TRIES, 0, -1):
            try:
                await Workloads(self.client).amend(HOME, name, change, manager=HAND)
            except Refused:
                if left == 1:
                    raise
                await asyncio.sleep(1)
            else:
                return

    async def annotate(self, kind: str, name: str, annotations: dict[str, str]) -> None:
        body = {"metadata": {"annotations": annotations}}
        await self.client.patch(NOUNS[kind], name, HOME, body, style="merge", manager="kubectl")

    async def delete(self, kind: str | Resource, name: str, namespace: str = HOME) -> None:
        resource = NOUNS[kind] if isinstance(kind, str) else kind
        await self.client.delete(resource, name, namespace if resource.namespaced else "")
