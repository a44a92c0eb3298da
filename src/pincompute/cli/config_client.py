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

    async def send_version(self, project: str, name: str, asked: PublishConfig) -> PublishedConfig:
        return await self._fetch_as("POST", _path(project, name, "versions"), PublishedConfig, _JSON(asked))

    async def upload_content(self, project: str, digest: str, content: bytes) -> None:
        await self._fetch("PUT", _content_path(project, digest), content)

    async def download_content(self, project: str, digest: str) -> bytes:
        return await self._fetch("GET", _content_path(project, digest), b"")

    async def fetch_bundles(self, project: str) -> list[ConfigBundle]:
        return await self._fetch_as("GET", _path(project), list[ConfigBundle])

    async def fetch_bundle(self, project: str, name: str) -> ConfigBundle:
        return await self._fetch_as("GET", _path(project, name), ConfigBundle)

    async def fetch_version(self, project: str, name: str, version: int) -> ConfigContent:
        return await self._fetch_as("GET", _path(project, name, "versions", str(version)), ConfigContent)

    async def set_pointer(self, project: str, name: str, version: int) -> ConfigBundle:
        return await self._fetch_as(
            "PUT", _path(project, name, "pointer"), ConfigBundle, _JSON(ConfigPointer(version=version))
        )

    async def set_shares(self, project: str, name: str, projects: list[str]) -> ConfigBundle:
        return await self._fetch_as(
            "PUT", _path(project, name, "shares"), ConfigBundle, _JSON(ConfigShares(projects=projects))
        )

    async def delete_bundle(self, project: str, name: str) -> None:
        await self._fetch("DELETE", _path(project, name), b"")

    async def _fetch_as(self, method: str, path: str, type_: type[T], body: bytes = b"") -> T:
        return msgspec.json.decode(await self._fetch(method, path, body), type=type_)


def _path(project: str, *steps: str) -> str:
    """Quote names, which come as the user typed them."""
    return "/".join(["/v1/projects", quote(project, safe=""), "config", *(quote(each, safe="") for each in steps)])


def _content_path(project: str, digest: str) -> str:
    return f"/v1/projects/{quote(project, safe='')}/config-contents/{digest}"
