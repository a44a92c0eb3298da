"""Requests of `pin config` to the desk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

import msgspec

from pincompute.api.config_bundle import (
    ConfigBundle,
    ConfigContent,
    ConfigPointer,
    ConfigShares,
    PublishConfig,
    PublishedConfig,
)

T = TypeVar("T")
_JSON = msgspec.json.encode
Fetch = Callable[[str, str, bytes], Awaitable[bytes]]
"""Sends method, path and body; returns the body of the response."""


class ConfigClient:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def publish(self, project: str, name: str, asked: PublishConfig) -> PublishedConfig:
        return await self._decoded("POST", _path(project, name, "versions"), PublishedConfig, _JSON(asked))

    async def put_content(self, project: str, digest: str, content: bytes) -> None:
        await self._fetch("PUT", _content_path(project, digest), content)

    async def read_content(self, project: str, digest: str) -> bytes:
        return await self._fetch("GET", _content_path(project, digest), b"")

    async def list_bundles(self, project: str) -> list[ConfigBundle]:
        return await self._decoded("GET", _path(project), list[ConfigBundle])

    async def read_bundle(self, project: str, name: str) -> ConfigBundle:
        return await self._decoded("GET", _path(project, name), ConfigBundle)

    async def read_version(self, project: str, name: str, version: int) -> ConfigContent:
        return await self._decoded("GET", _path(project, name, "versions", str(version)), ConfigContent)

    async def point(self, project: str, name: str, version: int) -> ConfigBundle:
        return await self._decoded(
            "PUT", _path(project, name, "pointer"), ConfigBundle, _JSON(ConfigPointer(version=version))
        )

    async def share(self, project: str, name: str, projects: list[str]) -> ConfigBundle:
        return await self._decoded(
            "PUT", _path(project, name, "shares"), ConfigBundle, _JSON(ConfigShares(projects=projects))
        )

    async def delete(self, project: str, name: str) -> None:
        await self._fetch("DELETE", _path(project, name), b"")

    async def _decoded(self, method: str, path: str, type_: type[T], body: bytes = b"") -> T:
        return msgspec.json.decode(await self._fetch(method, path, body), type=type_)


def _path(project: str, *steps: str) -> str:
    """Quote names, which come as the user typed them."""
    return "/".join(["/v1/projects", quote(project, safe=""), "config", *(quote(each, safe="") for each in steps)])


def _content_path(project: str, digest: str) -> str:
    return f"/v1/projects/{quote(project, safe='')}/config-contents/{digest}"
