"""A project's repository, as the desk reads it: a copy of its own, of one branch and of the reviews."""

from __future__ import annotations

import asyncio
import hashlib
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from pincompute.api.attestation import NotSaid, opened
from pincompute.api.build import COMMIT, REVIEWED, REVIEWS, Approval
from pincompute.api.landing import Landing
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import REPOSITORY_FAILED
from pincompute.planning.landing import History, Signed
from pincompute.submission.credentials import Credentials

PATIENCE = 60.0
"""Seconds that a repository may take."""
_HELPED = "%ae%n%ce%n%(trailers:key=Co-authored-by,valueonly,separator=%x0A)"
"""Who wrote it, who committed it, and who helped."""
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}


class Repositories:
    """Kept in a folder, each by a digest of where it comes from."""

    def __init__(self, folder: Path, credentials: Credentials) -> None:
        self._folder = folder
        self._credentials = credentials
        self._turns: dict[str, asyncio.Lock] = {}

    async def history(self, landing: Landing, commit: str, path: str) -> History:
        """As the repository has it now."""
        folder = self._folder / hashlib.sha256(landing.repository.encode()).hexdigest()[:32]
        copy = Copy(folder, landing.repository, self._credentials)
        async with self._turns.setdefault(landing.repository, asyncio.Lock()):
            await copy.renew(landing.branch)
            if not COMMIT.fullmatch(commit) or not await copy.leads_to(landing.branch, commit):
                return History()
            return History(
                landed=True,
                authors=await copy.authors(commit),
                file=await copy.digest(commit, path),
                reviews=tuple(await copy.reviews(commit)),
            )


class Copy:
    """Bare; of the branch and of the reviews, whatever else is there."""

    def __init__(self, folder: Path, origin: str, credentials: Credentials) -> None:
        self._folder = folder
        self._origin = origin
        self._credentials = credentials

    async def renew(self, branch: str) -> None:
        if not (self._folder / "HEAD").exists():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            await self._must("init", "--bare", "--quiet")
        # The glob matches nothing, and is no error, where nobody has reviewed anything yet.
        wanted = f"+refs/heads/{branch}:refs/landed/{branch}", f"+{REVIEWS}*:{REVIEWS}*"
        await self._must("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", self._origin, *wanted)

    async def leads_to(self, branch: str, commit: str) -> bool:
        return await self._try("merge-base", "--is-ancestor", commit, f"refs/landed/{branch}")

    async def authors(self, commit: str) -> frozenset[str]:
        """Of all that it brought to the branch: where it merges, of what it merges as well."""
        before = f"{commit}^1"
        begun = ("--not", before) if await self._try("rev-parse", "--verify", "--quiet", before) else ()
        said = await self._must("log", f"--format={_HELPED}", commit, *begun)
        return frozenset(filter(None, map(_address, said.decode("utf-8", "replace").splitlines())))

    async def digest(self, commit: str, path: str) -> str:
        code, body, _ = await self._git("cat-file", "blob", f"{commit}:{path}")
        return "" if code else hashlib.sha256(body).hexdigest()

    async def reviews(self, commit: str) -> Iterable[Signed]:
        code, body, _ = await self._git("notes", f"--ref={REVIEWS}", "show", commit)
        return () if code else _read(body)

    async def _try(self, *words: str) -> bool:
        code, _, _ = await self._git(*words)
        return code == 0

    async def _must(self, *words: str) -> bytes:
        code, said, complaint = await self._git(*words)
        if code:
            where = Where(object=self._origin)
            what = f"the repository cannot be read: git {words[0]} ended with {code}"
            raise Refused(Problem(REPOSITORY_FAILED, what, where, note=complaint.decode("utf-8", "replace").strip()))
        return said

    async def _git(self, *words: str) -> tuple[int, bytes, bytes]:
        try:
            process = await asyncio.create_subprocess_exec(
                "git", "-C", str(self._folder), "-c", "core.hooksPath=/dev/null", *self._credentials.of_git(), *words,
                env={**os.environ, **_QUIET}, stdin=DEVNULL, stdout=PIPE, stderr=PIPE,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise Refused(
                Problem(REPOSITORY_FAILED, "the desk's machine has no git", Where(object=self._origin))
            ) from error
        try:
            async with asyncio.timeout(PATIENCE):
                said, complaint = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return 124, b"", f"it took more than {PATIENCE:g} s".encode()
        return process.returncode or 0, said, complaint


def _address(line: str) -> str:
    """`Ann <ann@example.com>`, or the address alone."""
    return line.strip().rpartition("<")[2].rstrip(">").strip()


def _read(note: bytes) -> Iterator[Signed]:
    """What is no review is passed over: anybody may write notes, and only signatures count."""
    for line in note.splitlines():
        try:
            yield opened(line, Approval, REVIEWED)
        except (NotSaid, msgspec.DecodeError):
            continue
