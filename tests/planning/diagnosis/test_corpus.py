"""Corpus of faults and healthy states: snapshots, each with the exact text of its diagnosis beside it."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pincompute.api.kinds import KINDS
from pincompute.api.names import WORKLOAD_LABEL
from pincompute.base.reasons import QUOTA_USED_UP, ROLLOUT_STALLED, Reason, pods
from pincompute.planning.diagnosis import Finding, excerpts, first_cause
from pincompute.planning.observed_pods import Pod
from pincompute.planning.runtimes.selection import Runtimes
from pincompute.planning.snapshot import Cluster, Native, Snapshot

CORPUS = Path(__file__).parent
FAULT_FILES = sorted(CORPUS.glob("faults/*.yaml"))
HEALTHY_FILES = sorted(CORPUS.glob("healthy/*.yaml"))
NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
METADATA_FIELDS = ("name", "annotations", "creationTimestamp", "deletionTimestamp")


def load(file: Path) -> tuple[Snapshot, tuple[Pod, ...]]:
    """The snapshot of a file; fields that it leaves out are those of a service called hello."""
    fields = yaml.safe_load(file.read_text())
    owner = {
        "kind": fields.get("kind", "PinterestService"),
        "metadata": {"name": "hello", "namespace": "me", "uid": "owner-1", "generation": 1},
        "spec": {"image": "hello:dev", **({} if "kind" in fields else {"port": 8080}), **fields.get("spec", {})},
        "status": fields.get("status", {}),
    }
    present = tuple(build_pod(each, f"hello-{number}") for number, each in enumerate(fields.get("pods", ()), 1))
    others = tuple(build_pod(each, f"hello-old-{number}") for number, each in enumerate(fields.get("others", ()), 1))
    snapshot = Snapshot(
        owner=msgspec.convert(owner, KINDS[owner["kind"]]),
        natives=tuple(build_native(each) for each in fields.get("natives", ())),
        pods=present + others,
        cluster=Cluster(name="main", domain="localhost", port=8080),
        now=NOW,
        runtimes=Runtimes.from_resources(
            [msgspec.convert(each, KINDS[each["kind"]]) for each in fields.get("runtimes", ())]
        ),
    )
    return snapshot, present


def build_pod(fields: dict[str, Any], name: str) -> Pod:
    metadata = {"name": name, "namespace": "me", "labels": {WORKLOAD_LABEL: "hello"}} | {
        each: fields.pop(each) for each in METADATA_FIELDS if each in fields
    }
    spec = fields.pop("spec", {})
    status = {"conditions": [{"type": "PodScheduled", "status": "True"}], **fields}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def build_native(fields: dict[str, Any]) -> Native:
    kind = fields.pop("kind")
    metadata = {"name": "hello", "namespace": "me"} | {
        each: fields.pop(each) for each in METADATA_FIELDS if each in fields
    }
    return msgspec.convert({"kind": kind, "metadata": metadata, "status": fields}, Native)


def finding_text(finding: Finding) -> str:
    recheck = [f"recheck after {finding.recheck_after_s:.0f} s"] if finding.recheck_after_s is not None else []
    return "\n".join([finding.problem.text() if finding.problem else "nothing is wrong", *recheck, ""])


@pytest.mark.parametrize("file", FAULT_FILES + HEALTHY_FILES, ids=lambda file: file.stem)
def test_finding_matches_its_file(file: Path, bless: bool) -> None:
    text = finding_text(first_cause(*load(file)))
    expected = file.with_suffix(".txt")
    if bless:
        expected.write_text(text)
    assert text == expected.read_text()


@pytest.mark.parametrize("file", FAULT_FILES, ids=lambda file: file.stem)
def test_problem_has_object_next_step_and_fits_into_a_condition(file: Path) -> None:
    problem = first_cause(*load(file)).problem
    assert problem is not None
    assert problem.next
    assert str(problem.where)
    assert "\n" not in problem.message()
    assert len(problem.message()) < 1000


@pytest.mark.parametrize("file", HEALTHY_FILES, ids=lambda file: file.stem)
def test_healthy_state_has_no_problem(file: Path) -> None:
    assert first_cause(*load(file)).problem is None


@pytest.mark.parametrize("file", FAULT_FILES + HEALTHY_FILES, ids=lambda file: file.stem)
def test_order_of_pods_does_not_matter(file: Path) -> None:
    snapshot, present = load(file)
    assert len({first_cause(snapshot, each) for each in permutations(present)}) == 1


@pytest.mark.parametrize("file", FAULT_FILES, ids=lambda file: file.stem)
def test_message_does_not_depend_on_the_clock(file: Path) -> None:
    """Otherwise the status would be written in every pass."""
    snapshot, present = load(file)
    later = snapshot._replace(now=datetime(2026, 1, 31, 13, 0, 0, tzinfo=UTC))
    assert first_cause(later, present).problem == first_cause(snapshot, present).problem


def test_corpus_covers_every_reason_of_pods() -> None:
    expected = {each for each in vars(pods).values() if isinstance(each, Reason)} | {QUOTA_USED_UP, ROLLOUT_STALLED}
    found = {problem.reason for file in FAULT_FILES if (problem := first_cause(*load(file)).problem)}
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
