"""Commits of a protected branch, and which of them a review has to cover.

Pure. A branch is a chain of changes: its head, the first parent of that, and so on. A merge is one change, which brings
in all commits that its first parent does not have, so its review covers them and none of their authors counts for it.
Names and addresses in a commit are free text, written by whoever made it. They are used only against a reviewer, who
must not be an author; in favour of one counts nothing but a signature with a key that the project lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pincompute.api.attestation import Envelope, KeyRing
from pincompute.api.build import ReviewStatement
from pincompute.api.landing import Landing

MAX_COMMITS = 1_000
"""Commits that are verified for one build. Each costs a note and its signatures, within a request."""
_MAX_SUBJECT_CHARS = 60

SignedReview = tuple[Envelope, ReviewStatement]


class Commit(NamedTuple):
    """A commit as the repository has it."""

    id: str
    parents: tuple[str, ...]
    subject: str
    author: str
    """Email address of the author."""
    contributors: frozenset[str]
    """Email addresses of the author, the committer and the co-authors."""


class Notes(NamedTuple):
    """The reviews in the notes of one commit."""

    reviews: tuple[SignedReview, ...] = ()
    unread: str = ""
    """Why the notes were not read, or not completely."""


class Change(NamedTuple):
    """A commit of the branch, with everything that it brings in."""

    id: str
    subject: str = ""
    author: str = ""
    authors: frozenset[str] = frozenset()
    """Email addresses of all contributors to it and to the commits that it merges."""
    notes: Notes = Notes()

    @property
    def label(self) -> str:
        """Short id, subject and author. Without control characters: they are free text, shown on a terminal."""
        words = [self.id[:12]]
        words += [f'"{_printable(self.subject)}"'] if self.subject else []
        words += [f"by {_printable(self.author)}"] if self.author else []
        return " ".join(words)


class AcceptedCommit(NamedTuple):
    """The commit of a build that the desk has accepted, as it is recorded."""

    id: str
    reviewers: frozenset[str]
    """Those that counted then, so none of its authors."""


class EarlierChanges(NamedTuple):
    """The changes below the commit of a build that no accepted build and no administrator vouches for."""

    changes: tuple[Change, ...] = ()
    """Newest first."""
    base: str = ""
    """The commit since which they were made; empty if that is the first one."""
    too_many: bool = False
    """There are more than are verified, so none is listed."""
    since_unknown: bool = False
    """The repository does not have the commit that the project accepts the history up to."""
    revoked: int = 0
    """Accepted builds that no longer count, because the keys of their reviewers are no longer listed."""


def group_into_changes(head: str, commits: Mapping[str, Commit]) -> list[Change]:
    """The commits as changes of the branch, newest first. `commits` are those reachable from the head, up to a base."""
    chain: list[Commit] = []
    id_ = head
    while commit := commits.get(id_):
        chain.append(commit)
        id_ = commit.parents[0] if commit.parents else ""
    grouped: set[str] = set()
    # Oldest first: what an older change has brought in is not brought in again.
    changes = [_change_of(commit, commits, grouped) for commit in reversed(chain)]
    return changes[::-1]


def _change_of(commit: Commit, commits: Mapping[str, Commit], grouped: set[str]) -> Change:
    authors: set[str] = set()
    waiting = [commit.id]
    while waiting:
        id_ = waiting.pop()
        found = commits.get(id_)
        if found is None or id_ in grouped:
            continue
        grouped.add(id_)
        authors |= found.contributors
        waiting += found.parents
    return Change(commit.id, commit.subject, commit.author, frozenset(authors))


def valid_reviewers(keys: KeyRing, change: Change) -> frozenset[str]:
    """Reviewers with a signed approval of exactly this commit, without its authors."""
    return without_authors(_signers(keys, change.id, change.notes), change.authors)


def still_vouched(keys: KeyRing, accepted: AcceptedCommit, notes: Notes, landing: Landing) -> bool:
    """Whether enough of the reviews of an accepted commit are signed with keys that the project lists today."""
    return len(_signers(keys, accepted.id, notes) & accepted.reviewers) >= landing.reviewers


def _signers(keys: KeyRing, commit: str, notes: Notes) -> frozenset[str]:
    signers: set[str] = set()
    for envelope, review in notes.reviews:
        if any(subject.digest.get("gitCommit") == commit for subject in review.subject):
            signers |= keys.signers(envelope)
    return frozenset(signers)


def without_authors(names: Iterable[str], authors: frozenset[str]) -> frozenset[str]:
    """The names without authors in any case: git accepts every spelling of an address, so an author could pass as
    their own reviewer with another one."""
    folded = {each.casefold() for each in authors}
    return frozenset(each for each in names if each.casefold() not in folded)


def _printable(text: str) -> str:
    return "".join(_visible(text[:_MAX_SUBJECT_CHARS])) + ("…" if len(text) > _MAX_SUBJECT_CHARS else "")


def _visible(text: str) -> Iterator[str]:
    return (each if each.isprintable() else "?" for each in text)
