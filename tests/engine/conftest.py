"""A real image registry with TLS for the tests of this folder."""

from __future__ import annotations

import pytest

from pincompute.base.platform_context import Context
from pincompute.engine.images import registry
from pincompute.engine.platform import Platform


@pytest.fixture(scope="session")
def images(registry_platform: Platform) -> Context:
    """Context of a platform that consists of a registry only."""
    home = registry_platform.home
    return Context(
        name=home.name, desk="", token="", kubeconfig="",
        images=registry.writes_address(registry_platform), certificates=str(home.certificates),
        registry_key=str(registry.token_key(registry_platform)),
    )  # fmt: skip
