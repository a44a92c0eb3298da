"""Contents of configuration bundles: which files a bundle may have, its manifest, and the digest of that.

It uses only the standard library, because programs in every pod verify bundles with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MAX_FILES = 1_000
MAX_FILE_BYTES = 1_000_000
"""What the desk accepts as a request."""
MAX_BUNDLE_BYTES = 8 << 20
MAX_PATH_CHARS = 200
MAX_FOLDERS_DEEP = 8
MAX_REPORTED = 10
"""Errors of one bundle that are reported; the others are counted."""

MISSING_MESSAGE, REJECTED_MESSAGE = "configuration bundles missing", "configuration bundles rejected"
"""Starts of the last line of a container that could not fetch bundles, by which `pin why` knows it."""

_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,100}", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


class BundleFile(NamedTuple):
    """One file of a bundle."""

    path: str
    """Relative, with `/`."""
    digest: str
    """SHA-256 of its content, in hexadecimal digits."""
    size: int


def content_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_digest(text: str) -> bool:
    return bool(_DIGEST.fullmatch(text))


def manifest_of(files: Sequence[BundleFile]) -> bytes:
    """The canonical form of a bundle: equal files give equal bytes, in any order of the argument."""
    return json.dumps([list(each) for each in sorted(files)], separators=(",", ":")).encode()


def bundle_digest(files: Sequence[BundleFile]) -> str:
    """The digest of a bundle: SHA-256 of its manifest."""
    return content_digest(manifest_of(files))


def parse_manifest(manifest: bytes) -> list[BundleFile]:
    """The files of a manifest. ValueError if it is not one, or describes a bundle that is not allowed."""
    rows = json.loads(manifest)
    if not isinstance(rows, list) or len(rows) > MAX_FILES:
        raise ValueError("not a list of files")
    files = []
    for row in rows:
        match row:
            case [str(path), str(digest), int(size)]:
                files.append(BundleFile(path, digest, size))
            case _:
                raise ValueError("an entry is not a path, a digest and a size")
    if error := next(bundle_errors(files), ""):
        raise ValueError(error)
    return files


def bundle_errors(files: Sequence[BundleFile]) -> Iterator[str]:
    """The rules that a bundle violates, a bounded number of sentences."""
    if not files:
        yield "the bundle has no files"
    if len(files) > MAX_FILES:
        yield f"the bundle has {len(files):,} files, the maximum is {MAX_FILES:,}"
        return
    size = sum(max(0, each.size) for each in files)
    if size > MAX_BUNDLE_BYTES:
        yield f"the bundle has {size:,} bytes, the maximum is {MAX_BUNDLE_BYTES:,}"
    errors = list(_file_errors(files))
    yield from errors[:MAX_REPORTED]
    if len(errors) > MAX_REPORTED:
        yield f"{len(errors) - MAX_REPORTED} more files are not allowed"


def _file_errors(files: Sequence[BundleFile]) -> Iterator[str]:
    paths: set[str] = set()
    folders = {folder for each in files for folder in _folders_of(each.path)}
    for file in files:
        shown = repr(file.path[:MAX_PATH_CHARS])
        if error := path_error(file.path):
            yield f"{shown}: {error}"
        elif file.path in paths:
            yield f"{shown} occurs twice"
        elif file.path in folders:
            yield f"{shown} is a file and a folder"
        paths.add(file.path)
        if not is_digest(file.digest):
            yield f"{shown}: the digest must have 64 hexadecimal digits"
        if not 0 <= file.size <= MAX_FILE_BYTES:
            yield f"{shown} has {file.size:,} bytes, the maximum is {MAX_FILE_BYTES:,}"


def path_error(path: str) -> str:
    """The rule that a path violates; empty for a valid one."""
    if len(path) > MAX_PATH_CHARS:
        return f"a path has at most {MAX_PATH_CHARS} characters"
    steps = path.split("/")
    if len(steps) > MAX_FOLDERS_DEEP:
        return f"a file is at most {MAX_FOLDERS_DEEP} levels deep"
    if path.startswith("/"):
        return "a path must be relative"
    if any(step in {".", ".."} for step in steps):
        return "a path must not contain . or .. as a step"
    if not all(_NAME.fullmatch(step) for step in steps):
        return "names consist of letters, digits and . _ @ + -"
    return ""


def _folders_of(path: str) -> Iterator[str]:
    steps = path.split("/")[:MAX_FOLDERS_DEEP]
    return ("/".join(steps[:count]) for count in range(1, len(steps)))
