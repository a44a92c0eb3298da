"""Where a record may lie: what must hold of one must hold of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from books import Books, books
from postgres import new_database, postgres

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def server() -> Iterator[Path]:
    with postgres() as socket:
        yield socket


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """As `pin desk --database` takes it."""
    return _address(request, str(tmp_path / "desk.db"))


@pytest.fixture(scope="module", params=KINDS)
def record(request: pytest.FixtureRequest) -> Iterator[Books]:
    with books(_address(request, "")) as opened:
        yield opened


def _address(request: pytest.FixtureRequest, otherwise: str) -> str:
    return new_database(request.getfixturevalue("server")) if request.param == "postgresql" else otherwise
