"""Git mirrors of projects' repositories: of one branch, and of the notes with reviews."""

from __future__ import annotations

import asyncio
import hashlib
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from pincompute.admission.reviews import CommitHistory, SignedReview
from pincompute.api.attestation import InvalidAttestation, open_envelope
from pincompute.api.build import COMMIT_PATTERN, REVIEW_NOTES_REF, REVIEW_TYPE, Approval
from pincompute.api.landing import Landing
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import REPOSITORY_FAILED
from pincompute.desk.outbound_credentials import OutboundCredentials

_GIT_TIMEOUT_S = 60.0
_AUTHORS_FORMAT = "%ae%n%ce%n%(trailers:key=Co-authored-by,valueonly,separator=%x0A)"
"""Author, committer and co-authors."""
_GIT_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    # Not `ext`, which executes a command that is part of the address.
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
}


class RepositoryMirrors:
    """The mirrors in a folder, each named by a digest of its origin."""

    def __init__(self, folder: Path, credentials: OutboundCredentials) -> None:
        self._folder = folder
        self._credentials = credentials
        self._locks: dict[str, asyncio.Lock] = {}

    async def history(self, landing: Landing, commit: str, path: str) -> CommitHistory:
        """The history of a commit, after a fetch. Commits that are not on the branch are not examined further."""
        folder = self._folder / hashlib.sha256(landing.repository.encode()).hexdigest()[:32]
        mirror = RepositoryMirror(folder, landing.repository, self._credentials)
        async with self._locks.setdefault(landing.repository, asyncio.Lock()):
            await mirror.fetch(landing.branch)
            if not COMMIT_PATTERN.fullmatch(commit) or not await mirror.is_ancestor(landing.branch, commit):
                return CommitHistory()
            return CommitHistory(
                landed=True,
                authors=await mirror.authors(commit),
                file_digest=await mirror.digest(commit, path),
                reviews=tuple(await mirror.reviews(commit)),
            )


class RepositoryMirror:
    """A bare mirror of one repository."""

    def __init__(self, folder: Path, origin: str, credentials: OutboundCredentials) -> None:
        self._folder = folder
        self._origin = origin
        self._credentials = credentials

    async def fetch(self, branch: str) -> None:
        if not (self._folder / "HEAD").exists():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            await self._git_checked("init", "--bare", "--quiet")
        # A pattern for the notes: unlike a name, it is no error as long as there are no reviews.
        refs = f"+refs/heads/{branch}:refs/landed/{branch}", f"+{REVIEW_NOTES_REF}*:{REVIEW_NOTES_REF}*"
        await self._git_checked("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", self._origin, *refs)

    async def is_ancestor(self, branch: str, commit: str) -> bool:
        return await self._git_succeeds("merge-base", "--is-ancestor", commit, f"refs/landed/{branch}")

    async def authors(self, commit: str) -> frozenset[str]:
        """All contributors to a commit; of a merge, also those to the merged commits."""
        parent = f"{commit}^1"
        before = ("--not", parent) if await self._git_succeeds("rev-parse", "--verify", "--quiet", parent) else ()
        output = await self._git_checked("log", f"--format={_AUTHORS_FORMAT}", commit, *before)
        return frozenset(filter(None, map(_address, output.decode("utf-8", "replace").splitlines())))

    async def digest(self, commit: str, path: str) -> str:
        code, body, _ = await self._git("cat-file", "blob", f"{commit}:{path}")
        return "" if code else hashlib.sha256(body).hexdigest()

    async def reviews(self, commit: str) -> Iterable[SignedReview]:
        code, body, _ = await self._git("notes", f"--ref={REVIEW_NOTES_REF}", "show", commit)
        return () if code else _parse_reviews(body)

    async def _git_succeeds(self, *words: str) -> bool:
        code, _, _ = await self._git(*words)
        return code == 0

    async def _git_checked(self, *words: str) -> bytes:
        code, output, errors = await self._git(*words)
        if code:
            where = Where(object=self._origin)
            what = f"git {words[0]} failed with exit code {code}"
            raise Refused(Problem(REPOSITORY_FAILED, what, where, note=errors.decode("utf-8", "replace").strip()))
        return output

    async def _git(self, *words: str) -> tuple[int, bytes, bytes]:
        try:
            process = await asyncio.create_subprocess_exec(
                "git", "-C", str(self._folder), "-c", "core.hooksPath=/dev/null", *self._credentials.git_options(),
                *words,
                env={**os.environ, **_GIT_ENVIRONMENT}, stdin=DEVNULL, stdout=PIPE, stderr=PIPE,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise Refused(
                Problem(REPOSITORY_FAILED, "git is not installed on the desk's machine", Where(object=self._origin))
            ) from error
        try:
            async with asyncio.timeout(_GIT_TIMEOUT_S):
                output, errors = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return 124, b"", f"no result within {_GIT_TIMEOUT_S:g} s".encode()
        return process.returncode or 0, output, errors


def _address(line: str) -> str:
    """The address of `Ann <ann@example.com>`, or of an address alone."""
    return line.strip().rpartition("<")[2].rstrip(">").strip()


def _parse_reviews(note: bytes) -> Iterator[SignedReview]:
    """Skips lines that are no reviews: every committer can write notes, and only signatures count."""
    for line in note.splitlines():
        try:
            yield open_envelope(line, Approval, REVIEW_TYPE)
        except (InvalidAttestation, msgspec.DecodeError):
            continue
