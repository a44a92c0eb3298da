"""Debian's nginx, fetched once into the cache where the machine has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pincompute.engine import debian


@pytest.fixture(scope="session")
def nginx() -> Path:
    debian.bring("nginx")
    program = debian.program("nginx")
    assert program is not None
    return program
