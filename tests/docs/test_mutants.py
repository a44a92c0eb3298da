"""A fault that no line can be given any more is no fault: the list moves with the code."""

from __future__ import annotations

import pytest
from mutants import MUTANTS, RACES, SOURCE, Mutant


@pytest.mark.parametrize("mutant", [*MUTANTS, *RACES], ids=lambda each: f"{each.file}: {each.is_now.strip()}")
def test_it_stands_there_once(mutant: Mutant) -> None:
    assert (SOURCE / mutant.file).read_text().count(mutant.is_now) == 1
