"""Builds the proxy of mutual TLS, and pushes it as an image with nothing else in it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pincompute.base.progress import Progress
from pincompute.engine.build import GoModule, Recipe, build_module, pinned_version
from pincompute.engine.images.loading import LoadedImage, load_images
from pincompute.engine.nodes.program_image import docker_archive
from pincompute.kube.image_registry import ImageRegistry

SOURCE = Path(__file__).parent / "source"
IMAGE = "pincompute-mtls"
"""Name of the image without its tag, which is the version of the part."""
_SPIFFE = "github.com/spiffe/go-spiffe/v2"


def build_proxy(cache: Path, progress: Progress) -> Path:
    """The program; builds it if necessary."""
    title = f"the mTLS proxy with go-spiffe {pinned_version(_SPIFFE, SOURCE)}"
    return build_module(GoModule("mtls", title, SOURCE, (Recipe("mtls", "."),)), cache, progress) / "mtls"


async def push_proxy_images(
    registry: ImageRegistry, cache: Path, progress: Progress, names: Sequence[str]
) -> list[LoadedImage]:
    """Push the program under each of these names."""
    program = await asyncio.to_thread(build_proxy, cache, progress)
    pushed: list[LoadedImage] = []
    for name in names:
        with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
            archive.write(docker_archive(name, program))
            archive.flush()
            pushed += await load_images(registry, Path(archive.name), [name])
    return pushed
