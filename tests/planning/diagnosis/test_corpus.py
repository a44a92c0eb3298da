"""Corpus of faults and healthy states: snapshots, each with the exact text of its diagnosis beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path

import pytest

from fault_corpus import FAULT_FILES, HEALTHY_FILES, load_fault
from pincompute.base.reasons import QUOTA_USED_UP, ROLLOUT_STALLED, Reason, pods
from pincompute.planning.diagnosis import Finding, excerpts, first_cause


def finding_text(finding: Finding) -> str:
    recheck = [f"recheck after {finding.recheck_after_s:.0f} s"] if finding.recheck_after_s is not None else []
    return "\n".join([finding.problem.text() if finding.problem else "nothing is wrong", *recheck, ""])


@pytest.mark.parametrize("file", FAULT_FILES + HEALTHY_FILES, ids=lambda file: file.stem)
def test_finding_matches_its_file(file: Path, bless: bool) -> None:
    text = finding_text(first_cause(*load_fault(file)))
    expected = file.with_suffix(".txt")
    if bless:
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("file", FAULT_FILES, ids=lambda file: file.stem)
def test_problem_has_object_next_step_and_fits_into_a_condition(file: Path) -> None:
    problem = first_cause(*load_fault(file)).problem
    assert problem is not None
    assert problem.next
    assert str(problem.where)
    assert "\n" not in problem.message()
    assert len(problem.message()) < 1000


@pytest.mark.parametrize("file", HEALTHY_FILES, ids=lambda file: file.stem)
def test_healthy_state_has_no_problem(file: Path) -> None:
    assert first_cause(*load_fault(file)).problem is None


@pytest.mark.parametrize("file", FAULT_FILES + HEALTHY_FILES, ids=lambda file: file.stem)
def test_order_of_pods_does_not_matter(file: Path) -> None:
    snapshot, present = load_fault(file)
    assert len({first_cause(snapshot, each) for each in permutations(present)}) == 1


@pytest.mark.parametrize("file", FAULT_FILES, ids=lambda file: file.stem)
def test_message_does_not_depend_on_the_clock(file: Path) -> None:
    """Otherwise the status would be written in every pass."""
    snapshot, present = load_fault(file)
    later = snapshot._replace(now=datetime(2026, 1, 31, 13, 0, 0, tzinfo=UTC))
    assert first_cause(later, present).problem == first_cause(snapshot, present).problem


def test_corpus_covers_every_reason_of_pods() -> None:
    expected = {each for each in vars(pods).values() if isinstance(each, Reason)} | {QUOTA_USED_UP, ROLLOUT_STALLED}
    found = {problem.reason for file in FAULT_FILES if (problem := first_cause(*load_fault(file)).problem)}
    assert found >= expected


MASKED = {
    "postgres://ann:hunter2@db/x": "postgres://ann:***@db/x",
    "redis://:hunter2@cache": "redis://:***@cache",
    "password=hunter2 is wrong": "password=*** is wrong",
    "DB_PASSWORD='hunter 2'": "DB_PASSWORD=***",
    '{"api_key": "hunter2", "user": "ann"}': '{"api_key": ***, "user": "ann"}',
    "Authorization: Bearer abcdefgh12345": "Authorization: Bearer ***",
    "AKIAABCDEFGHIJKLMNOP expired": "*** expired",
    "jwt eyJhbGciOi.eyJzdWIi.c2ln was refused": "jwt *** was refused",
    "no module named 'secrets'": "no module named 'secrets'",
    "https://example.com:8080/a@b": "https://example.com:8080/a@b",
}


@pytest.mark.parametrize("text", MASKED)
def test_masks_secrets(text: str) -> None:
    assert excerpts.mask_secrets(text) == MASKED[text]


def test_excerpt_keeps_the_important_end() -> None:
    assert excerpts.excerpt_start("a" * 400) == "a" * 299 + "…"
    assert excerpts.excerpt_end("a" * 400 + "b") == "…" + "a" * 298 + "b"
    assert excerpts.last_line("one\n  two  \n\n") == "two"
