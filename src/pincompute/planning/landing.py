"""Whether what was built may run in a project: only what was reviewed and landed does. Pure.

A builder's word is not enough: that the commit landed, what the file says there and who reviewed it is read in the
repository itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard

import msgspec

from pincompute.api.admission import admit_workload
from pincompute.api.attestation import Envelope
from pincompute.api.build import FILE, Built, Reviewed, file_digest, image_places, images
from pincompute.api.documents import read_one
from pincompute.api.landing import Landing
from pincompute.api.membership import Review
from pincompute.api.project import Project
from pincompute.api.workload import Workload
from pincompute.base.problem import Problem, Where, refuse_all
from pincompute.base.reasons import BUILD_ALTERED, BUILDER_UNKNOWN, NOT_LANDED, NOT_REVIEWED, ONLY_LANDED, Reason
from pincompute.planning.people.edits import filed

Signed = tuple[Envelope, Reviewed]


class History(NamedTuple):
    """What the repository says of a commit."""

    landed: bool = False
    """It is on the branch; what is not is not looked at further."""
    authors: frozenset[str] = frozenset()
    """Who wrote, committed or helped to write what it brought, by their addresses."""
    file: str = ""
    """The SHA-256 of the workload file as it stands there; empty where there is none."""
    reviews: tuple[Signed, ...] = ()


class Build(NamedTuple):
    """What lies in the store under one name and version."""

    project: str
    name: str
    version: str
    file: bytes
    digest: str
    """The SHA-256 of the file as it was read."""
    envelope: Envelope
    built: Built

    @property
    def text(self) -> str:
        return self.file.decode("utf-8", "replace")

    @property
    def label(self) -> str:
        return f"{self.name} {self.version}"


class Link(NamedTuple):
    """One link of the chain from a commit to what runs, and whether it holds."""

    what: str
    says: str
    problem: Problem | None = None


class Verdict(NamedTuple):
    links: tuple[Link, ...] = ()
    reviewers: frozenset[str] = frozenset()
    """Whose reviews count."""

    def problems(self, *, glass: bool = False) -> Iterator[Problem]:
        """Where the glass is broken it may be unreviewed, but never what somebody has altered."""
        found = (each.problem for each in self.links if each.problem)
        return (each for each in found if not (glass and each.reason in (NOT_LANDED, NOT_REVIEWED)))


def only_landed(project: Project | None) -> TypeGuard[Project]:
    """A namespace that nobody has described takes anything."""
    return project is not None and project.spec.review is Review.LANDED


def closed(project: Project | None, workload: Workload) -> Problem | None:
    """Why work that nobody vouches for is not taken."""
    if not only_landed(project):
        return None
    name = workload.metadata.name
    what = f"the project {project.metadata.name} takes only what was reviewed and landed, and this is a file"
    note = 'in an emergency, on record and for a while: pin deploy FILE --break-glass "INC-4711: why"'
    return Problem(
        ONLY_LANDED, what, Where(object=workload.metadata.place), note, f"pin deploy {name} --version VERSION"
    )


def unvouched(project: Project | None, workload: Workload) -> Problem | None:
    """Why it does not become once more what it was before anybody had to vouch for it."""
    if not only_landed(project) or workload.spec.build or workload.spec.break_glass:
        return None
    name, whose = workload.metadata.name, workload.metadata.namespace
    what = f"the project {whose} takes only what was reviewed and landed, and nobody vouched for what {name} was then"
    where = Where(object=workload.metadata.place)
    return Problem(ONLY_LANDED, what, where, next=f"pin deploy {name} --version VERSION")


def forged(workload: Workload, vouched: Iterable[Workload]) -> Problem | None:
    """Why it is not what it says: somebody wrote another content by that name, where nobody had to vouch for it."""
    if any(filed(each).spec == filed(workload).spec for each in vouched):
        return None
    name, spec = workload.metadata.name, workload.spec
    said = "let in by the desk behind broken glass" if spec.break_glass else f"the build {spec.build}"
    what = f"{name} said then that it was {said}, and it was something else: somebody wrote it past the desk"
    return Problem(
        ONLY_LANDED, what, Where(object=workload.metadata.place), next=f"pin deploy {name} --version VERSION"
    )


def claimed(workload: Workload) -> Problem | None:
    """Why what somebody wrote themselves is no build, and breaks no glass."""
    where = Where(object=workload.metadata.place)
    if workload.spec.break_glass:
        what = "it says itself that the glass is broken for it, and that is for the desk to say"
        next_ = (
            f'leave spec.breakGlass out; in an emergency: pin deploy {workload.metadata.name}.yaml --break-glass "WHY"'
        )
        return Problem(ONLY_LANDED, what, where._replace(field="spec.breakGlass"), next=next_)
    if not workload.spec.build:
        return None
    what = f"it says that it is the build {workload.spec.build}, and it is a file that was sent"
    next_ = f"leave spec.build out, or pin deploy {workload.metadata.name} --version {workload.spec.build}"
    return Problem(ONLY_LANDED, what, where._replace(field="spec.build"), next=next_)


def judge(build: Build, landing: Landing, history: History) -> Verdict:
    """From the repository to the build: every link is looked at, whether or not the one before it holds."""
    provenance, good = build.built.predicate, _reviewers(build, landing, history)
    return Verdict(
        (
            Link("commit", f"{provenance.commit[:12]} on {landing.branch}", _commit(build, landing, history)),
            Link(
                "reviewed", f"by {', '.join(sorted(good)) or 'nobody else'}", _reviewed(build, landing, history, good)
            ),
            Link("file", f"{provenance.source.path} sha256:{build.digest[:12]}", _file(build, history)),
            Link("built", f"as {build.version} by {provenance.builder}", _builder(build, landing)),
        ),
        good,
    )


def _reviewers(build: Build, landing: Landing, history: History) -> frozenset[str]:
    """Who has signed that this very commit is good, and has not written it."""
    commit = build.built.predicate.commit
    found: set[str] = set()
    for envelope, reviewed in history.reviews:
        if any(each.digest.get("gitCommit") == commit for each in reviewed.subject):
            found |= envelope.signers(landing.people)
    return frozenset(found) - _folded(found, history.authors)


def deployable(build: Build) -> Workload:
    """What its file says, with every image as it was when it was built; refused where the build names not all."""
    workload = admit_workload(read_one(build.text, FILE), build.project)
    known, found = images(build.built), list[Problem]()
    if (workload.metadata.namespace, workload.metadata.name) != (build.project, build.name):
        found.append(_problem(BUILD_ALTERED, build, f"its workload file is of {workload.metadata.place}"))
    said: dict[str, Any] = msgspec.to_builtins(workload.spec)
    for place, field in image_places(said):
        name = place[field]
        if name in known:
            place[field] = f"{name.partition('@')[0]}@{known[name]}"
        else:
            found.append(_problem(BUILD_ALTERED, build, f"it says nothing of the image {name}", "publish it anew"))
    refuse_all(found)
    spec = msgspec.convert({**said, "build": build.version, "breakGlass": None}, type(workload.spec))
    return msgspec.structs.replace(workload, spec=spec)


def _commit(build: Build, landing: Landing, history: History) -> Problem | None:
    commit, branch = build.built.predicate.commit, landing.branch
    if history.landed:
        return None
    what = f"the commit {commit[:12] or 'that it names'} is not on the branch {branch} of {landing.repository}"
    return _problem(NOT_LANDED, build, what, f"land it on {branch}, and publish what landed")


def _file(build: Build, history: History) -> Problem | None:
    if file_digest(build.built) != build.digest:
        return _problem(BUILD_ALTERED, build, "its workload file is not the one that was signed", "publish it anew")
    if history.landed and history.file != build.digest:
        path, commit = build.built.predicate.source.path, build.built.predicate.commit[:12]
        what = f"its workload file is not {path} as it stands in the commit {commit}"
        return _problem(BUILD_ALTERED, build, what, "publish the file that landed")
    return None


def _reviewed(build: Build, landing: Landing, history: History, good: frozenset[str]) -> Problem | None:
    wanted, commit = landing.reviewers, build.built.predicate.commit[:12]
    if len(good) >= wanted or not history.landed:
        # Of what has not landed nobody can say yet who wrote it.
        return None
    by = f", by {', '.join(sorted(good))}" if good else ""
    what = f"the commit {commit} has {len(good)} of {wanted} reviews{by}"
    others = sorted(set(landing.people) - good - _folded(landing.people, history.authors))
    return _problem(NOT_REVIEWED, build, what, f"pin review {commit}", f"who may: {', '.join(others) or 'nobody else'}")


def _builder(build: Build, landing: Landing) -> Problem | None:
    claimed = build.built.predicate.builder
    if claimed in build.envelope.signers(landing.builders):
        return None
    what = f"it is not signed by a builder of {build.project}"
    known = f"it says that {claimed} built it; who may: {', '.join(sorted(landing.builders))}"
    return _problem(BUILDER_UNKNOWN, build, what, note=known)


def _folded(names: Iterable[str], of: frozenset[str]) -> frozenset[str]:
    """Those that are among others, however they are written: git leaves it to everybody how to spell an address."""
    known = {each.casefold() for each in of}
    return frozenset(each for each in names if each.casefold() in known)


def _problem(reason: Reason, build: Build, what: str, next_: str = "", note: str = "") -> Problem:
    return Problem(reason, what, Where(object=f"{build.project}/{build.label}"), note=note, next=next_)
