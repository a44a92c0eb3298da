"""What tests of several layers share: a real API server and platforms, each started once for the whole run.

Tests that this machine cannot run are deselected and listed at the end.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bare_platform import bare_platform as bare_platform
from control_plane import ControlPlane, control_plane
from image_builds import build_state as build_state, image_builds as image_builds
from pincompute.base.problem import Problem
from pincompute.base.progress import Progress
from pincompute.base.settings import setting_value
from pincompute.engine.build import build_engine
from pincompute.engine.nodes import real_node
from real_platform import client as client, real_platform as real_platform
from registry_only import registry_platform as registry_platform
from shared_platform import platform as platform

_REAL = {"real_platform", "bare_platform", "pod_network", "image_builds"}
_OBSTACLES = pytest.StashKey[tuple[Problem, ...]]()

# Deadlines of single examples fail on a busy machine.
settings.register_profile("gate", max_examples=40, derandomize=True, deadline=None)
settings.register_profile("long", max_examples=5_000, deadline=None)
settings.load_profile("gate")


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    programs = build_engine(Path(setting_value("cache")), Progress())
    with control_plane(programs.kubernetes, tmp_path_factory.mktemp("plane")) as started:
        yield started


@pytest.fixture(autouse=True, scope="module")
def garbage_collected_per_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """The module that leaves a connection open fails, rather than the one during which it is garbage-collected."""
    yield
    if request.node.get_closest_marker("cluster"):
        gc.collect()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite the expected results with the actual ones")
    parser.addoption("--fuzz", type=int, default=0, help="number of generated requests to the desk; 0: a few")
    parser.addoption("--hunt", action="store_true", help="run kube-hunter, which is installed from PyPI, too")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests with a real node, before `-m` selects, and deselect them on machines that cannot run one.

    Tests with kube-hunter run if the option asks for them.
    """
    hunts = [item for item in items if item.get_closest_marker("hunt") and not config.getoption("--hunt")]
    if hunts:
        config.hook.pytest_deselected(items=hunts)
        items[:] = [item for item in items if item not in hunts]
    real = [item for item in items if _REAL.intersection(getattr(item, "fixturenames", ()))]
    for item in real:
        item.add_marker("node")
    obstacles = real_node.obstacles() if real else ()
    config.stash[_OBSTACLES] = obstacles
    if obstacles:
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if item not in real]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    obstacles = config.stash.get(_OBSTACLES, ())
    if obstacles:
        terminalreporter.section("not tested on this machine: real containers")
        for problem in obstacles:
            terminalreporter.write_line(problem.text())
