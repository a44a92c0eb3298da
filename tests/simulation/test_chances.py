"""Whatever goes wrong by chance: all is right in the end, and the same seed is the same run."""

from __future__ import annotations

import pytest
from simulation.chances import draw

BITE = (5, 8, 17, 36, 37)
"""Seeds of a service's life that have found faults which were put in on purpose."""


@pytest.mark.parametrize("seed", range(12))
def test_all_is_right_in_the_end(seed: int) -> None:
    assert draw(seed).wrong == ()


@pytest.mark.parametrize("seed", BITE)
def test_a_service_is_right_in_the_end(seed: int) -> None:
    assert draw(seed, "PinterestService").wrong == ()


def test_a_seed_is_a_run() -> None:
    first, again = draw(4), draw(4)
    assert first == again
    assert first.trace != draw(5).trace
