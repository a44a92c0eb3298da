"""The threat model names tests: each is there, and every boundary says what it does not keep out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
NAMED = re.findall(r"`(test_\w+)`", PAGE)
ROW = re.compile(r"^\|(?! who would|---)(.+)\|(.+)\|(.+)\|$", re.MULTILINE)


def test_every_test_that_is_named_exists() -> None:
    source = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    there = set(re.findall(r"^(?:async )?def (test_\w+)\(", source, re.MULTILINE))
    assert set(NAMED) - there == set()


def test_every_threat_has_its_letters_and_a_test() -> None:
    rows = ROW.findall(PAGE)
    assert len(rows) > 20
    for who, way, shown in rows:
        assert re.search(r"\([STRIDE](, [STRIDE])*\) $", who), who
        assert way.strip(), who
        assert "`test_" in shown, who


def test_a_boundary_says_what_it_does_not_keep_out() -> None:
    people, *others = PAGE.split("\n## ")[2:]
    assert "who would" in people
    assert all("**Not kept out.**" in each for each in others)
