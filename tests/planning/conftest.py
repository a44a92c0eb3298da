"""What the planner's tests share."""

from __future__ import annotations

import pytest


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    """`pytest tests/planning --bless` writes what is found as what is wanted: read the difference before you commit."""
    return bool(request.config.getoption("--bless"))
