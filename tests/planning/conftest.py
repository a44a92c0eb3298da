"""Fixtures of the planning tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    """With `pytest tests/planning --bless`, actual results are written as expected ones: read the diff afterwards."""
    return bool(request.config.getoption("--bless"))
