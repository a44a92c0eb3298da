"""The hand's one port to a platform, with two adapters: the desk, and a kubeconfig where that is all there is."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from pincompute.api.logs import Said, Wanted
from pincompute.api.preview import Preview
from pincompute.api.summary import Summary


class Port(Protocol):
    """What can be asked of a platform."""

    async def submit(self, text: str, file: str, project: str) -> Summary: ...

    async def plan(self, text: str, project: str) -> list[Preview]:
        """What documents would become and change, all or none."""
        ...

    async def all(self, project: str) -> list[Summary]: ...

    def follow(self, project: str, name: str) -> AsyncGenerator[Summary]: ...

    def logs(self, project: str, name: str, wanted: Wanted) -> AsyncGenerator[Said]: ...

    async def delete(self, project: str, name: str) -> None: ...

    async def images(self) -> list[str]:
        """Those that the platform keeps itself."""
        ...
