"""Review decisions: may a build run in a project that accepts only reviewed and landed work.

Pure. A build's attestation is only a claim of the builder. Whether its commit landed, the workload file of that commit
and its reviewers are therefore read from the repository itself, and each claim is compared with that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeGuard

import msgspec

from pincompute.admission.commits import (
    MAX_COMMITS,
    Change,
    EarlierChanges,
    valid_reviewers,
    without_authors,
)
from pincompute.api.attestation import Envelope, KeyRing
from pincompute.api.build import (
    WORKLOAD_FILE,
    ProvenanceStatement,
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

MAX_LISTED_CHANGES = 10
"""Unreviewed changes that a refusal names."""


class CommitHistory(NamedTuple):
    """A commit as the repository has it, with what lies below it."""

    landed: bool = False
    """True if the commit is on the protected branch; the other fields are read only then."""
    file_digest: str = ""
    """SHA-256 of the workload file in that commit; empty if there is no such file."""
    change: Change = Change("")
    """The commit itself, with what it merges."""
    earlier: EarlierChanges = EarlierChanges()


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
    provenance, keys = build.statement.predicate, KeyRing(landing.people)
    reviewers = valid_reviewers(keys, history.change)
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
            *_history_links(build, landing, history.earlier, keys),
            ChainLink("file", f"{provenance.source.path} sha256:{build.digest[:12]}", _file_problem(build, history)),
            ChainLink("built", f"as {build.version} by {provenance.builder}", _builder_problem(build, landing)),
        ),
        reviewers,
    )


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
    if len(reviewers) >= landing.reviewers or not history.landed:
        # The authors of a commit that has not landed are unknown, so its reviews cannot be judged yet.
        return None
    change, by = history.change, f", by {', '.join(sorted(reviewers))}" if reviewers else ""
    what = f"commit {change.label} has {len(reviewers)} of {landing.reviewers} reviews{by}"
    note = "\n".join(
        filter(None, (change.notes.unread, f"eligible reviewers: {_eligible(landing, change, reviewers)}"))
    )
    return _build_problem(NOT_REVIEWED, build, what, f"pin review {change.id[:12]}", note)


def _history_links(build: Build, landing: Landing, earlier: EarlierChanges, keys: KeyRing) -> Iterator[ChainLink]:
    """The changes below the commit, which are deployed with it; none if all of them are vouched for."""
    since = f"since {earlier.base[:12]}" if earlier.base else "since the first commit"
    if earlier.too_many:
        what = f"more than {MAX_COMMITS:,} commits {since} would have to be verified"
        note = "\n".join(_ways_to_vouch(build, landing, earlier))
        next_ = "deploy a reviewed build of an earlier commit first"
        yield ChainLink("history", what, _build_problem(NOT_REVIEWED, build, what, next_, note))
        return
    if not earlier.changes:
        return
    count = len(earlier.changes)
    claim = f"{count:,} earlier commit{'s' if count > 1 else ''} {since}"
    found = [(change, valid_reviewers(keys, change)) for change in earlier.changes]
    lacking = [(change, reviewers) for change, reviewers in found if len(reviewers) < landing.reviewers]
    yield ChainLink("history", claim, _earlier_problem(build, landing, earlier, keys, lacking))


def _earlier_problem(
    build: Build,
    landing: Landing,
    earlier: EarlierChanges,
    keys: KeyRing,
    lacking: Sequence[tuple[Change, frozenset[str]]],
) -> Problem | None:
    if not lacking:
        return None
    oldest, _ = lacking[-1]
    subject = f"{len(lacking):,} commits" if len(lacking) > 1 else "1 commit"
    verb = "lack" if len(lacking) > 1 else "lacks"
    what = f"{subject} below {build.statement.predicate.commit[:12]} {verb} reviews and would be deployed with it"
    listed = [_lacking_line(landing, *each) for each in lacking[:MAX_LISTED_CHANGES]]
    more = len(lacking) - len(listed)
    rest = [f"and {more:,} more"] if more else []
    forged = ["too many signatures by unknown keys: not all of them were verified"] if keys.exhausted else []
    note = "\n".join((*listed, *rest, *forged, *_ways_to_vouch(build, landing, earlier)))
    return _build_problem(NOT_REVIEWED, build, what, f"pin review {oldest.id[:12]}", note)


def _lacking_line(landing: Landing, change: Change, reviewers: frozenset[str]) -> str:
    by = f" by {', '.join(sorted(reviewers))}" if reviewers else ""
    unread = f"; {change.notes.unread}" if change.notes.unread else ""
    missing = f"{len(reviewers)} of {landing.reviewers} reviews{by}{unread}"
    return f"{change.label}: {missing}; eligible: {_eligible(landing, change, reviewers)}"


def _ways_to_vouch(build: Build, landing: Landing, earlier: EarlierChanges) -> Iterator[str]:
    if earlier.revoked:
        yield f"builds accepted before that no longer count, as keys of their reviewers were removed: {earlier.revoked}"
    if earlier.since_unknown:
        yield f"landing.since of the project is {landing.since[:12]}, which is not in the repository"
    elif not earlier.base:
        yield f"no build of project {build.project} was accepted yet, so its whole history counts"
    yield "an administrator can accept the history up to a commit: landing.since of the project"


def _eligible(landing: Landing, change: Change, reviewers: frozenset[str]) -> str:
    return ", ".join(sorted(without_authors(set(landing.people) - reviewers, change.authors))) or "none"


def _builder_problem(build: Build, landing: Landing) -> Problem | None:
    claimed = build.statement.predicate.builder
    if claimed in landing.builders and build.envelope.signers({claimed: landing.builders[claimed]}):
        return None
    what = f"it is not signed by a builder of {build.project}"
    note = f"it claims to be built by {claimed}; allowed builders: {', '.join(sorted(landing.builders))}"
    return _build_problem(BUILDER_UNKNOWN, build, what, note=note)


def _build_problem(reason: Reason, build: Build, what: str, next_: str = "", note: str = "") -> Problem:
    return Problem(reason, what, Where(object=f"{build.project}/{build.label}"), note=note, next=next_)
