"""The other wire: a small async client of one registry of images (the OCI distribution API)."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import aiohttp
import msgspec
from yarl import URL

from pincompute.base.context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import REGISTRY_FAILED
from pincompute.objects.image import ImageName, parse, stored

# What we ask for: one image, or an index of images for several machines, in Docker's and in OCI's words.
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
# The client waits for one answer at most so long; sending a layer may take longer.
_ANSWER = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=120)
_PAGE = 1000


class Upload(NamedTuple):
    """A blob on its way: its bytes are read only when they are sent."""

    digest: str
    size: int
    chunks: Iterator[bytes]


class Registry:
    """Used as `async with Registry("10.201.0.1:5000", certificates) as registry`."""

    def __init__(self, address: str, certificates: Path) -> None:
        self.address = address
        self._authority = certificates / "ca.crt"

    async def __aenter__(self) -> Self:
        try:
            tls = ssl.create_default_context(cafile=str(self._authority))
        except OSError as error:
            raise self._failed(f"its certificate authority, {self._authority}, cannot be read: {error}") from error
        self._session = aiohttp.ClientSession(
            URL(f"https://{self.address}/v2/"),
            connector=aiohttp.TCPConnector(ssl=tls),
            timeout=_ANSWER,
            headers={"Accept": ", ".join(MANIFESTS)},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def images(self) -> list[str]:
        """Every image, by the name that a person would type."""
        repositories = await self._listed("_catalog", "repositories")
        return sorted(
            [stored(name, tag) for name in repositories for tag in await self._listed(f"{name}/tags/list", "tags")]
        )

    async def exists(self, image: ImageName) -> bool:
        return await self._has(f"{image.repository}/manifests/{image.reference}")

    async def digest(self, image: ImageName) -> str:
        """What the name stands for now; empty where there is none of that name."""
        path = f"{image.repository}/manifests/{image.reference}"
        async with self._ask("HEAD", path, known=(200, 404)) as answer:
            return answer.headers.get("Docker-Content-Digest", "") if answer.status == 200 else ""

    async def manifest(self, image: ImageName) -> dict[str, Any]:
        """What the image consists of; empty where there is none of that name."""
        async with self._ask("GET", f"{image.repository}/manifests/{image.reference}", known=(200, 404)) as answer:
            return msgspec.json.decode(await answer.read()) if answer.status == 200 else {}

    async def has_blob(self, repository: str, digest: str) -> bool:
        return await self._has(f"{repository}/blobs/{digest}")

    async def put_blob(self, repository: str, upload: Upload) -> bool:
        """Send a blob in one piece; false where the registry finds that its content is not what the digest promises."""
        async with self._ask("POST", f"{repository}/blobs/uploads/", known=(202,)) as begun:
            place = URL(begun.headers["Location"], encoded=True).update_query(digest=upload.digest)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(upload.size)}
        body = _asynchronous(upload.chunks)
        async with self._ask("PUT", place, known=(201, 400), headers=headers, data=body) as answer:
            return answer.status == 201

    async def put_manifest(self, image: ImageName, body: bytes, media_type: str) -> None:
        path = f"{image.repository}/manifests/{image.tag}"
        async with self._ask("PUT", path, known=(201,), headers={"Content-Type": media_type}, data=body):
            pass

    async def _has(self, path: str) -> bool:
        async with self._ask("HEAD", path, known=(200, 404)) as answer:
            return answer.status == 200

    async def _listed(self, path: str, what: str) -> list[str]:
        """All pages of a listing. A repository whose last tag was deleted answers null or 404."""
        found: list[str] = []
        query: dict[str, str | int] = {"n": _PAGE}
        while True:
            async with self._ask("GET", path, known=(200, 404), params=query) as answer:
                page = (await answer.json()).get(what) or []
                more = "next" in answer.links
            found += page
            if not more:
                return found
            query["last"] = page[-1]

    @asynccontextmanager
    async def _ask(
        self, method: str, target: str | URL, *, known: tuple[int, ...], **words: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; any answer but the known ones is refused with the registry's own words."""
        try:
            async with self._session.request(method, target, **words) as answer:
                if answer.status not in known:
                    said = (await answer.text())[:500]
                    raise self._failed(f"it answered {answer.status} to {method} {answer.url.path}", said)
                yield answer
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._failed("it does not answer", str(error)) from error

    def _failed(self, what: str, note: str = "") -> Refused:
        return Refused(
            Problem(REGISTRY_FAILED, f"the platform's registry at {self.address}: {what}", note=note, next="pin status")
        )


def registry_of(context: Context) -> Registry:
    """The registry of a platform, as whoever speaks to that platform finds it."""
    if not context.images:
        raise Refused(
            Problem(REGISTRY_FAILED, f"the platform '{context.name}' has no registry of its own", next="pin status")
        )
    return Registry(context.images, Path(context.certificates))


async def exists(context: Context, image: str) -> bool:
    """Whether the platform's own registry has the image; a name that cannot be one is nowhere."""
    try:
        name = parse(image)
    except ValueError:
        return False
    async with registry_of(context) as registry:
        return await registry.exists(name)


async def known(context: Context) -> list[str]:
    async with registry_of(context) as registry:
        return await registry.images()


async def _asynchronous(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
