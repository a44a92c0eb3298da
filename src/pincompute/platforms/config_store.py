"""The desk's client of the config store, which keeps the configuration bundles of projects."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp
import msgspec

from pincompute.api.config_bundle import (
    ConfigBundle,
    ConfigContent,
    ConfigPointer,
    ConfigShares,
    PublishConfig,
    PublishedConfig,
    StoredPublish,
)
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import CONFIG_STORE_UNAVAILABLE

T = TypeVar("T")
REQUEST_TIMEOUT_S = 15.0


class ConfigStoreClient:
    """Refused has the store's own problems; a store that does not respond is ConfigStoreUnavailable."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def put_content(self, project: str, digest: str, content: bytes) -> None:
        await self._send("PUT", f"/v1/projects/{project}/contents/{digest}", content)

    async def read_content(self, project: str, digest: str) -> bytes:
        return await self._send("GET", f"/v1/projects/{project}/contents/{digest}")

    async def publish_version(
        self, project: str, name: str, asked: PublishConfig, by: str, in_use: Sequence[int]
    ) -> PublishedConfig:
        body = msgspec.json.encode(StoredPublish(asked.files, by, list(in_use)))
        return await self._send_decoded("POST", f"{_bundle_path(project, name)}/versions", PublishedConfig, body)

    async def list_bundles(self, project: str) -> list[ConfigBundle]:
        return await self._send_decoded("GET", f"/v1/projects/{project}/bundles", list[ConfigBundle])

    async def read_bundle(self, project: str, name: str) -> ConfigBundle:
        return await self._send_decoded("GET", _bundle_path(project, name), ConfigBundle)

    async def read_version(self, project: str, name: str, version: int) -> ConfigContent:
        return await self._send_decoded("GET", f"{_bundle_path(project, name)}/versions/{version}", ConfigContent)

    async def point(self, project: str, name: str, version: int) -> ConfigBundle:
        body = msgspec.json.encode(ConfigPointer(version=version))
        return await self._send_decoded("PUT", f"{_bundle_path(project, name)}/pointer", ConfigBundle, body)

    async def share(self, project: str, name: str, asked: ConfigShares) -> ConfigBundle:
        path = f"{_bundle_path(project, name)}/shares"
        return await self._send_decoded("PUT", path, ConfigBundle, msgspec.json.encode(asked))

    async def delete(self, project: str, name: str) -> None:
        await self._send("DELETE", _bundle_path(project, name))

    async def _send_decoded(self, method: str, path: str, type_: type[T], body: bytes = b"") -> T:
        try:
            return msgspec.json.decode(await self._send(method, path, body), type=type_)
        except msgspec.DecodeError as error:
            raise _unavailable(str(error)) from error

    async def _send(self, method: str, path: str, body: bytes = b"") -> bytes:
        try:
            async with self._session.request(method, path, data=body or None) as response:
                answer = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _unavailable(str(error) or type(error).__name__) from error
        if response.status < 300:
            return answer
        if response.content_type == "application/problem+json":
            problems: list[dict[str, Any]] = msgspec.json.decode(answer)
            raise Refused(*map(Problem.from_json, problems))
        raise _unavailable(f"HTTP status {response.status}")


def _bundle_path(project: str, name: str) -> str:
    return f"/v1/projects/{project}/bundles/{name}"


def _unavailable(why: str) -> Refused:
    return Refused(Problem(CONFIG_STORE_UNAVAILABLE, f"the config store does not respond: {why}", next="pin status"))


@asynccontextmanager
async def open_config_store(address: str, tls: ssl.SSLContext) -> AsyncGenerator[ConfigStoreClient]:
    """A client that connects with a client certificate."""
    timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT_S)
    connector = aiohttp.TCPConnector(ssl=tls)
    async with aiohttp.ClientSession(address, connector=connector, timeout=timeout) as session:
        yield ConfigStoreClient(session)
