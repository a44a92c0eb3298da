"""Threat model: the tests that it names exist, and every boundary states its limits."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
NAMED = re.findall(r"`(test_\w+)`", PAGE)
TABLE = re.compile(r"^\| attempt \|.+\n\|---.+\n((?:\|.+\n)+)", re.MULTILINE)
ROW = re.compile(r"^\|(.+)\|(.+)\|(.+)\|$", re.MULTILINE)


def test_named_tests_exist() -> None:
    source = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    existing = set(re.findall(r"^(?:async )?def (test_\w+)\(", source, re.MULTILINE))
    assert set(NAMED) - existing == set()


def test_every_threat_has_letters_and_a_test() -> None:
    rows = ROW.findall("".join(TABLE.findall(PAGE)))
    assert len(rows) > 20
    for attempt, defence, tests in rows:
        assert re.search(r"\([STRIDE](, [STRIDE])*\) $", attempt), attempt
        assert defence.strip(), attempt
        assert "`test_" in tests, attempt


def test_every_boundary_states_its_limits() -> None:
    boundaries = PAGE.split("\n## ")[2:]
    assert all("**Not covered.**" in each for each in boundaries)
