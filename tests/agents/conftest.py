"""Fixture: Debian's nginx, downloaded once into the cache if the machine has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pincompute.engine import debian


@pytest.fixture(scope="session")
def nginx() -> Path:
    debian.ensure_programs("nginx")
    program = debian.find_program("nginx")
    assert program is not None
    return program
