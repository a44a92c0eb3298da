"""Databases for tests: each runs with SQLite and with PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres_server import new_database, postgres_server
from record_fixtures import RecordStore, open_record

KINDS = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def server() -> Iterator[Path]:
    with postgres_server() as socket:
        yield socket


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, as for `pin desk --database`."""
    return _address(request, str(tmp_path / "desk.db"))


@pytest.fixture(scope="module", params=KINDS)
def record(request: pytest.FixtureRequest) -> Iterator[RecordStore]:
    with open_record(_address(request, "")) as opened:
        yield opened


def _address(request: pytest.FixtureRequest, otherwise: str) -> str:
    return new_database(request.getfixturevalue("server")) if request.param == "postgresql" else otherwise
