"""Review decisions: every link of the chain from a commit to a build, and every way to forge one."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from pincompute.admission.commits import Change, Notes, SignedReview
from pincompute.admission.reviews import (
    Build,
    CommitHistory,
    check_claimed_build,
    check_review_required,
    check_rollback_reviewed,
    verify_build,
    workload_of_build,
)
from pincompute.api.break_glass import BreakGlass
from pincompute.api.landing import Landing
from pincompute.api.project import Project
from pincompute.base.problem import Refused
from signed_builds import DIGEST, TEXT, signed_build, signed_review, trusted_keys

ANN, BEN, EVE = "ann@example.com", "ben@example.com", "eve@example.com"
FILE = hashlib.sha256(TEXT.encode()).hexdigest()
OTHER = TEXT.replace("8080", "9090")


def landing(**fields: Any) -> Landing:
    complete: dict[str, Any] = {"people": trusted_keys(ANN, BEN), **fields}
    return Landing(repository="/git", builders=trusted_keys("ci"), **complete)


def history(
    authors: frozenset[str] = frozenset({ANN}),
    reviews: tuple[SignedReview, ...] = (signed_review(BEN),),
    file_digest: str = FILE,
) -> CommitHistory:
    change = Change(signed_build().statement.predicate.commit, authors=authors, notes=Notes(reviews))
    return CommitHistory(landed=True, file_digest=file_digest, change=change)


LANDED = history()


def project(review: str = "landed") -> Project:
    spec: dict[str, Any] = {"owner": "team-ads", "review": review, "quota": {"on-demand": {}}}
    return msgspec.convert({"metadata": {"name": "ads"}, "spec": spec, "kind": "Project"}, Project)


def test_accepts_reviewed_and_landed_build() -> None:
    verdict = verify_build(signed_build(), landing(), LANDED)
    assert [(each.subject, each.problem) for each in verdict.links] == [
        ("commit", None), ("reviewed", None), ("file", None), ("built", None),
    ]  # fmt: skip
    assert verdict.reviewers == {BEN}


@pytest.mark.parametrize(
    ("case", "build", "commit", "reason"),
    [
        ("commit not landed", signed_build(), CommitHistory(), "NotLanded"),
        ("no review", signed_build(), history(reviews=()), "NotReviewed"),
        ("reviewed by its author only", signed_build(), history(reviews=(signed_review(ANN),)), "NotReviewed"),
        ("reviewed by a co-author", signed_build(), history(authors=frozenset({ANN, BEN})), "NotReviewed"),
        (
            "reviewed by its author with another spelling",
            signed_build(),
            history(authors=frozenset({"BEN@Example.com"})),
            "NotReviewed",
        ),
        ("reviewed with an unknown key", signed_build(), history(reviews=(signed_review(EVE),)), "NotReviewed"),
        (
            "review of another commit",
            signed_build(),
            history(reviews=(signed_review(BEN, "b" * 40),)),
            "NotReviewed",
        ),
        ("unknown builder", signed_build(by="eve"), LANDED, "BuilderUnknown"),
        ("unknown builder that claims another name", signed_build(by="eve", says="ci"), LANDED, "BuilderUnknown"),
        ("known builder that claims another name", signed_build(by="ci", says="eve"), LANDED, "BuilderUnknown"),
        ("file altered in the store", signed_build(text=OTHER), LANDED, "BuildAltered"),
        ("file that never landed", signed_build(text=OTHER, attested=OTHER), LANDED, "BuildAltered"),
        ("file missing in the repository", signed_build(), history(file_digest=""), "BuildAltered"),
    ],
)
def test_rejects_build_with_one_invalid_link(case: str, build: Build, commit: CommitHistory, reason: str) -> None:
    del case
    problems = [each.problem for each in verify_build(build, landing(), commit).links if each.problem]
    assert [each.reason.code for each in problems] == [reason]


def test_reports_all_invalid_links_at_once() -> None:
    verdict = verify_build(signed_build(by="eve", text=OTHER), landing(), history(reviews=()))
    assert [each.problem is None for each in verdict.links] == [True, False, False, False]


def test_requires_the_configured_number_of_reviews() -> None:
    three = landing(people=trusted_keys(ANN, BEN, EVE), reviewers=2)
    (problem,) = [each.problem for each in verify_build(signed_build(), three, LANDED).links if each.problem]
    assert problem.text() == (
        "ads/shop 1.0: commit aaaaaaaaaaaa has 1 of 2 reviews, by ben@example.com  [NotReviewed]\n"
        "  eligible reviewers: eve@example.com\n"
        "  next: pin review aaaaaaaaaaaa"
    )
    both = history(reviews=(signed_review(BEN), signed_review(EVE), signed_review(BEN)))
    assert verify_build(signed_build(), three, both).reviewers == {BEN, EVE}
    assert not any(
        each.problem for each in verify_build(signed_build(), landing(reviewers=0), history(reviews=())).links
    )


def test_pins_every_image_to_its_built_digest() -> None:
    workload = workload_of_build(signed_build())
    assert (workload.spec.image, workload.spec.build) == (f"hello:dev@{DIGEST}", "1.0")
    template = """
  template:
    spec:
      initContainers: [{name: first, image: 'busybox:1'}]
      containers: [{name: beside, image: 'team/beside:2@sha256:%s'}]
      volumes: [{name: model, image: {reference: 'model:3'}}]
  environment: {image: untouched}
