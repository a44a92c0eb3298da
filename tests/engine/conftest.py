"""A real image registry with TLS for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pincompute.base.certificate_authority import Authority
from pincompute.base.platform_context import Context
from pincompute.engine import processes
from pincompute.engine.home import Home
from pincompute.engine.images import registry
from pincompute.engine.platform import Platform, Programs
from pincompute.engine.ports import choose_ports


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """Context of a platform that consists of a registry only."""
    home = Home("images", tmp_path_factory.mktemp("state") / "images")
    home.root.mkdir()
    authority = Authority(home.certificates)
    authority.establish()
    platform = Platform(home, Programs(home.root / "none"), authority, choose_ports({}, None))
    registry.prepare_registry(platform)
    (part,) = registry.registry_parts(platform)
    process = processes.start(part, home)
    try:
        processes.await_ready({part.name: (part, process)}, home)
        yield Context(
            name=home.name, desk="", token="", kubeconfig="",
            images=registry.registry_address(platform), certificates=str(home.certificates),
        )  # fmt: skip
    finally:
        processes.stop([process])
