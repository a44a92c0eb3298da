"""The third wire: a store of artifacts, which are files that never change.

A folder is one; so is a generic repository of Artifactory, by its REST calls.
"""

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
from pincompute.kube.reading import whole

MOST = 4 << 20
"""Bytes of one artifact: what is kept here is text."""
_TIMEOUT = aiohttp.ClientTimeout(total=60, sock_connect=5)
_CHECKSUM = "X-Checksum-Sha256"


class Store(Protocol):
    """Paths are relative, with `/` between their words."""

    where: str

    async def get(self, path: str) -> bytes | None:
        """Nothing where there is none."""
        ...

    async def put(self, path: str, body: bytes, properties: Mapping[str, str]) -> None:
        """The same again is as good as once; something else in its place is refused."""
        ...

    async def names(self, path: str) -> list[str]:
        """What lies below, by name."""
        ...


class _Child(msgspec.Struct):
    uri: str


class _Listed(msgspec.Struct):
    """A folder, as far as it is read."""

    children: list[_Child] = []


class _Kept(msgspec.Struct):
    """What was put, as far as it is read."""

    checksums: dict[str, str] = {}


@asynccontextmanager
async def open_store(where: str, token: Callable[[], str] = str) -> AsyncGenerator[Store]:
    """`https://…/artifactory/REPOSITORY`, or a folder. Which token opens it is asked each time."""
    if "://" not in where:
        yield Folder(Path(where))
        return
    async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
        yield Artifactory(session, where, token)


class Folder:
    def __init__(self, folder: Path) -> None:
        self.where = str(folder)
        self._folder = folder

    async def get(self, path: str) -> bytes | None:
        return await asyncio.to_thread(self._get, path)

    async def put(self, path: str, body: bytes, properties: Mapping[str, str]) -> None:
        del properties
        await asyncio.to_thread(self._put, path, body)

    async def names(self, path: str) -> list[str]:
        place = self._folder / path
        return sorted(each.name for each in place.iterdir()) if place.is_dir() else []

    def _get(self, path: str) -> bytes | None:
        try:
            return (self._folder / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _failed(self.where, str(error)) from error

    def _put(self, path: str, body: bytes) -> None:
        file = self._folder / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".") as fresh:
                fresh.write(body)
                fresh.flush()
                os.fsync(fresh.fileno())
                os.fchmod(fresh.fileno(), 0o644)
                # Whole or not at all, and never over what is there.
                os.link(fresh.name, file)
        except FileExistsError:
            if file.read_bytes() != body:
                raise _taken(self.where, path) from None
        except OSError as error:
            raise _failed(self.where, str(error)) from error


class Artifactory:
    def __init__(self, session: aiohttp.ClientSession, where: str, token: Callable[[], str]) -> None:
        self._token = token
        self._where = where.rstrip("/")
        # Who stands before an @ comes in with a password, and that is for nobody to read.
        self.where = str(URL(self._where).with_user(None))
        server, _, self._repository = self._where.rpartition("/")
        self._session = session
        self._info = f"{server}/api/storage/{self._repository}"

    async def get(self, path: str) -> bytes | None:
        async with self._ask("GET", self._place(path), known=(200, 404)) as answer:
            if answer.status == 404:
                return None
            body = await self._whole(answer, path)
            promised = answer.headers.get(_CHECKSUM)
        if promised and promised != _sha256(body):
            raise _failed(self.where, f"what it sent of {path} is not what its checksum says")
        return body

    async def put(self, path: str, body: bytes, properties: Mapping[str, str]) -> None:
        there = await self.get(path)
        if there == body:
            return
        if there is not None:
            raise _taken(self.where, path)
        said = "".join(f";{_word(name)}={_word(value)}" for name, value in sorted(properties.items()))
        headers = {_CHECKSUM: _sha256(body), "X-Checksum-Sha1": hashlib.sha1(body, usedforsecurity=False).hexdigest()}
        async with self._ask("PUT", self._place(path) + said, known=(200, 201), headers=headers, data=body) as answer:
            kept = msgspec.json.decode(await self._whole(answer, path), type=_Kept).checksums.get("sha256")
        if kept and kept != _sha256(body):
            raise _failed(self.where, f"what it keeps of {path} is not what was sent")

    async def names(self, path: str) -> list[str]:
        async with self._ask("GET", f"{self._info}/{quote(path)}", known=(200, 404)) as answer:
            if answer.status == 404:
                return []
            children = msgspec.json.decode(await self._whole(answer, path), type=_Listed).children
        return sorted(each.uri.strip("/") for each in children)

    async def _whole(self, answer: aiohttp.ClientResponse, path: str) -> bytes:
        body = await whole(answer, MOST)
        if body is None:
            raise _failed(self.where, f"{path} has more than {MOST:,} bytes")
        return body

    def _place(self, path: str) -> str:
        return f"{self._where}/{quote(path)}"

    @asynccontextmanager
    async def _ask(
        self, method: str, url: str, *, known: tuple[int, ...], headers: Mapping[str, str] | None = None, **words: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        words["headers"] = {**self._shown(), **(headers or {})}
        try:
            # Wherever else it might lead to, nobody has named as a store.
            async with self._session.request(method, URL(url, encoded=True), allow_redirects=False, **words) as answer:
                if answer.status not in known:
                    said = (await answer.content.read(500)).decode("utf-8", "replace")
                    raise _failed(self.where, f"it answered {answer.status} to {method}", said)
                yield answer
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError, RecursionError) as error:
            raise _failed(self.where, "it does not answer as a store does", str(error)) from error

    def _shown(self) -> dict[str, str]:
        token = self._token()
        if not (token.isascii() and token.isprintable()):
            raise _failed(self.where, "its token has characters that no token has")
        return {"Authorization": f"Bearer {token}"} if token else {}


def _word(text: str) -> str:
    return quote(text, safe="")


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _failed(where: str, what: str, note: str = "") -> Refused:
    return Refused(Problem(STORE_FAILED, f"the artifact store {where}: {what}", note=note))


def _taken(where: str, path: str) -> Refused:
    what = "something else was published there, and what is published never changes"
    return Refused(Problem(BUILD_ALTERED, what, Where(object=f"{where}/{path}"), next="publish it as another version"))
