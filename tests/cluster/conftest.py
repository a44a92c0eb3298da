"""Platforms for these tests. Tests that this machine cannot run are deselected and listed at the end."""

from __future__ import annotations

import pytest

from bare_platform import bare_platform as bare_platform
from pincompute.base.problem import Problem
from pincompute.engine.nodes import real_node
from shared_platform import platform as platform

_REAL = {"real_platform", "bare_platform"}
_OBSTACLES = pytest.StashKey[tuple[Problem, ...]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests with a real node, before `-m` selects, and deselect them on machines that cannot run one."""
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
