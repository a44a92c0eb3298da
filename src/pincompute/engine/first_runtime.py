"""The parts that come with a platform, and the runtimes of them."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import yaml

from pincompute.api.kinds import KINDS
from pincompute.api.names import ENGINE, GROUP, VERSION
from pincompute.engine.bootstrap import MANIFESTS
from pincompute.engine.images import own_image, registry
from pincompute.engine.platform import Platform
from pincompute.engine.progress import Progress
from pincompute.kube.client import Client
from pincompute.kube.errors import AlreadyExists
from pincompute.kube.registry import Registry
from pincompute.kube.resource import Object, Resource

PARTS = MANIFESTS / "parts"


async def bring_images(platform: Platform, progress: Progress) -> None:
    """Those of the parts that run in pods: the platform's own, under the name and version of each."""
    sidecars = [each["spec"].get("sidecars", ()) for each in given()]
    names = sorted({container["image"] for each in sidecars for container in each})
    async with Registry(registry.address(platform), platform.home.certificates) as images:
        await own_image.bring_parts(images, progress, names)


async def furnish(client: Client, objects: list[Object], manager: str = ENGINE) -> None:
    """Parts before the runtimes that name them; neither ever changes, so what is there stays as it is."""
    for kind in ("PinterestSidecar", "PinterestDaemon", "Runtime"):
        await asyncio.gather(*(_make(client, each, manager) for each in objects if each["kind"] == kind))


def given() -> list[Object]:
    """As the files say it."""
    return [each for file in sorted(PARTS.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())]


async def _make(client: Client, object_: Object, manager: str) -> None:
    noun = KINDS[object_["kind"]]
    resource = Resource(GROUP, VERSION, noun.plural(), noun.__name__, namespaced=not noun.CLUSTER_WIDE)
    with suppress(AlreadyExists):
        await client.create(resource, object_, manager=manager)
