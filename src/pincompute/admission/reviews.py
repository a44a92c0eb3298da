"""Review decisions: may a build run in a project that accepts only reviewed and landed work.

Pure. A build's attestation is only a claim of the builder. Whether its commit landed, the workload file of that commit
and its reviewers are therefore read from the repository itself, and each claim is compared with that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard

import msgspec

from pincompute.api.attestation import Envelope
from pincompute.api.build import (
    WORKLOAD_FILE,
    ProvenanceStatement,
    ReviewStatement,
    image_digests,
    image_fields,
    workload_file_digest,
)
from pincompute.api.documents import read_document
from pincompute.api.landing import Landing
from pincompute.api.membership import ReviewMode
from pincompute.api.project import Project
from pincompute.api.validation import parse_workload
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import BUILD_ALTERED, BUILDER_UNKNOWN, NOT_LANDED, NOT_REVIEWED, ONLY_LANDED, Reason
from pincompute.planning.edits import without_edits

SignedReview = tuple[Envelope, ReviewStatement]


class CommitHistory(NamedTuple):
    """A commit as the repository has it."""

    landed: bool = False
    """True if the commit is on the protected branch; the other fields are read only then."""
    authors: frozenset[str] = frozenset()
    """Email addresses of the authors, committers and co-authors of the changes."""
    file_digest: str = ""
    """SHA-256 of the workload file in that commit; empty if there is no such file."""
    reviews: tuple[SignedReview, ...] = ()


class Build(NamedTuple):
    """A build in the artifact store: workload file and signed attestation of one version."""

    project: str
    name: str
    version: str
    content: bytes
    digest: str
    """SHA-256 of the file as read from the store."""
    envelope: Envelope
    statement: ProvenanceStatement

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}"


class ChainLink(NamedTuple):
    """One verified claim in the chain from the commit to the build; invalid if it has a problem."""

    subject: str
    claim: str
    problem: Problem | None = None


class ReviewVerdict(NamedTuple):
    """All links of a build, and the reviewers that count."""

    links: tuple[ChainLink, ...] = ()
    reviewers: frozenset[str] = frozenset()

    def problems(self, *, break_glass: bool = False) -> Iterator[Problem]:
        """The problems of the links. Break-glass waives a missing review or landing, but never an altered build."""
        found = (link.problem for link in self.links if link.problem)
        return (each for each in found if not (break_glass and each.reason in (NOT_LANDED, NOT_REVIEWED)))


def requires_review(project: Project | None) -> TypeGuard[Project]:
    """True if the project accepts only landed builds. A namespace without a Project accepts any workload."""
    return project is not None and project.spec.review is ReviewMode.LANDED


def check_review_required(project: Project | None, workload: Workload) -> Problem | None:
    """Rejects a workload file in a project that accepts only builds."""
    if not requires_review(project):
        return None
    name = workload.metadata.name
    what = f"project {project.metadata.name} accepts only reviewed and landed builds, and this is a file"
    note = 'in an emergency, recorded and for a limited time: pin deploy FILE --break-glass "INC-4711: reason"'
    return Problem(ONLY_LANDED, what, Where(object=workload.metadata.key), note, f"pin deploy {name} --version VERSION")


def check_rollback_reviewed(project: Project | None, workload: Workload) -> Problem | None:
    """Rejects a rollback to a revision from before the project required reviews."""
    if not requires_review(project) or workload.spec.build or workload.spec.break_glass:
        return None
    name, project_name = workload.metadata.name, workload.metadata.namespace
    what = f"project {project_name} accepts only reviewed and landed builds, and that revision of {name} is unreviewed"
    where = Where(object=workload.metadata.key)
    return Problem(ONLY_LANDED, what, where, next=f"pin deploy {name} --version VERSION")


def check_build_genuine(workload: Workload, accepted: Iterable[Workload]) -> Problem | None:
    """Rejects a revision that names a build or an override which the desk accepted with other content.

    `accepted` are the workloads that the desk accepted under that name. A client with direct access to the Kubernetes
    API can write any content with the name of a build; a rollback must not make that content look reviewed.
    """
    if any(without_edits(each).spec == without_edits(workload).spec for each in accepted):
        return None
    name, spec = workload.metadata.name, workload.spec
    claim = "accepted with break-glass" if spec.break_glass else f"build {spec.build}"
    what = f"that revision of {name} is marked as {claim}, but has other content: it was not written by the desk"
    return Problem(ONLY_LANDED, what, Where(object=workload.metadata.key), next=f"pin deploy {name} --version VERSION")


def check_claimed_build(workload: Workload) -> Problem | None:
    """Rejects a file that sets spec.build or spec.breakGlass itself: only the desk may set them."""
    where = Where(object=workload.metadata.key)
    if workload.spec.break_glass:
        what = "a file must not set spec.breakGlass: only the desk sets it"
        file = f"{workload.metadata.name}.yaml"
        next_ = f'remove spec.breakGlass; in an emergency: pin deploy {file} --break-glass "REASON"'
        return Problem(ONLY_LANDED, what, where._replace(field="spec.breakGlass"), next=next_)
    if not workload.spec.build:
        return None
    what = f"a file must not set spec.build: build {workload.spec.build} is deployed from the artifact store"
    next_ = f"remove spec.build, or: pin deploy {workload.metadata.name} --version {workload.spec.build}"
    return Problem(ONLY_LANDED, what, where._replace(field="spec.build"), next=next_)


def verify_build(build: Build, landing: Landing, history: CommitHistory) -> ReviewVerdict:
    """Verifies every link from the repository to the build; all are verified, to report every problem at once."""
    provenance, reviewers = build.statement.predicate, _valid_reviewers(build, landing, history)
    return ReviewVerdict(
        (
            ChainLink(
                "commit", f"{provenance.commit[:12]} on {landing.branch}", _landing_problem(build, landing, history)
            ),
            ChainLink(
                "reviewed",
                f"by {', '.join(sorted(reviewers)) or 'no one but its authors'}",
                _review_problem(build, landing, history, reviewers),
            ),
            ChainLink("file", f"{provenance.source.path} sha256:{build.digest[:12]}", _file_problem(build, history)),
            ChainLink("built", f"as {build.version} by {provenance.builder}", _builder_problem(build, landing)),
        ),
        reviewers,
    )


def _valid_reviewers(build: Build, landing: Landing, history: CommitHistory) -> frozenset[str]:
    """Reviewers with a signed approval of exactly this commit, without its authors."""
    commit = build.statement.predicate.commit
    reviewers: set[str] = set()
    for envelope, review in history.reviews:
        if any(subject.digest.get("gitCommit") == commit for subject in review.subject):
            reviewers |= envelope.signers(landing.people)
    return frozenset(reviewers) - _case_insensitive_members(reviewers, history.authors)


def workload_of_build(build: Build) -> Workload:
    """The workload of the build's file, with every image pinned to the digest that was built.

    Refused if the file is of another workload, or if the build names no digest for one of its images.
    """
    workload = parse_workload(read_document(build.text, WORKLOAD_FILE), build.project)
    digests, problems = image_digests(build.statement), list[Problem]()
    if (workload.metadata.namespace, workload.metadata.name) != (build.project, build.name):
        problems.append(_build_problem(BUILD_ALTERED, build, f"its workload file is of {workload.metadata.key}"))
    fields: dict[str, Any] = msgspec.to_builtins(workload.spec)
    for parent, field in image_fields(fields):
        image = parent[field]
        if image in digests:
            parent[field] = f"{image.partition('@')[0]}@{digests[image]}"
        else:
            problems.append(
                _build_problem(BUILD_ALTERED, build, f"no digest for image {image}", "publish the build again")
            )
    refuse_all(problems)
    spec = msgspec.convert({**fields, "build": build.version, "breakGlass": None}, type(workload.spec))
    return msgspec.structs.replace(workload, spec=spec)


def _landing_problem(build: Build, landing: Landing, history: CommitHistory) -> Problem | None:
    commit, branch = build.statement.predicate.commit, landing.branch
    if history.landed:
        return None
    what = f"commit {commit[:12] or '(none)'} is not on branch {branch} of {landing.repository}"
    return _build_problem(NOT_LANDED, build, what, f"land it on {branch}, then publish the landed commit")


def _file_problem(build: Build, history: CommitHistory) -> Problem | None:
    if workload_file_digest(build.statement) != build.digest:
        what = "its workload file is not the signed one"
        return _build_problem(BUILD_ALTERED, build, what, "publish the build again")
    if history.landed and history.file_digest != build.digest:
        path, commit = build.statement.predicate.source.path, build.statement.predicate.commit[:12]
        what = f"its workload file differs from {path} in commit {commit}"
        return _build_problem(BUILD_ALTERED, build, what, "publish the landed file")
    return None


def _review_problem(
    build: Build, landing: Landing, history: CommitHistory, reviewers: frozenset[str]
) -> Problem | None:
    required, commit = landing.reviewers, build.statement.predicate.commit[:12]
    if len(reviewers) >= required or not history.landed:
        # The authors of a commit that has not landed are unknown, so its reviews cannot be judged yet.
        return None
    by = f", by {', '.join(sorted(reviewers))}" if reviewers else ""
    what = f"commit {commit} has {len(reviewers)} of {required} reviews{by}"
    eligible = sorted(set(landing.people) - reviewers - _case_insensitive_members(landing.people, history.authors))
    note = f"eligible reviewers: {', '.join(eligible) or 'none'}"
    return _build_problem(NOT_REVIEWED, build, what, f"pin review {commit}", note)


def _builder_problem(build: Build, landing: Landing) -> Problem | None:
    claimed = build.statement.predicate.builder
    if claimed in build.envelope.signers(landing.builders):
        return None
    what = f"it is not signed by a builder of {build.project}"
    note = f"it claims to be built by {claimed}; allowed builders: {', '.join(sorted(landing.builders))}"
    return _build_problem(BUILDER_UNKNOWN, build, what, note=note)


def _case_insensitive_members(names: Iterable[str], of: frozenset[str]) -> frozenset[str]:
    """The names that occur in `of` in any case: git accepts every spelling of an address, so an author could pass as
    their own reviewer with another one."""
    folded = {each.casefold() for each in of}
    return frozenset(each for each in names if each.casefold() in folded)


def _build_problem(reason: Reason, build: Build, what: str, next_: str = "", note: str = "") -> Problem:
    return Problem(reason, what, Where(object=f"{build.project}/{build.label}"), note=note, next=next_)
