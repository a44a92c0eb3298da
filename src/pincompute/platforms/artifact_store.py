"""Client of an artifact store, whose files never change: a folder, or a generic repository of Artifactory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import BUILD_ALTERED, STORE_FAILED
from pincompute.base.response_body import read_bounded

MAX_ARTIFACT_BYTES = 4 << 20
"""Size limit of one artifact; ours are text files."""
_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=5)
_CHECKSUM_HEADER = "X-Checksum-Sha256"


class ArtifactStore(Protocol):
    """Store of immutable files. Paths are relative and use `/`."""

    location: str

    async def get(self, path: str) -> bytes | None:
        """Content of a file, or None if it does not exist."""
        ...

    async def put(self, path: str, body: bytes, properties: Mapping[str, str]) -> None:
        """Stores a file. The same content again is accepted; other content under an existing path is refused."""
        ...

    async def list_names(self, path: str) -> list[str]:
        """Names of the files and folders in a folder."""
        ...


class _Child(msgspec.Struct):
    uri: str


class _FolderInfo(msgspec.Struct):
    """Artifactory's description of a folder; only the fields we need."""

    children: list[_Child] = []


class _UploadResult(msgspec.Struct):
    """Artifactory's response to an upload; only the fields we need."""

    checksums: dict[str, str] = {}


@asynccontextmanager
async def open_artifact_store(location: str, token: Callable[[], str] = str) -> AsyncGenerator[ArtifactStore]:
    """Opens `https://…/artifactory/REPOSITORY`, or a folder. `token` is called for each request."""
    if "://" not in location:
        yield FolderStore(Path(location))
        return
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
        yield ArtifactoryStore(session, location, token)


class FolderStore:
    def __init__(self, folder: Path) -> None:
        self.location = str(folder)
        self._folder = folder

    async def get(self, path: str) -> bytes | None:
        return await asyncio.to_thread(self._get, path)

    async def put(self, path: str, body: bytes, properties: Mapping[str, str]) -> None:
        del properties
        await asyncio.to_thread(self._put, path, body)

    async def list_names(self, path: str) -> list[str]:
        folder = self._folder / path
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []

    def _get(self, path: str) -> bytes | None:
        try:
            with (self._folder / path).open("rb") as file:
                body = file.read(MAX_ARTIFACT_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _store_failed(self.location, str(error)) from error
        if len(body) > MAX_ARTIFACT_BYTES:
            raise _store_failed(self.location, f"{path} is larger than {MAX_ARTIFACT_BYTES:,} bytes")
        return body

    def _put(self, path: str, body: bytes) -> None:
        file = self._folder / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".") as fresh:
                fresh.write(body)
                fresh.flush()
                os.fsync(fresh.fileno())
                os.fchmod(fresh.fileno(), 0o644)
                # A hard link publishes the complete file at once, and fails if the path exists.
                os.link(fresh.name, file)
        except FileExistsError:
            if file.read_bytes() != body:
                raise _already_published(self.location, path) from None
        except OSError as error:
            raise _store_failed(self.location, str(error)) from error


class ArtifactoryStore:
    def __init__(self, session: aiohttp.ClientSession, location: str, token: Callable[[], str]) -> None:
        self._token = token
        self._url = location.rstrip("/")
        # The location is shown in messages: without user and password.
        self.location = str(URL(self._url).with_user(None))
        server, _, self._repository = self._url.rpartition("/")
        self._session = session
        self._info_url = f"{server}/api/storage/{self._repository}"

    async def get(self, path: str) -> bytes | None:
        async with self._request("GET", self._file_url(path), known=(200, 404)) as response:
            if response.status == 404:
                return None
            body = await self._read_body(response, path)
            checksum = response.headers.get(_CHECKSUM_HEADER)
        if checksum and checksum != _sha256(body):
            raise _store_failed(self.location, f"the content of {path} does not match its checksum")
        return body

    async def put(self, path: str, body: bytes, properties: Mapping[str, str]) -> None:
        existing = await self.get(path)
        if existing == body:
            return
        if existing is not None:
            raise _already_published(self.location, path)
        matrix = "".join(f";{_quote(name)}={_quote(value)}" for name, value in sorted(properties.items()))
        headers = {
            _CHECKSUM_HEADER: _sha256(body),
            "X-Checksum-Sha1": hashlib.sha1(body, usedforsecurity=False).hexdigest(),
        }
        async with self._request(
            "PUT", self._file_url(path) + matrix, known=(200, 201), headers=headers, data=body
        ) as response:
            found = msgspec.json.decode(await self._read_body(response, path), type=_UploadResult)
        stored = found.checksums.get("sha256")
        if stored and stored != _sha256(body):
            raise _store_failed(self.location, f"the stored content of {path} does not match the upload")

    async def list_names(self, path: str) -> list[str]:
        async with self._request("GET", f"{self._info_url}/{quote(path)}", known=(200, 404)) as response:
            if response.status == 404:
                return []
            children = msgspec.json.decode(await self._read_body(response, path), type=_FolderInfo).children
        return sorted(each.uri.strip("/") for each in children)

    async def _read_body(self, response: aiohttp.ClientResponse, path: str) -> bytes:
        body = await read_bounded(response, MAX_ARTIFACT_BYTES)
        if body is None:
            raise _store_failed(self.location, f"{path} is larger than {MAX_ARTIFACT_BYTES:,} bytes")
        return body

    def _file_url(self, path: str) -> str:
        return f"{self._url}/{quote(path)}"

    @asynccontextmanager
    async def _request(
        self, method: str, url: str, *, known: tuple[int, ...], headers: Mapping[str, str] | None = None, **options: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        options["headers"] = {**self._auth_header(), **(headers or {})}
        try:
            # A redirect would lead to a server that is not configured as a store, with our token.
            async with self._session.request(
                method, URL(url, encoded=True), allow_redirects=False, **options
            ) as response:
                if response.status not in known:
                    body = (await response.content.read(500)).decode("utf-8", "replace")
                    raise _store_failed(self.location, f"HTTP {response.status} for {method}", body)
                yield response
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError, RecursionError) as error:
            raise _store_failed(self.location, "no valid response", str(error)) from error

    def _auth_header(self) -> dict[str, str]:
        token = self._token()
        if not (token.isascii() and token.isprintable()):
            raise _store_failed(self.location, "its token must be printable ASCII")
        return {"Authorization": f"Bearer {token}"} if token else {}


def _quote(text: str) -> str:
    return quote(text, safe="")


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _store_failed(location: str, what: str, note: str = "") -> Refused:
    return Refused(Problem(STORE_FAILED, f"artifact store {location}: {what}", note=note))


def _already_published(location: str, path: str) -> Refused:
    what = "other content is published at this path, and published files never change"
    return Refused(Problem(BUILD_ALTERED, what, Where(object=f"{location}/{path}"), next="publish another version"))
