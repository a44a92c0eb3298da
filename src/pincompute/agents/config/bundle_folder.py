"""Bundles in the folder of a pod. Each is complete under its digest before a symbolic link with its name leads to it.

A program that opens `NAME/FILE` thus reads one version or the other, and never half of one. It uses only the standard
library.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pincompute.objects.config_bundle import BundleFile, bundle_digest, content_digest

ReadContent = Callable[[str], bytes]
"""Returns the content with a digest."""
_HIDDEN = ".bundles"
_FILE_MODE, _FOLDER_MODE = 0o444, 0o755
"""Applications run under any user number, and mount the folder read-only."""


class BundleAltered(Exception):  # noqa: N818  (named by what happened)
    """The source sent other bytes than the digest says."""


class BundleFolder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bundles = folder / _HIDDEN

    def installed_digest(self, name: str) -> str:
        """The digest of the bundle to which the name leads; empty for none."""
        try:
            return (self._folder / name).readlink().name
        except OSError:
            return ""

    def is_intact(self, digest: str, files: Sequence[BundleFile]) -> bool:
        """Whether the files of a bundle are there, as after a restart of the container."""
        return all(self._has(digest, each) for each in files)

    def install(self, name: str, digest: str, files: Sequence[BundleFile], read: ReadContent) -> None:
        """Write a bundle, check every file, and lead the name to it."""
        if bundle_digest(files) != digest:
            raise BundleAltered(f"its files have the digest {bundle_digest(files)}, and not {digest}")
        if not self.is_intact(digest, files):
            self._write(digest, files, read, self._bundles / self.installed_digest(name))
        previous = self.installed_digest(name)
        self._lead(name, digest)
        self._remove_others({digest, previous})

    def _write(self, digest: str, files: Sequence[BundleFile], read: ReadContent, former: Path) -> None:
        fresh = self._bundles / f".{digest}"
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            for file in files:
                path = fresh / file.path
                _make_folders(path.parent, fresh)
                if not _link(former / file.path, file, path):
                    _write_file(path, _verified(file, read(file.digest)))
            # A damaged bundle of this digest may be there.
            shutil.rmtree(self._bundles / digest, ignore_errors=True)
            fresh.rename(self._bundles / digest)
        except BaseException:
            # On a full disk, the half of a bundle would keep it full.
            shutil.rmtree(fresh, ignore_errors=True)
            raise

    def _lead(self, name: str, digest: str) -> None:
        fresh = self._folder / f".{name}.new"
        with suppress(FileNotFoundError):
            fresh.unlink()
        fresh.symlink_to(Path(_HIDDEN) / digest)
        fresh.replace(self._folder / name)

    def _remove_others(self, kept: set[str]) -> None:
        """Remove bundles to which no name leads, except the previous one, of which files may be open."""
        led = {each.readlink().name for each in self._folder.iterdir() if each.is_symlink()}
        for each in self._bundles.iterdir():
            if each.name not in led | kept:
                shutil.rmtree(each, ignore_errors=True)

    def _has(self, digest: str, file: BundleFile) -> bool:
        try:
            return content_digest((self._bundles / digest / file.path).read_bytes()) == file.digest
        except OSError:
            return False


def _verified(file: BundleFile, content: bytes) -> bytes:
    if len(content) != file.size or content_digest(content) != file.digest:
        raise BundleAltered(f"{file.path} is not as its digest says")
    return content


def _make_folders(folder: Path, root: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Created under the umask of the process; no path of a bundle leads out of the root.
    for each in (folder, *folder.parents):
        each.chmod(_FOLDER_MODE)
        if each == root:
            return


def _link(former: Path, file: BundleFile, path: Path) -> bool:
    """Take over a file that the former version has."""
    try:
        if content_digest(former.read_bytes()) != file.digest:
            return False
        os.link(former, path)
    except OSError:
        return False
    return True


def _write_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(_FILE_MODE)
