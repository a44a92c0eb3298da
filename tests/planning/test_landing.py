"""Only what was reviewed and landed runs: every link of the chain, and every way to forge one."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from pincompute.api.glass import Glass
from pincompute.api.landing import Landing
from pincompute.api.project import Project
from pincompute.base.problem import Refused
from pincompute.planning.landing import Build, History, claimed, closed, deployable, judge, unvouched
from signing import DIGEST, TEXT, build, review, trusted

ANN, BEN, EVE = "ann@example.com", "ben@example.com", "eve@example.com"
FILE = hashlib.sha256(TEXT.encode()).hexdigest()
LANDED = History(landed=True, authors=frozenset({ANN}), file=FILE, reviews=(review(BEN),))
OTHER = TEXT.replace("8080", "9090")


def landing(**more: Any) -> Landing:
    said: dict[str, Any] = {"people": trusted(ANN, BEN), **more}
    return Landing(repository="/git", builders=trusted("ci"), **said)


def history(**more: Any) -> History:
    return LANDED._replace(**more)


def project(review_: str = "landed") -> Project:
    spec: dict[str, Any] = {"owner": "team-ads", "review": review_, "quota": {"on-demand": {}}}
    return msgspec.convert({"metadata": {"name": "ads"}, "spec": spec, "kind": "Project"}, Project)


def test_what_was_reviewed_and_landed_may_run() -> None:
    verdict = judge(build(), landing(), LANDED)
    assert [(each.what, each.problem) for each in verdict.links] == [
        ("commit", None), ("reviewed", None), ("file", None), ("built", None),
    ]  # fmt: skip
    assert verdict.reviewers == {BEN}


@pytest.mark.parametrize(
    ("what", "of", "seen", "told"),
    [
        ("it has not landed", build(), History(), "NotLanded"),
        ("nobody has looked at it", build(), history(reviews=()), "NotReviewed"),
        ("its author alone has", build(), history(reviews=(review(ANN),)), "NotReviewed"),
        ("who helped has", build(), history(authors=frozenset({ANN, BEN})), "NotReviewed"),
        ("its author, spelled otherwise", build(), history(authors=frozenset({"BEN@Example.com"})), "NotReviewed"),
        ("somebody whom nobody knows has", build(), history(reviews=(review(EVE),)), "NotReviewed"),
        ("another commit was reviewed", build(), history(reviews=(review(BEN, "b" * 40),)), "NotReviewed"),
        ("a builder nobody knows", build(by="eve"), LANDED, "BuilderUnknown"),
        ("one that says it is another", build(by="eve", says="ci"), LANDED, "BuilderUnknown"),
        ("one whose name is not its own", build(by="ci", says="eve"), LANDED, "BuilderUnknown"),
        ("the file was altered in the store", build(text=OTHER), LANDED, "BuildAltered"),
        ("the file was never landed", build(text=OTHER, attested=OTHER), LANDED, "BuildAltered"),
        ("the file is not in the repository", build(), history(file=""), "BuildAltered"),
    ],
)
def test_one_link_that_does_not_hold(what: str, of: Build, seen: History, told: str) -> None:
    del what
    problems = [each.problem for each in judge(of, landing(), seen).links if each.problem]
    assert [each.reason.code for each in problems] == [told]


def test_everything_is_told_at_once() -> None:
    verdict = judge(build(by="eve", text=OTHER), landing(), history(reviews=()))
    assert [each.problem is None for each in verdict.links] == [True, False, False, False]


def test_as_many_reviews_as_are_asked_for() -> None:
    three = landing(people=trusted(ANN, BEN, EVE), reviewers=2)
    (problem,) = [each.problem for each in judge(build(), three, LANDED).links if each.problem]
    assert problem.text() == (
        "ads/shop 1.0: the commit aaaaaaaaaaaa has 1 of 2 reviews, by ben@example.com  [NotReviewed]\n"
        "  who may: eve@example.com\n"
        "  next: pin review aaaaaaaaaaaa"
    )
    both = history(reviews=(review(BEN), review(EVE), review(BEN)))
    assert judge(build(), three, both).reviewers == {BEN, EVE}
    assert not any(each.problem for each in judge(build(), landing(reviewers=0), history(reviews=())).links)


def test_images_run_as_they_were_when_they_were_built() -> None:
    workload = deployable(build())
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
    found = deployable(build(text=whole, attested=whole, images=known))
    pod = found.spec.template["spec"]
    assert [each["image"] for each in (*pod["initContainers"], *pod["containers"])] == [f"busybox:1@{DIGEST}", beside]
    assert pod["volumes"][0]["image"]["reference"] == f"model:3@{DIGEST}"
    assert found.spec.environment == {"image": "untouched"}
    with pytest.raises(Refused) as refused:
        deployable(build(text=whole, attested=whole, images={"hello:dev": DIGEST}))
    assert [each.what.rpartition(" ")[2] for each in refused.value.problems] == [beside, "busybox:1", "model:3"]


def test_a_build_is_of_the_workload_that_its_file_describes() -> None:
    elsewhere = TEXT.replace("name: shop", "name: shop, project: other")
    with pytest.raises(Refused, match="its workload file is of other/shop"):
        deployable(build(text=elsewhere, attested=elsewhere))


def test_a_file_that_is_sent_is_taken_where_the_project_is_open() -> None:
    workload = deployable(build())
    problem = closed(project(), workload)
    assert problem
    assert problem.next == "pin deploy shop --version VERSION"
    assert closed(project("open"), workload) is None
    assert closed(None, workload) is None


def test_nobody_goes_back_to_what_nobody_vouched_for() -> None:
    reviewed = deployable(build())
    unknown = msgspec.structs.replace(reviewed, spec=msgspec.structs.replace(reviewed.spec, build=""))
    problem = unvouched(project(), unknown)
    assert problem
    assert "nobody vouched for what shop was then" in problem.what
    in_need = msgspec.structs.replace(unknown.spec, break_glass=Glass(until="2026-01-01T00:00:00Z"))
    for whose, workload in (
        (project(), reviewed),
        (project("open"), unknown),
        (None, unknown),
        # Whether its time is over is another's to say.
        (project(), msgspec.structs.replace(unknown, spec=in_need)),
    ):
        assert unvouched(whose, workload) is None


def test_a_file_that_is_sent_is_no_build_whatever_it_says() -> None:
    workload = deployable(build())
    problem = claimed(workload)
    assert problem
    assert "it says that it is the build 1.0" in problem.what
    assert claimed(msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, build=""))) is None
