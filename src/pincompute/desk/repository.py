"""Git mirrors of projects' repositories: of one branch, and of the notes with reviews.

Everything in a repository is written by those who can push to it, so everything that is read of it has a bound.
"""

from __future__ import annotations

import asyncio
import hashlib
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from pincompute.admission.commits import (
    MAX_COMMITS,
    AcceptedCommit,
    Change,
    Commit,
    EarlierChanges,
    Notes,
    SignedReview,
    group_into_changes,
    still_vouched,
)
from pincompute.admission.reviews import CommitHistory
from pincompute.api.attestation import InvalidAttestation, KeyRing, open_envelope
from pincompute.api.build import COMMIT_PATTERN, REVIEW_NOTES_REF, REVIEW_TYPE, Approval
from pincompute.api.landing import Landing, repository_error
from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import REPOSITORY_FAILED, REPOSITORY_REFUSED, REPOSITORY_TOO_LARGE
from pincompute.desk.git_process import GitCommand, GitResult, run_git
from pincompute.desk.outbound_credentials import OutboundCredentials
from pincompute.platforms.artifact_store import MAX_ARTIFACT_BYTES

MAX_NOTE_BYTES = 64 << 10
"""Size of the notes of one commit: about ninety reviews."""
MAX_NOTES_BYTES = 8 << 20
"""Size of all notes that are read for one build."""
MAX_FETCHED_FILE_BYTES = 4 << 30
"""Size of each file that a fetch may write, such as the pack of what is new."""
MAX_LOG_BYTES = 4 << 20
"""Size of what git reports of the commits of one build: ids, addresses and subjects."""
_FILE_LIMIT_SIGNAL = f"signal {int(signal.SIGXFSZ)}"
"""Named by git for a helper that wrote too large a file."""
_NOTE_FANOUTS = 4
"""Notes are files named by their commit, in up to so many levels of folders, depending on how many notes there are."""
_LOG_FORMAT = "%x00".join(
    ("%H", "%P", "%<(200,trunc)%s", "%ae", "%ce", "%(trailers:key=Co-authored-by,valueonly,separator=%x0A)")
)
_LOG_FIELDS = 6

log = structlog.get_logger()


class RepositoryMirrors:
    """The mirrors in a folder, each named by a digest of its origin."""

    def __init__(self, folder: Path, credentials: OutboundCredentials) -> None:
        self._folder = folder
        self._credentials = credentials
        self._locks: dict[str, asyncio.Lock] = {}

    async def history(
        self,
        landing: Landing,
        commit: str,
        path: str,
        accepted: Sequence[AcceptedCommit] = (),
        *,
        allow_stale: bool = False,
    ) -> CommitHistory:
        """The history of a commit, after a fetch. Commits that are not on the branch are not examined further.

        `accepted` are commits of former builds: what lies below them is vouched for, as long as the keys of their
        reviewers are listed. With `allow_stale` the last fetched state is used if the repository does not respond.
        """
        if error := repository_error(landing.repository):
            where = Where(object=landing.repository, field="landing.repository")
            raise Refused(Problem(REPOSITORY_REFUSED, error, where, next="kubectl edit project PROJECT"))
        folder = self._folder / hashlib.sha256(landing.repository.encode()).hexdigest()[:32]
        mirror = RepositoryMirror(folder, landing.repository, self._credentials)
        async with self._locks.setdefault(landing.repository, asyncio.Lock()):
            await self._fetch(mirror, landing.branch, allow_stale=allow_stale)
            if not COMMIT_PATTERN.fullmatch(commit) or not await mirror.is_ancestor(landing.branch, commit):
                return CommitHistory()
            file_digest = await mirror.digest(commit, path)
            change, earlier = await _changes(mirror, landing, commit, accepted)
        return CommitHistory(landed=True, file_digest=file_digest, change=change, earlier=earlier)

    async def _fetch(self, mirror: RepositoryMirror, branch: str, *, allow_stale: bool) -> None:
        try:
            await mirror.fetch(branch)
        except Refused:
            if not allow_stale or not await mirror.has_branch(branch):
                raise
            log.warning("repository unavailable, using the last fetched state", mirror=mirror.name)