"""
    beside = f"team/beside:2@sha256:{'d' * 64}"
    whole = TEXT.replace("{image: hello:dev, port: 8080, simulated: true}", "\n  image: hello:dev\n  port: 8080") + (
        template[1:] % ("d" * 64)
    )
    known = {"hello:dev": DIGEST, "busybox:1": DIGEST, beside: f"sha256:{'d' * 64}", "model:3": DIGEST}
    found = workload_of_build(signed_build(text=whole, attested=whole, images=known))
    pod = found.spec.template["spec"]
    assert [each["image"] for each in (*pod["initContainers"], *pod["containers"])] == [f"busybox:1@{DIGEST}", beside]
    assert pod["volumes"][0]["image"]["reference"] == f"model:3@{DIGEST}"
    assert found.spec.environment == {"image": "untouched"}
    with pytest.raises(Refused) as refused:
        workload_of_build(signed_build(text=whole, attested=whole, images={"hello:dev": DIGEST}))
    assert [each.what.rpartition(" ")[2] for each in refused.value.problems] == [beside, "busybox:1", "model:3"]


def test_rejects_build_whose_file_is_of_another_workload() -> None:
    elsewhere = TEXT.replace("name: shop", "name: shop, project: other")
    with pytest.raises(Refused, match="its workload file is of other/shop"):
        workload_of_build(signed_build(text=elsewhere, attested=elsewhere))


def test_accepts_file_only_in_open_project() -> None:
    workload = workload_of_build(signed_build())
    problem = check_review_required(project(), workload)
    assert problem
    assert problem.next == "pin deploy shop --version VERSION"
    assert check_review_required(project("open"), workload) is None
    assert check_review_required(None, workload) is None


def test_rejects_rollback_to_unreviewed_revision() -> None:
    reviewed = workload_of_build(signed_build())
    unknown = msgspec.structs.replace(reviewed, spec=msgspec.structs.replace(reviewed.spec, build=""))
    problem = check_rollback_reviewed(project(), unknown)
    assert problem
    assert "that revision of shop is unreviewed" in problem.what
    overridden = msgspec.structs.replace(unknown.spec, break_glass=BreakGlass(until="2026-01-01T00:00:00Z"))
    for owner, workload in (
        (project(), reviewed),
        (project("open"), unknown),
        (None, unknown),
        # Expiry is checked separately.
        (project(), msgspec.structs.replace(unknown, spec=overridden)),
    ):
        assert check_rollback_reviewed(owner, workload) is None


def test_rejects_file_that_claims_to_be_a_build() -> None:
    workload = workload_of_build(signed_build())
    problem = check_claimed_build(workload)
    assert problem
    assert "a file must not set spec.build: build 1.0" in problem.what
    assert (
        check_claimed_build(msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, build="")))
        is None
    )
