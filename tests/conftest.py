"""What tests of several layers share: a real API server, started once for the whole run."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from control_plane import ControlPlane, control_plane
from pincompute.base.settings import setting
from pincompute.engine.build import build
from pincompute.engine.progress import Progress

# How long an example takes is the machine's matter.
settings.register_profile("usual", deadline=None)
settings.register_profile("long", max_examples=5_000, deadline=None)
settings.load_profile("usual")


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    programs = build(Path(setting("cache")), Progress())
    with control_plane(programs.kubernetes, tmp_path_factory.mktemp("plane")) as started:
        yield started


@pytest.fixture(autouse=True)
def found_where_it_was_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whoever leaves a connection open is told of it, and not whoever comes when it is found."""
    yield
    if request.node.get_closest_marker("cluster"):
        gc.collect()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write what is found as what is wanted")
    parser.addoption(
        "--fuzz", type=int, default=0, help="how often tenants ask the desk whatever there is, all together"
    )
