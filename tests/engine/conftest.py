"""A real registry of images, over TLS, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pincompute.base.certificates import Authority
from pincompute.base.context import Context
from pincompute.engine import processes
from pincompute.engine.home import Home
from pincompute.engine.images import registry
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """A platform that is nothing but its registry, as `pin image` finds it."""
    home = Home("images", tmp_path_factory.mktemp("state") / "images")
    home.root.mkdir()
    authority = Authority(home.certificates)
    authority.establish()
    platform = Platform(home, Programs(home.root / "none"), authority, choose({}, None))
    registry.prepare(platform)
    (part,) = registry.parts(platform)
    process = processes.start(part, home)
    try:
        processes.await_ready({part.name: (part, process)}, home)
        yield Context(
            name=home.name, desk="", token="", kubeconfig="",
            images=registry.address(platform), certificates=str(home.certificates),
        )  # fmt: skip
    finally:
        processes.stop([process])
