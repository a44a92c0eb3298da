"""Sends folders as archives, and receives archives into folders. It uses the standard library only.

Both walk by descriptors, one step at a time and never through a link: what lies beside the folder is not reached, also
if others change the folder meanwhile. The command line and the agent of a node use it, each with its own way to open
the first folder.
"""

from __future__ import annotations

import os
import posixpath
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from pincompute.base.bounded_tar import CHUNK_BYTES, MAX_DEPTH, PaddedFile, read_members, safe_parts

OpenPath = Callable[[str, int], int]
"""Opens a path as the user typed it, with flags of `os.open`."""
Note = Callable[[str], None]
"""Reports what is left out."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NOT_SENT = "left out, as it is no file, folder or link"


class ArchiveRefused(Exception):  # noqa: N818  (named by what happened)
    """The reason why files cannot be copied, for the user."""


def send(open_path: OpenPath, path: str, target: IO[bytes], note: Note, name: str = "") -> None:
    """Writes an archive of a file or folder, whose members begin with its own name, or the given one."""
    top = open_path(path, _READ)
    name = name or posixpath.basename(posixpath.normpath(path).strip("/")) or "root"
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        status = os.fstat(top)
        if stat.S_ISDIR(status.st_mode):
            archive.addfile(_header(name, status))
            _Sender(archive, note).send_folder(top, name, 1)
        elif stat.S_ISREG(status.st_mode):
            _Sender(archive, note).send_file(top, name)
        else:
            raise ArchiveRefused(f"{path} is neither a file nor a folder")


class _Sender:
    def __init__(self, archive: tarfile.TarFile, note: Note) -> None:
        self._archive = archive
        self._note = note

    def send_folder(self, folder: int, name: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ArchiveRefused(f"{name[:200]}…: more than {MAX_DEPTH} levels of folders")
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._send_entry(folder, entry, f"{name}/{entry.name}", depth)
        finally:
            os.close(folder)

    def _send_entry(self, folder: int, entry: os.DirEntry[str], name: str, depth: int) -> None:
        """Sends one entry. What vanishes meanwhile, or may not be read, is left out with a note."""
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                inner = os.open(entry.name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
                self._archive.addfile(_header(name, status))
                self.send_folder(inner, name, depth + 1)
            elif stat.S_ISREG(status.st_mode):
                self.send_file(os.open(entry.name, _READ | os.O_NOFOLLOW, dir_fd=folder), name)
            elif stat.S_ISLNK(status.st_mode):
                header = _header(name, status)
                header.linkname = os.readlink(entry.name, dir_fd=folder)
                self._archive.addfile(header)
            else:
                self._note(f"{name}: {_NOT_SENT}")
        except (FileNotFoundError, PermissionError) as error:
            self._note(f"{name}: left out: {error.strerror}")

    def send_file(self, descriptor: int, name: str) -> None:
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                self._note(f"{name}: {_NOT_SENT}")
                return
            padded = PaddedFile(file)
            self._archive.addfile(_header(name, status), padded)  # type: ignore[arg-type]
            if padded.shrank:
                self._note(f"{name}: became shorter while it was read; the rest is filled with zeros")


def _header(name: str, status: os.stat_result) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.mode, header.mtime = stat.S_IMODE(status.st_mode) & 0o777, int(status.st_mtime)
    if stat.S_ISDIR(status.st_mode):
        header.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(status.st_mode):
        header.type = tarfile.SYMTYPE
    else:
        header.size = status.st_size
    return header


def receive(open_path: OpenPath, path: str, source: IO[bytes], note: Note, *, only_inner_links: bool = False) -> int:
    """Reads an archive into a folder that exists, or under the new name `path`. Returns the number of its entries.

    With `only_inner_links`, links that lead out of the folder are left out: the files of others must not place them.
    """
    target = Target.opened(open_path, path)
    count = 0
    try:
        for archive, member in read_members(source):
            parts = target.renamed(safe_parts(member.name))
            if not parts:
                continue
            count += 1
            if only_inner_links and member.issym() and not _leads_inside(parts, member.linkname):
                note(f"{'/'.join(parts)[:200]}: left out, as the link leads out of the folder")
                continue
            _receive_member(archive, member, target.folder, parts)
    finally:
        os.close(target.folder)
    if not count:
        raise ArchiveRefused("the archive is empty")
    return count


def _leads_inside(parts: list[str], link: str) -> bool:
    """Whether a link stays below the first step of its own path.

    Steps up must come first. After another link they would lead elsewhere than they seem to.
    """
    steps = [step for step in link.split("/") if step not in {"", "."}]
    down = [step for step in steps if step != ".."]
    ups = len(steps) - len(down)
    return not link.startswith("/") and steps[ups:] == down and ups <= max(0, len(parts) - 2)


class Target:
    """Where an archive goes: into a folder, or to a new name in it."""

    def __init__(self, folder: int, name: str) -> None:
        self.folder = folder
        self._name = name
        """Replaces the first step of members; empty for none."""

    @classmethod
    def opened(cls, open_path: OpenPath, path: str) -> Target:
        try:
            return cls(open_path(path, _FOLDER), "")
        except (FileNotFoundError, NotADirectoryError):
            pass
        if path.endswith("/"):
            raise ArchiveRefused(f"{path} is no folder")
        parent, slash, name = path.rpartition("/")
        if name in {"", ".", ".."}:
            raise ArchiveRefused(f"{path} is no name of a file")
        return cls(open_path(parent or slash or ".", _FOLDER), name)

    def renamed(self, parts: list[str]) -> list[str]:
        return [self._name, *parts[1:]] if self._name and parts else parts


def _receive_member(archive: tarfile.TarFile, member: tarfile.TarInfo, top: int, parts: list[str]) -> None:
    mode = member.mode & 0o777
    with _parent_of(top, parts) as folder:
        name = parts[-1]
        if member.isdir():
            _make_folder(folder, name, mode | 0o700)
        elif member.issym():
            _replace_link(folder, name, member.linkname)
        elif member.isreg():
            content = archive.extractfile(member)
            assert content is not None
            _write_file(folder, name, mode, content)
        else:
            raise ArchiveRefused(f"{'/'.join(parts)[:200]}: only files, folders and symbolic links are copied")


@contextmanager
def _parent_of(top: int, parts: list[str]) -> Iterator[int]:
    """The folder of a member, step by step. A link in its place is refused, as it could lead anywhere."""
    folder = os.dup(top)
    try:
        for step in parts[:-1]:
            _make_folder(folder, step, 0o755)
            inner = os.open(step, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _make_folder(folder: int, name: str, mode: int) -> None:
    try:
        os.mkdir(name, mode, dir_fd=folder)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise ArchiveRefused(f"{name} exists and is no folder") from None


def _replace_link(folder: int, name: str, target: str) -> None:
    try:
        os.symlink(target, name, dir_fd=folder)
    except FileExistsError:
        if not stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise ArchiveRefused(f"{name} exists and is no link") from None
        os.unlink(name, dir_fd=folder)
        os.symlink(target, name, dir_fd=folder)


def _write_file(folder: int, name: str, mode: int, content: IO[bytes]) -> None:
    descriptor = os.open(name, _WRITE, mode, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ArchiveRefused(f"{name} exists and is no file")
        while chunk := content.read(CHUNK_BYTES):
            file.write(chunk)
