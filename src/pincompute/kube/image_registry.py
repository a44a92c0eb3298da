"""Async client of an image registry (OCI distribution API)."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, Self

import aiohttp
import msgspec
from yarl import URL

from pincompute.base.platform_context import Context
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import REGISTRY_FAILED
from pincompute.base.registry_token import CATALOG, RegistryAccess, RegistryTokenSigner, repository_access
from pincompute.objects.image import ImageName, listed_image_name, parse_image

# Accepted manifests: of one image, or an index of images for several architectures, in the formats of Docker and OCI.
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
# Bounds the wait for each response; sending a layer may take longer.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=120)
_PAGE_SIZE = 1000
_CHUNK_BYTES = 1 << 20


Authorize = Callable[[RegistryAccess], Awaitable[str]]
"""Returns a token for the access; empty if the registry is used without."""


class BlobUpload(NamedTuple):
    """A blob to upload. Its chunks are read while they are sent."""

    digest: str
    size: int
    chunks: Iterator[bytes]


class ImageRegistry:
    """Used as `async with ImageRegistry("127.0.0.1:5000", certificates, authorize) as registry`."""

    def __init__(self, address: str, certificates: Path, authorize: Authorize) -> None:
        self.address = address
        self._authority = certificates / "ca.crt"
        self._authorize = authorize

    async def __aenter__(self) -> Self:
        try:
            tls = ssl.create_default_context(cafile=str(self._authority))
        except OSError as error:
            raise self._failed(f"cannot read its certificate authority {self._authority}: {error}") from error
        self._session = aiohttp.ClientSession(
            URL(f"https://{self.address}/v2/"),
            connector=aiohttp.TCPConnector(ssl=tls),
            timeout=_TIMEOUT,
            headers={"Accept": ", ".join(MANIFEST_TYPES)},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def list_images(self) -> list[str]:
        """Every image, by the name that users type."""
        repositories = await self._list_all("_catalog", "repositories", CATALOG)
        return sorted(
            [
                listed_image_name(name, tag)
                for name in repositories
                for tag in await self._list_all(f"{name}/tags/list", "tags", repository_access(name))
            ]
        )

    async def exists(self, image: ImageName) -> bool:
        return await self._has(image.repository, f"manifests/{image.reference}")

    async def resolve_digest(self, image: ImageName) -> str:
        """Digest that the name refers to now; empty if there is no such image."""
        access = repository_access(image.repository)
        path = f"{image.repository}/manifests/{image.reference}"
        async with self._request("HEAD", path, access, known=(200, 404)) as response:
            return response.headers.get("Docker-Content-Digest", "") if response.status == 200 else ""

    async def manifest(self, image: ImageName) -> dict[str, Any]:
        """Manifest of the image; empty if there is no such image."""
        body = await self.read_manifest(image)
        return msgspec.json.decode(body) if body else {}

    async def read_manifest(self, image: ImageName) -> bytes:
        """Manifest of the image as it is stored; empty if there is no such image."""
        access = repository_access(image.repository)
        path = f"{image.repository}/manifests/{image.reference}"
        async with self._request("GET", path, access, known=(200, 404)) as response:
            return await response.read() if response.status == 200 else b""

    async def has_blob(self, repository: str, digest: str) -> bool:
        return await self._has(repository, f"blobs/{digest}")

    async def read_blob(self, repository: str, digest: str) -> AsyncIterator[bytes]:
        """Chunks of a blob, not verified."""
        path = f"{repository}/blobs/{digest}"
        async with self._request("GET", path, repository_access(repository), known=(200,)) as response:
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                yield chunk

    async def put_blob(self, repository: str, upload: BlobUpload) -> bool:
        """Uploads a blob in one request. False if the registry finds that the content does not match the digest."""
        access = repository_access(repository, write=True)
        async with self._request("POST", f"{repository}/blobs/uploads/", access, known=(202,)) as session:
            url = URL(session.headers["Location"], encoded=True).update_query(digest=upload.digest)
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(upload.size)}
        body = _iterate_async(upload.chunks)
        async with self._request("PUT", url, access, known=(201, 400), headers=headers, data=body) as response:
            return response.status == 201

    async def put_manifest(self, image: ImageName, body: bytes, media_type: str) -> None:
        access = repository_access(image.repository, write=True)
        path, headers = f"{image.repository}/manifests/{image.tag}", {"Content-Type": media_type}
        async with self._request("PUT", path, access, known=(201,), headers=headers, data=body):
            pass

    async def _has(self, repository: str, path: str) -> bool:
        access = repository_access(repository)
        async with self._request("HEAD", f"{repository}/{path}", access, known=(200, 404)) as response:
            return response.status == 200

    async def _list_all(self, path: str, field: str, access: RegistryAccess) -> list[str]:
        """All pages of a list. After the last tag of a repository was deleted, the response is null or 404."""
        found: list[str] = []
        query: dict[str, str | int] = {"n": _PAGE_SIZE}
        while True:
            async with self._request("GET", path, access, known=(200, 404), params=query) as response:
                page = (await response.json()).get(field) or []
                more = "next" in response.links
            found += page
            if not more:
                return found
            query["last"] = page[-1]

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        target: str | URL,
        access: RegistryAccess,
        *,
        known: tuple[int, ...],
        headers: Mapping[str, str] = MappingProxyType({}),
        **options: Any,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request. A status that is not in `known` is refused, with the registry's error as note."""
        token = await self._authorize(access)
        sent = {**headers, "Authorization": f"Bearer {token}"} if token else headers
        try:
            async with self._session.request(method, target, headers=sent, **options) as response:
                if response.status not in known:
                    body = (await response.text())[:500]
                    raise self._failed(f"HTTP {response.status} for {method} {response.url.path}", body)
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._failed("it does not answer", str(error)) from error

    def _failed(self, what: str, note: str = "") -> Refused:
        return Refused(Problem(REGISTRY_FAILED, f"image registry {self.address}: {what}", note=note, next="pin status"))


def registry_for(context: Context) -> ImageRegistry:
    """Registry of the platform that a context names."""
    if not context.images:
        what = f"platform '{context.name}' has no image registry that you may use"
        note = "on a platform of pin up images are loaded by its owner; on an installed one, push to your own registry"
        raise Refused(Problem(REGISTRY_FAILED, what, note=note, next="pin status"))
    # A context of an earlier version names no key; the registry of its platform needs none until the next `pin up`.
    signer = RegistryTokenSigner(Path(context.registry_key)) if context.registry_key else None
    return ImageRegistry(context.images, Path(context.certificates), sign_access(signer) if signer else _anonymous)


def sign_access(signer: RegistryTokenSigner) -> Authorize:
    """Access of the platform's owner, who has the key and may write every repository."""

    async def authorize(access: RegistryAccess) -> str:
        return signer.sign("owner", (access,))

    return authorize


async def _anonymous(_: RegistryAccess) -> str:
    return ""


async def image_exists(context: Context, image: str) -> bool:
    """Whether the platform's registry has the image; False for an invalid image name."""
    try:
        name = parse_image(image)
    except ValueError:
        return False
    async with registry_for(context) as registry:
        return await registry.exists(name)


async def list_known_images(context: Context) -> list[str]:
    async with registry_for(context) as registry:
        return await registry.list_images()


async def _iterate_async(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
