"""The sidecars and runtimes that come with the platform: pushes their images and creates their objects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import yaml

from pincompute.api.kinds import KINDS
from pincompute.api.names import ENGINE, GROUP, VERSION
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine.images import own_image, registry
from pincompute.engine.manifest_files import MANIFESTS
from pincompute.engine.mtls import proxy
from pincompute.engine.platform import Platform
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists
from pincompute.kube.resource import Object, Resource

PARTS_FOLDER = MANIFESTS / "parts"
CONTAINER_FIELDS = ("initContainers", "sidecars")
"""Fields of a part with containers."""


async def push_part_images(platform: Platform, progress: Progress) -> dict[str, str]:
    """Push the images of the bundled sidecars: the platform's own image under the name and version of each, and mtls.

    Returns the digest of each name.
    """
    specs = [each["spec"] for each in bundled_runtime_objects()]
    names = sorted(
        {container["image"] for spec in specs for field in CONTAINER_FIELDS for container in spec.get(field, ())}
    )
    async with registry.open_registry(platform) as images:
        proxies = [each for each in names if each.startswith(f"{proxy.IMAGE}:")]
        cache = Path(setting_value("cache"))
        pushed = [
            *await own_image.push_variants(images, progress, [each for each in names if each not in proxies]),
            *await proxy.push_proxy_images(images, cache, progress, proxies),
        ]
        return {each.name: each.digest for each in pushed}


def pin_images(objects: list[Object], digests: Mapping[str, str]) -> list[Object]:
    """The objects with `NAME:TAG@DIGEST` for each image with a digest, so that an overwritten tag changes nothing."""

    def pinned(container: Object) -> Object:
        digest = digests.get(container["image"])
        return {**container, "image": f"{container['image']}@{digest}"} if digest else container

    def with_pinned(spec: Object) -> Object:
        return spec | {field: [pinned(each) for each in spec[field]] for field in CONTAINER_FIELDS if field in spec}

    return [{**each, "spec": with_pinned(each["spec"])} for each in objects]


async def create_runtimes(client: Client, objects: list[Object], manager: str = ENGINE) -> None:
    """Create sidecars and daemons before the runtimes that refer to them. All are immutable, so existing ones stay."""
    for kind in ("PinterestSidecar", "PinterestDaemon", "Runtime"):
        await asyncio.gather(*(_create(client, each, manager) for each in objects if each["kind"] == kind))


def bundled_runtime_objects() -> list[Object]:
    """The bundled objects, as written in the manifests."""
    return [each for file in sorted(PARTS_FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())]


async def _create(client: Client, object_: Object, manager: str) -> None:
    kind = KINDS[object_["kind"]]
    resource = Resource(GROUP, VERSION, kind.plural(), kind.__name__, namespaced=not kind.CLUSTER_SCOPED)
    with suppress(AlreadyExists):
        await client.create(resource, object_, manager=manager)
