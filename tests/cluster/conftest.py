"""Platforms for the whole run, and what this machine cannot show: told at the end, never skipped in silence."""

from __future__ import annotations

import pytest

from bare_platform import bare_platform as bare_platform
from pincompute.base.problem import Problem
from pincompute.engine.nodes import real_node
from real_platform import client as client
from real_platform import real_platform as real_platform
from shared_platform import platform as platform

_REAL = {"real_platform", "bare_platform"}
_OBSTACLES = pytest.StashKey[tuple[Problem, ...]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of real containers are chosen only where there can be any."""
    real = [item for item in items if _REAL.intersection(getattr(item, "fixturenames", ()))]
    obstacles = real_node.obstacles() if real else ()
    config.stash[_OBSTACLES] = obstacles
    if obstacles:
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if item not in real]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    obstacles = config.stash.get(_OBSTACLES, ())
    if obstacles:
        terminalreporter.section("what this machine could not show: real containers")
        for problem in obstacles:
            terminalreporter.write_line(problem.text())
