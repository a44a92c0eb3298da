"""The checkout that a person or CI stands in, as git tells of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from pincompute.api.build import REVIEWS
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import USAGE


class Checkout(NamedTuple):
    top: Path

    @classmethod
    def around(cls, folder: Path) -> Checkout:
        said = _git(folder, "rev-parse", "--show-toplevel")
        if said is None:
            raise Refused(Problem(USAGE, f"{folder} is in no git repository", next="git init"))
        return cls(Path(said))

    def commit(self, name: str = "HEAD") -> str:
        if found := _git(self.top, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            return found
        raise Refused(Problem(USAGE, f"there is no commit '{name}' in {self.top}", next="git log --oneline"))

    def branch(self) -> str:
        """CI stands on a commit and says the branch in a variable."""
        named = os.environ.get("BRANCH_NAME") or _git(self.top, "symbolic-ref", "--short", "--quiet", "HEAD")
        if not named:
            raise Refused(Problem(USAGE, "no branch is checked out", next="say which: --branch main"))
        return named

    def origin(self) -> str:
        return _git(self.top, "remote", "get-url", "origin") or str(self.top)

    def path(self, file: Path, commit: str) -> str:
        """From the top; it must be there as it is here."""
        path = str(file.resolve().relative_to(self.top.resolve()))
        if _bytes(self.top, "cat-file", "blob", f"{commit}:{path}") != file.read_bytes():
            what = f"{path} is not as it stands in the commit {commit[:12]}"
            raise Refused(Problem(USAGE, what, next=f"git commit {path}"))
        return path

    def mine(self) -> str:
        return _git(self.top, "config", "user.email") or ""

    def note(self, commit: str, line: str) -> None:
        """A line more in what is said of a commit."""
        done = subprocess.run(
            ("git", "-C", str(self.top), "notes", f"--ref={REVIEWS}", "append", "-F", "-", commit),
            input=line.encode(), capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise Refused(
                Problem(USAGE, "git did not take the note", note=done.stderr.decode("utf-8", "replace").strip())
            )


def _git(folder: Path, *words: str) -> str | None:
    said = _bytes(folder, *words)
    return None if said is None else said.decode("utf-8", "replace").strip()


def _bytes(folder: Path, *words: str) -> bytes | None:
    try:
        done = subprocess.run(("git", "-C", str(folder), *words), capture_output=True, check=False)
    except FileNotFoundError:
        raise Refused(Problem(USAGE, "there is no git on this machine", next="install git")) from None
    return None if done.returncode else done.stdout
