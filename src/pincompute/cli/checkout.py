"""A git checkout, of a developer or of CI."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from pincompute.api.build import REVIEW_NOTES_REF
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE


class Checkout(NamedTuple):
    top: Path
    """Its root folder."""

    @classmethod
    def containing(cls, folder: Path) -> Checkout:
        top = _git(folder, "rev-parse", "--show-toplevel")
        if top is None:
            raise Refused(Problem(USAGE, f"{folder} is not in a git repository", next="git init"))
        return cls(Path(top))

    def resolve_commit(self, name: str = "HEAD") -> str:
        if commit := _git(self.top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            return commit
        raise Refused(Problem(USAGE, f"no commit '{name}' in {self.top}", next="git log --oneline"))

    def branch_name(self) -> str:
        """Return the checked-out branch, or $BRANCH_NAME: CI checks out a commit and no branch."""
        branch = os.environ.get("BRANCH_NAME") or _git(self.top, "symbolic-ref", "--short", "--quiet", "HEAD")
        if not branch:
            raise Refused(Problem(USAGE, "no branch is checked out", next="name the branch: --branch main"))
        return branch

    def origin_url(self) -> str:
        return _git(self.top, "remote", "get-url", "origin") or str(self.top)

    def committed_path(self, file: Path, commit: str) -> str:
        """Return the path of a file from the root; the file must equal the committed one."""
        path = str(file.resolve().relative_to(self.top.resolve()))
        if _git_output(self.top, "cat-file", "blob", f"{commit}:{path}") != file.read_bytes():
            what = f"{path} differs from commit {commit[:12]}"
            raise Refused(Problem(USAGE, what, next=f"git commit {path}"))
        return path

    def user_email(self) -> str:
        return _git(self.top, "config", "user.email") or ""

    def append_note(self, commit: str, line: str) -> None:
        """Append a line to the review notes of a commit."""
        done = subprocess.run(
            ("git", "-C", str(self.top), "notes", f"--ref={REVIEW_NOTES_REF}", "append", "-F", "-", commit),
            input=line.encode(), capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            error = done.stderr.decode("utf-8", "replace").strip()
            raise Refused(Problem(USAGE, f"git notes failed with exit code {done.returncode}", note=error))


def _git(folder: Path, *words: str) -> str | None:
    output = _git_output(folder, *words)
    return None if output is None else output.decode("utf-8", "replace").strip()


def _git_output(folder: Path, *words: str) -> bytes | None:
    """Return None where git fails."""
    try:
        done = subprocess.run(("git", "-C", str(folder), *words), capture_output=True, check=False)
    except FileNotFoundError:
        raise Refused(Problem(USAGE, "git is not installed on this machine", next="install git")) from None
    return None if done.returncode else done.stdout
