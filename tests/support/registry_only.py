"""A platform that consists of its image registry: both processes, on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pincompute.base.certificate_authority import Authority
from pincompute.engine import processes
from pincompute.engine.home import Home
from pincompute.engine.images import registry
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports


@pytest.fixture(scope="session")
def registry_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    home = Home("images", tmp_path_factory.mktemp("state") / "images")
    home.root.mkdir()
    authority = Authority(home.certificates)
    authority.establish()
    platform = Platform(home, Programs(home.root / "none"), authority, choose_ports({}, None), real=True)
    registry.prepare_registry(platform)
    started = {part.name: (part, processes.start(part, home)) for part in registry.registry_parts(platform)}
    try:
        processes.await_ready(started, home)
        yield platform
    finally:
        processes.stop([process for _, process in started.values()])
