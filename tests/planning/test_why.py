"""The corpus of faults, each told by its own file: what was seen, and beside it what a person reads."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from pincompute.api.kinds import KINDS
from pincompute.api.names import WORKLOAD
from pincompute.base.reasons import REASONS
from pincompute.planning.runtimes.runtime import Runtimes
from pincompute.planning.snapshot import Cluster, Native, Pod, Snapshot
from pincompute.planning.why import Finding, first_cause, words

CORPUS = Path(__file__).with_name("why")
FAULTS = sorted(CORPUS.glob("faults/*.yaml"))
HEALTHY = sorted(CORPUS.glob("healthy/*.yaml"))
NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
METADATA = ("name", "annotations", "creationTimestamp", "deletionTimestamp")


def load(file: Path) -> tuple[Snapshot, tuple[Pod, ...]]:
    """What was seen of a service called hello, where the file does not say otherwise."""
    seen = yaml.safe_load(file.read_text())
    owner = {
        "kind": seen.get("kind", "PinterestService"),
        "metadata": {"name": "hello", "namespace": "me", "uid": "owner-1", "generation": 1},
        "spec": {"image": "hello:dev", **({} if "kind" in seen else {"port": 8080}), **seen.get("spec", {})},
        "status": seen.get("status", {}),
    }
    pods = tuple(pod(each, f"hello-{number}") for number, each in enumerate(seen.get("pods", ()), 1))
    others = tuple(pod(each, f"hello-old-{number}") for number, each in enumerate(seen.get("others", ()), 1))
    snapshot = Snapshot(
        owner=msgspec.convert(owner, KINDS[owner["kind"]]),
        natives=tuple(native(each) for each in seen.get("natives", ())),
        pods=pods + others,
        cluster=Cluster(name="main", domain="localhost", port=8080),
        now=NOW,
        runtimes=Runtimes.of([msgspec.convert(each, KINDS[each["kind"]]) for each in seen.get("runtimes", ())]),
    )
    return snapshot, pods


def pod(said: dict[str, Any], name: str) -> Pod:
    metadata = {"name": name, "namespace": "me", "labels": {WORKLOAD: "hello"}} | {
        each: said.pop(each) for each in METADATA if each in said
    }
    status = {"conditions": [{"type": "PodScheduled", "status": "True"}], **said}
    return msgspec.convert({"metadata": metadata, "status": status}, Pod)


def native(said: dict[str, Any]) -> Native:
    kind = said.pop("kind")
    metadata = {"name": "hello", "namespace": "me"} | {each: said.pop(each) for each in METADATA if each in said}
    return msgspec.convert({"kind": kind, "metadata": metadata, "status": said}, Native)


def told(finding: Finding) -> str:
    again = [f"look again in {finding.look_again:.0f} s"] if finding.look_again is not None else []
    return "\n".join([finding.problem.text() if finding.problem else "nothing is wrong", *again, ""])


@pytest.mark.parametrize("file", FAULTS + HEALTHY, ids=lambda file: file.stem)
def test_the_corpus(file: Path, bless: bool) -> None:
    found = told(first_cause(*load(file)))
    wanted = file.with_suffix(".txt")
    if bless:
        wanted.write_text(found)
    assert found == wanted.read_text()


@pytest.mark.parametrize("file", FAULTS, ids=lambda file: file.stem)
def test_a_fault_says_what_to_type_next_and_fits_a_condition(file: Path) -> None:
    problem = first_cause(*load(file)).problem
    assert problem is not None
    assert problem.next
    assert str(problem.where)
    assert "\n" not in problem.message()
    assert len(problem.message()) < 1000


@pytest.mark.parametrize("file", HEALTHY, ids=lambda file: file.stem)
def test_nothing_is_wrong_when_nothing_is_wrong(file: Path) -> None:
    assert first_cause(*load(file)).problem is None


@pytest.mark.parametrize("file", FAULTS + HEALTHY, ids=lambda file: file.stem)
def test_the_order_of_pods_does_not_matter(file: Path) -> None:
    snapshot, pods = load(file)
    assert len({first_cause(snapshot, each) for each in permutations(pods)}) == 1


@pytest.mark.parametrize("file", FAULTS, ids=lambda file: file.stem)
def test_what_is_told_does_not_change_with_the_clock(file: Path) -> None:
    """A message that did would be written again and again."""
    snapshot, pods = load(file)
    later = snapshot._replace(now=datetime(2026, 1, 31, 13, 0, 0, tzinfo=UTC))
    assert first_cause(later, pods).problem == first_cause(snapshot, pods).problem


def test_every_reason_of_the_corpus_is_told_by_one_of_its_files() -> None:
    """The reasons stand together, from the first that a node says to the last of a rollout."""
    codes = list(REASONS)
    ours = set(codes[codes.index("ImagePullFailed") : codes.index("NotInTime")])
    ours |= {"OutOfMemory", "QuotaUsedUp"}
    found = {problem.reason.code for file in FAULTS if (problem := first_cause(*load(file)).problem)}
    assert found >= ours


SAID = {
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


@pytest.mark.parametrize("said", SAID)
def test_no_secret_is_told(said: str) -> None:
    assert words.masked(said) == SAID[said]


def test_evidence_is_cut_where_it_says_the_least() -> None:
    assert words.beginning("a" * 400) == "a" * 299 + "…"
    assert words.ending("a" * 400 + "b") == "…" + "a" * 298 + "b"
    assert words.last_line("one\n  two  \n\n") == "two"
