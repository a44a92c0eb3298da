"""A config store without a network, and a source of bundles that reads it as a pod does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.test_utils import TestServer

from pincompute.agents.callers import Caller
from pincompute.agents.config.limits import ConfigLimits
from pincompute.agents.config.server import build_app
from pincompute.agents.config.source import BundleRejected, ConfigSource, Version
from pincompute.agents.config.store import ConfigStore
from pincompute.agents.store_connection import StoreUnavailable
from pincompute.api.config_bundle import PublishedConfig
from pincompute.api.names import DESK
from pincompute.base.problem import Refused
from pincompute.objects.config_bundle import BundleFile, content_digest
from pincompute.platforms.config_store import ConfigStoreClient


def bundle_files(files: Mapping[str, bytes]) -> list[BundleFile]:
    return [BundleFile(path, content_digest(content), len(content)) for path, content in files.items()]


def new_config_store(folder: Path, limits: ConfigLimits | None = None) -> ConfigStore:
    """A store that knows the projects ads and search."""
    store = ConfigStore(folder, limits) if limits else ConfigStore(folder)
    for project in ("ads", "search"):
        store.observe_namespace(project, f"uid-of-{project}")
    return store


def publish_files(
    store: ConfigStore, files: Mapping[str, bytes], bundle: str = "ads/flags", in_use: Sequence[int] = ()
) -> PublishedConfig:
    project, _, name = bundle.partition("/")
    for content in files.values():
        store.put_content(project, content_digest(content), content)
    return store.publish(project, name, bundle_files(files), "ann", in_use)


class StoreSource(ConfigSource):
    """Reads a store in the same process. Its attributes make it fail, as a network or an attacker does."""

    def __init__(self, store: ConfigStore) -> None:
        self.store = store
        self.failure: Exception | None = None
        self.replaced: dict[str, bytes] = {}
        """Contents by digest that it sends instead of the true ones."""
        self.version: Version | None = None
        """A version that it sends instead of the true one."""
        self.reads: list[str] = []

    def read_version(self, bundle: str, number: int = 0) -> Version:
        self._fail()
        if self.version:
            return self.version
        project, _, name = bundle.partition("/")
        try:
            found = self.store.read_version(project, name, number)
        except Refused as refused:
            raise BundleRejected(str(refused)) from refused
        return Version(found.version, found.digest, [each.bundle_file() for each in found.files])

    def read_content(self, bundle: str, number: int, digest: str) -> bytes:
        del number
        self._fail()
        self.reads.append(digest)
        return self.replaced.get(digest) or self.store.read_content(bundle.partition("/")[0], digest)

    def wait_changed(self, bundles: Sequence[str], known: Sequence[str]) -> list[str]:
        self._fail()
        del known
        return [self._state(*bundle.split("/")) for bundle in bundles]

    def _state(self, project: str, name: str) -> str:
        try:
            found = self.store.read_version(project, name)
        except Refused:
            return ""
        return f"{found.version}={found.digest}"

    def _fail(self) -> None:
        if self.failure:
            raise self.failure


def unavailable() -> StoreUnavailable:
    return StoreUnavailable("connection refused")


@asynccontextmanager
async def config_store_client(store: ConfigStore) -> AsyncGenerator[ConfigStoreClient]:
    """The desk's client of a store, over HTTP."""
    async with (
        TestServer(build_app(store, lambda _: Caller(DESK))) as server,
        aiohttp.ClientSession(server.make_url("/")) as session,
    ):
        yield ConfigStoreClient(session)


@asynccontextmanager
async def served_config(store: ConfigStore, caller: Caller) -> AsyncGenerator[Callable[..., Any]]:
    """Requests to the store's HTTP API as one caller."""
    async with TestServer(build_app(store, lambda _: caller)) as server, aiohttp.ClientSession() as session:

        def request(method: str, path: str, body: bytes = b"", **query: Any) -> Any:
            return session.request(method, server.make_url(path), params=query, data=body or None)

        yield request
