"""A cluster that exists: Kubernetes and a real node with nothing of ours. Who installs there removes it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pincompute.base.certificates import Authority
from pincompute.base.settings import setting
from pincompute.engine.down import down
from pincompute.engine.home import home_of
from pincompute.engine.images import own_image, registry
from pincompute.engine.platform import Platform
from pincompute.engine.progress import Progress
from pincompute.engine.settle import Wish
from pincompute.engine.up import up
from pincompute.kube.registry import Registry
from real_platform import free_port

NEXT = "pincompute:next"
"""Our image by another name, as of another version."""
PARTS = ("pincompute-identity:1", "pincompute-logs:1", "pincompute-logs:2")


DESK_PORT = 30443
"""Of every node, where the desk that was installed is to answer."""


class Entrance(NamedTuple):
    """Where a desk on that cluster is to be found, and what it shows there."""

    address: str
    certificate: Path
    key: Path
    authority: Path

    @classmethod
    def of(cls, platform: Platform, folder: Path) -> Entrance:
        made = Authority(folder / "entrance")
        made.establish()
        made.issue("desk", hosts=(platform.node_address,))
        address = f"https://{platform.node_address}:{DESK_PORT}"
        return cls(address, made.certificate("desk"), made.key("desk"), made.bundle)


@pytest.fixture(scope="session")
def bare_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    wish = Wish(http_port=free_port(), bare=True)
    platform = up(home_of("bare", tmp_path_factory.mktemp("bare")), wish, Path(setting("cache")), Progress())
    try:
        asyncio.run(_bring(platform))
        yield platform
    finally:
        down(platform.home, Progress(), purge=True)


async def _bring(platform: Platform) -> None:
    async with Registry(registry.address(platform), platform.home.certificates) as images:
        await own_image.bring(images, Progress(), (own_image.NAME, NEXT))
        await own_image.bring_parts(images, Progress(), PARTS)