async def _changes(
    mirror: RepositoryMirror, landing: Landing, commit: str, accepted: Sequence[AcceptedCommit]
) -> tuple[Change, EarlierChanges]:
    """The change that a commit is, and those below it that nothing vouches for."""
    bases, earlier = await _bases(mirror, landing, accepted)
    commits = await mirror.commits(commit, bases) if landing.reviewers else {}
    if commits is None:
        earlier = earlier._replace(too_many=True)
    changes = group_into_changes(commit, commits or {})
    if not changes:
        # Everything below it is vouched for, or is not asked about; its own review counts in any case.
        own = await mirror.commits(commit, await mirror.first_parent(commit))
        if own is None:
            what = f"commit {commit[:12]} merges more than {MAX_COMMITS:,} commits"
            raise mirror.too_large(what, "deploy a commit that merges fewer")
        changes = group_into_changes(commit, own)[:1]
    notes = await mirror.notes([change.id for change in changes])
    first, *others = (change._replace(notes=notes[change.id]) for change in changes)
    return first, earlier._replace(changes=tuple(others))


async def _bases(
    mirror: RepositoryMirror, landing: Landing, accepted: Sequence[AcceptedCommit]
) -> tuple[list[str], EarlierChanges]:
    """The commits whose history is vouched for, newest first, and what follows from them for the changes."""
    candidates = [each for each in accepted if COMMIT_PATTERN.fullmatch(each.id)]
    wanted = [each.id for each in candidates] + ([landing.since] if landing.since else [])
    existing = await mirror.existing(wanted)
    present = [each for each in candidates if each.id in existing]
    notes = await mirror.notes([each.id for each in present])
    # On a thread: users with push access can make this slow.
    vouched = await asyncio.to_thread(_still_vouched, present, notes, landing)
    since_known = landing.since in existing
    bases = vouched + ([landing.since] if since_known else [])
    earlier = EarlierChanges(
        base=bases[0] if bases else "",
        since_unknown=bool(landing.since) and not since_known,
        revoked=len(present) - len(vouched),
    )
    return bases, earlier


def _still_vouched(accepted: Sequence[AcceptedCommit], notes: Mapping[str, Notes], landing: Landing) -> list[str]:
    keys = KeyRing(landing.people)
    return [each.id for each in accepted if still_vouched(keys, each, notes[each.id], landing)]


