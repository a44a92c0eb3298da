"""Every mutant of `scripts/mutants.py` still matches the code exactly once."""

from __future__ import annotations

import pytest
from mutants import MUTANTS, RACES, SOURCE, Mutant


@pytest.mark.parametrize("mutant", [*MUTANTS, *RACES], ids=lambda each: f"{each.file}: {each.original.strip()}")
def test_mutant_matches_code_once(mutant: Mutant) -> None:
    assert (SOURCE / mutant.file).read_text().count(mutant.original) == 1
