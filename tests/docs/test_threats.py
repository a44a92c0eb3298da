"""Threat model and standards: the tests that they name exist, and every boundary and verdict has its limits."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text()
STANDARDS = (ROOT / "docs" / "standards.md").read_text()
NAMED = re.findall(r"`(test_\w+)`", PAGE + STANDARDS)
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


def test_every_check_of_a_standard_has_a_test_and_a_verdict() -> None:
    """A verdict other than `met` has its reason."""
    rows = re.findall(r"^\| .+ \| (.+) \| (.+) \|$", STANDARDS, re.MULTILINE)
    verdicts = [(what, verdict) for what, verdict in rows if verdict != "verdict"]
    assert len(verdicts) >= 80
    for what, verdict in verdicts:
        assert re.match(r"met($|[;,:] | for | as | with )|(differs|none): \S", verdict), (what, verdict)
    tenancy = STANDARDS.partition("## Multi-tenancy benchmarks")[2].partition("\n## ")[0]
    assert len(re.findall(r"^\| [12] \| .+ \| .*`test_\w+`.* \| .+ \|$", tenancy, re.MULTILINE)) == 23
