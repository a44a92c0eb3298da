"""Files of a local folder as a configuration bundle, and the differences between two versions of one."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pincompute.api.config_bundle import ConfigContent, ConfigFile
from pincompute.base.problem import Problem, Refused, Where, refuse_all
from pincompute.base.reasons import CONFIG_INVALID
from pincompute.objects.config_bundle import MAX_FILE_BYTES, MAX_FILES, BundleFile, bundle_errors, content_digest

MAX_DIFF_BYTES = 256 << 10
"""Larger files are only named: comparing them line by line takes too long."""


class LocalBundle(NamedTuple):
    files: list[ConfigFile]
    paths: dict[str, Path]
    """A file with the content of each digest."""

    @classmethod
    def read(cls, folder: Path) -> LocalBundle:
        """Read a folder. Refused with all files that a bundle may not have."""
        if not folder.is_dir():
            raise Refused(Problem(CONFIG_INVALID, f"no such folder: {folder}", next="pin config publish NAME FOLDER"))
        found = sorted(_walk(folder))[: MAX_FILES + 1]
        problems = [_not_a_file(folder, each) for each in found if each.is_symlink() or not each.is_file()]
        sizes = {each: each.stat().st_size for each in found if each.is_file() and not each.is_symlink()}
        files: list[BundleFile] = []
        paths: dict[str, Path] = {}
        for path, size in sizes.items():
            # What is too large is refused below, without being read.
            digest = content_digest(path.read_bytes()) if size <= MAX_FILE_BYTES else "0" * 64
            files.append(BundleFile(path.relative_to(folder).as_posix(), digest, size))
            paths[digest] = path
        where = Where(file=str(folder))
        problems += [Problem(CONFIG_INVALID, each, where) for each in bundle_errors(files)]
        refuse_all(problems)
        return cls([ConfigFile(**each._asdict()) for each in files], paths)


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def _not_a_file(folder: Path, path: Path) -> Problem:
    kind = "a symbolic link" if path.is_symlink() else "no regular file"
    what = f"{path.relative_to(folder)} is {kind}: a bundle has regular files only"
    return Problem(CONFIG_INVALID, what, Where(file=str(folder)), next="replace it by its content, or move it away")


class ChangedFile(NamedTuple):
    path: str
    before: str
    """Digest; empty for an added file."""
    after: str
    """Digest; empty for a removed file."""

    @property
    def sign(self) -> str:
        return "+" if not self.before else "-" if not self.after else "~"


def changed_files(before: ConfigContent, after: ConfigContent) -> list[ChangedFile]:
    """Files that differ between two versions, by path."""
    old, new = ({each.path: each.digest for each in version.files} for version in (before, after))
    return [
        ChangedFile(path, old.get(path, ""), new.get(path, ""))
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    ]


def diff_lines(before: bytes, after: bytes) -> list[str]:
    """The lines of a unified diff; one line for files that are no text, or too large."""
    if max(len(before), len(after)) > MAX_DIFF_BYTES:
        return [f"  {len(before):,} and {len(after):,} bytes: too large to compare by line"]
    try:
        old, new = before.decode().splitlines(), after.decode().splitlines()
    except UnicodeDecodeError:
        return [f"  {len(before):,} and {len(after):,} bytes, no text"]
    found = list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]
    return [f"  {each}" for each in found] or ["  differs in the ends of lines only"]
