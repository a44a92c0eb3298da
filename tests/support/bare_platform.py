"""A bare platform, Kubernetes with a real node, for tests of `pin install`, which must uninstall again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pincompute.base.certificate_authority import Authority
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine.down import down
from pincompute.engine.home import home_of
from pincompute.engine.images import own_image, registry
from pincompute.engine.platform import Platform
from pincompute.engine.up import up
from pincompute.engine.up_options import UpOptions
from real_platform import free_port

NEXT_IMAGE = "pincompute:next"
"""PinCompute's image under another name, as if of another version."""
PART_IMAGES = ("pincompute-identity:1", "pincompute-logs:1", "pincompute-logs:2")


DESK_PORT = 30443
"""Node port of an installed desk."""


class DeskEndpoint(NamedTuple):
    """URL and TLS files of an installed desk."""

    address: str
    certificate: Path
    key: Path
    authority: Path

    @classmethod
    def create(cls, platform: Platform, folder: Path) -> DeskEndpoint:
        ca = Authority(folder / "entrance")
        ca.establish()
        ca.issue("desk", hosts=(platform.node_address,))
        address = f"https://{platform.node_address}:{DESK_PORT}"
        return cls(address, ca.certificate("desk"), ca.key("desk"), ca.bundle)


@pytest.fixture(scope="session")
def bare_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    options = UpOptions(http_port=free_port(), bare=True)
    platform = up(home_of("bare", tmp_path_factory.mktemp("bare")), options, Path(setting_value("cache")), Progress())
    try:
        asyncio.run(_push_images(platform))
        yield platform
    finally:
        down(platform.home, Progress(), purge=True)


async def _push_images(platform: Platform) -> None:
    async with registry.open_registry(platform) as images:
        await own_image.push_own_image(images, Progress(), (own_image.NAME, NEXT_IMAGE))
        await own_image.push_variants(images, Progress(), PART_IMAGES)