class RepositoryMirror:
    """A bare mirror of one repository."""

    def __init__(self, folder: Path, origin: str, credentials: OutboundCredentials) -> None:
        self._folder = folder
        self._origin = origin
        self._credentials = credentials

    @property
    def name(self) -> str:
        """The name of its folder. Its origin may contain a password."""
        return self._folder.name

    async def fetch(self, branch: str) -> None:
        if not (self._folder / "HEAD").exists():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            await self._git_checked("init", "--bare", "--quiet")
        # A pattern for the notes: unlike a name, it is no error as long as there are no reviews.
        refs = f"+refs/heads/{branch}:refs/landed/{branch}", f"+{REVIEW_NOTES_REF}*:{REVIEW_NOTES_REF}*"
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", self._origin, *refs)
        result = await self._run(GitCommand(words, max_file_bytes=MAX_FETCHED_FILE_BYTES))
        if not result.code:
            return
        # An interrupted fetch leaves packs that are never used again and fill the disk, and locks of refs.
        for pattern in ("objects/**/tmp_*", "**/*.lock"):
            for file in self._folder.glob(pattern):
                file.unlink(missing_ok=True)
        if _FILE_LIMIT_SIGNAL in result.errors:
            what = f"a fetch would write a file of more than {MAX_FETCHED_FILE_BYTES:,} bytes"
            raise self.too_large(what, "remove large files from the branch and from the review notes")
        raise self._failed("fetch", result)

    async def has_branch(self, branch: str) -> bool:
        return await self._git_succeeds("rev-parse", "--verify", "--quiet", f"refs/landed/{branch}")

    async def is_ancestor(self, branch: str, commit: str) -> bool:
        return await self._git_succeeds("merge-base", "--is-ancestor", commit, f"refs/landed/{branch}")

    async def first_parent(self, commit: str) -> list[str]:
        """The first parent of a commit; empty for the first commit."""
        result = await self._git(GitCommand(("rev-parse", "--verify", "--quiet", f"{commit}^1")))
        return [] if result.code else [result.output.decode().strip()]

    async def commits(self, commit: str, bases: Iterable[str]) -> dict[str, Commit] | None:
        """The commits that are reachable from a commit and from none of the bases; None if there are too many."""
        words = (
            "log", "-z", "--no-show-signature", f"--max-count={MAX_COMMITS + 1}", f"--format=tformat:{_LOG_FORMAT}",
            commit, "--not", *bases, "--",
        )  # fmt: skip
        result = await self._git(GitCommand(words, max_output_bytes=MAX_LOG_BYTES))
        if result.truncated:
            what = f"the data of the commits up to {commit[:12]} has more than {MAX_LOG_BYTES:,} bytes"
            raise self.too_large(what, "deploy a build of an earlier commit first")
        if result.code:
            raise self._failed("log", result)
        found = list(_parse_log(result.output))
        return None if len(found) > MAX_COMMITS else {each.id: each for each in found}

    async def digest(self, commit: str, path: str) -> str:
        """SHA-256 of a file; empty if it does not exist."""
        command = GitCommand(("cat-file", "blob", f"{commit}:{path}"), max_output_bytes=MAX_ARTIFACT_BYTES)
        result = await self._git(command)
        if result.truncated:
            what = f"{path} in commit {commit[:12]} has more than {MAX_ARTIFACT_BYTES:,} bytes"
            raise self.too_large(what, "land a smaller workload file")
        return "" if result.code else hashlib.sha256(result.output).hexdigest()

    async def existing(self, commits: Sequence[str]) -> frozenset[str]:
        """Those of the commits that the repository has."""
        found = await self._objects([f"{each}^{{commit}}" for each in commits])
        return frozenset(each for each in commits if f"{each}^{{commit}}" in found)

    async def notes(self, commits: Sequence[str]) -> Mapping[str, Notes]:
        """The reviews of each commit. Sizes are read first, so that nothing too large is."""
        blobs = await self._objects([path for each in commits for path in _note_paths(each)])
        chosen: dict[str, list[str]] = {}
        unread: dict[str, str] = {}
        total = 0
        for commit in commits:
            found = [blobs[path] for path in _note_paths(commit) if path in blobs]
            size = sum(size for _, size in found)
            total += size
            if size > MAX_NOTE_BYTES:
                unread[commit] = f"its notes have {size:,} bytes, and at most {MAX_NOTE_BYTES:,} are read"
                total -= size
            elif total > MAX_NOTES_BYTES:
                unread[commit] = f"the notes of all commits have more than {MAX_NOTES_BYTES:,} bytes"
            else:
                chosen[commit] = [id_ for id_, _ in found]
        contents = await self._contents({id_ for ids in chosen.values() for id_ in ids})
        texts = {commit: b"\n".join(contents[id_] for id_ in ids) for commit, ids in chosen.items()}
        # On a thread: megabytes of notes would occupy the event loop for a noticeable time.
        reviews = await asyncio.to_thread(_parse_notes, texts)
        return {commit: Notes(reviews.get(commit, ()), unread.get(commit, "")) for commit in commits}

    def too_large(self, what: str, next_: str) -> Refused:
        return Refused(Problem(REPOSITORY_TOO_LARGE, what, Where(object=self._origin), next=next_))

    async def _objects(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Id and size of each object that exists, by name."""
        if not names:
            return {}
        sent = "".join(f"{each}\n" for each in names).encode()
        words = ("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
        output = await self._batch(words, sent, len(names) * 256)
        lines = output.decode("utf-8", "replace").splitlines()
        # A name without an object is repeated, with the word `missing`.
        rows = ((name, line.split(" ")) for name, line in zip(names, lines, strict=True))
        return {name: (row[0], int(row[2])) for name, row in rows if len(row) == 3 and row[1] in {"blob", "commit"}}

    async def _contents(self, blobs: Iterable[str]) -> dict[str, bytes]:
        ids = sorted(blobs)
        if not ids:
            return {}
        sent = "".join(f"{each}\n" for each in ids).encode()
        output = await self._batch(("cat-file", "--batch=%(objectsize)"), sent, MAX_NOTES_BYTES + len(ids) * 32)
        contents: dict[str, bytes] = {}
        at = 0
        for id_ in ids:
            begin = output.index(b"\n", at) + 1
            end = begin + int(output[at:begin])
            contents[id_] = output[begin:end]
            at = end + 1
        return contents

    async def _batch(self, words: tuple[str, ...], sent: bytes, limit: int) -> bytes:
        result = await self._git(GitCommand(words, sent, max_output_bytes=limit))
        if result.code or result.truncated:
            raise self._failed(words[0], result)
        return result.output

    async def _git_succeeds(self, *words: str) -> bool:
        return (await self._git(GitCommand(words))).code == 0

    async def _git_checked(self, *words: str) -> None:
        result = await self._git(GitCommand(words))
        if result.code:
            raise self._failed(words[0], result)

    def _failed(self, verb: str, result: GitResult) -> Refused:
        what = f"git {verb} failed with exit code {result.code}"
        return Refused(Problem(REPOSITORY_FAILED, what, Where(object=self._origin), note=result.errors))

    async def _git(self, command: GitCommand) -> GitResult:
        result = await self._run(command)
        if result.timed_out:
            # Neither yes nor no: most commands answer by their exit code.
            raise self._failed(command.words[0], result)
        return result

    async def _run(self, command: GitCommand) -> GitResult:
        try:
            return await run_git(self._folder, command, self._credentials.git_options(), _protocol(self._origin))
        except FileNotFoundError as error:
            where = Where(object=self._origin)
            raise Refused(Problem(REPOSITORY_FAILED, "git is not installed on the desk's machine", where)) from error


def _protocol(origin: str) -> str:
    """The protocol of an address that `repository_error` accepts."""
    scheme, separator, _ = origin.partition("://")
    if separator:
        return scheme
    # As git tells them apart: `host:path` is of SSH unless a slash comes before the colon.
    is_ssh = ":" in origin.partition("/")[0]
    return "ssh" if is_ssh else "file"


def _parse_log(output: bytes) -> Iterator[Commit]:
    fields = output.decode("utf-8", "replace").split("\0")[:-1]
    for at in range(0, len(fields), _LOG_FIELDS):
        id_, parents, subject, author, committer, others = fields[at : at + _LOG_FIELDS]
        contributors = {_address(each) for each in (author, committer, *others.splitlines())} - {""}
        yield Commit(id_, tuple(parents.split()), subject.strip(), author, frozenset(contributors))


def _note_paths(commit: str) -> Iterator[str]:
    """The names that the notes of a commit may have."""
    for levels in range(_NOTE_FANOUTS):
        folders = [commit[2 * level : 2 * level + 2] for level in range(levels)]
        yield f"{REVIEW_NOTES_REF}:{'/'.join((*folders, commit[2 * levels :]))}"


def _address(line: str) -> str:
    """The address of `Ann <ann@example.com>`, or of an address alone."""
    return line.strip().rpartition("<")[2].rstrip(">").strip()


def _parse_notes(texts: Mapping[str, bytes]) -> dict[str, tuple[SignedReview, ...]]:
    return {commit: tuple(_parse_reviews(text)) for commit, text in texts.items()}


def _parse_reviews(note: bytes) -> Iterator[SignedReview]:
    """Skips lines that are no reviews: every committer can write notes, and only signatures count."""
    for line in note.splitlines():
        try:
            yield open_envelope(line, Approval, REVIEW_TYPE)
        except (InvalidAttestation, msgspec.DecodeError):
            continue
