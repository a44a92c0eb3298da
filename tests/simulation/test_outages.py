"""The API server is not what it should be for ten minutes: little is asked of it meanwhile, and all heals by itself."""

from __future__ import annotations

import pytest
from simulation.outages import AWAY, FORBIDDEN, FULL, lasted

TEN_MINUTES = 600.0


@pytest.mark.parametrize("kind", [AWAY, FULL])
def test_it_heals(kind: str) -> None:
    assert lasted(kind, TEN_MINUTES).wrong == ()


def test_what_is_forbidden_is_told_and_keeps_no_other_kind() -> None:
    found = lasted(FORBIDDEN, TEN_MINUTES)
    assert found.wrong == ()
    assert "Deployment: deployments is forbidden" in found.told
    # Who says no was heard: to begin anew would help nobody.
    assert "was not heard" not in found.told
