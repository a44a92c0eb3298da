"""Reads the files of an image archive (tar, gzipped tar or folder) without extracting it."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

from pincompute.base.problem import Problem, Refused, Where
from pincompute.base.reasons import DISK_FULL, IMAGE_INVALID

GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20

# First bytes of files that are mistaken for images.
_MAGIC = {
    b"PK\x03\x04": "a zip archive",
    b"\x7fELF": "a program",
    b"\xfd7zXZ": "an xz file; decompress it first",
    b"BZh": "a bzip2 file; decompress it first",
    b"\x28\xb5\x2f\xfd": "a zstd file; decompress it first",
}


class Archive(Protocol):
    """Files of an image archive by their path in it."""

    source: Path

    def names(self) -> list[str]: ...

    def open(self, name: str) -> IO[bytes]:
        """Raises KeyError if there is no such file."""
        ...


@contextmanager
def open_archive(source: Path) -> Iterator[Archive]:
    if not os.access(source, os.R_OK):
        what = "no permission to read this file" if source.exists() else "no such file or folder"
        raise Refused(Problem(IMAGE_INVALID, what, Where(file=str(source))))
    if source.is_dir():
        yield _Folder(source)
    else:
        with _decompressed(source) as file, _tar(source, file) as tar:
            yield _Tar(source, tar)


def invalid_image(source: Path, what: str, note: str = "") -> Refused:
    next_ = "use a file from `docker save` or `buildah push IMAGE oci-archive:FILE`"
    return Refused(Problem(IMAGE_INVALID, what, Where(file=str(source)), note=note, next=next_))


def read_chunks(content: IO[bytes]) -> Iterator[bytes]:
    while chunk := content.read(_CHUNK):
        yield chunk


class _Folder:
    def __init__(self, source: Path) -> None:
        self.source = source

    def names(self) -> list[str]:
        return sorted(file.name for file in self.source.iterdir())

    def open(self, name: str) -> IO[bytes]:
        file = (self.source / name).resolve()
        # Path traversal: a crafted folder must not upload files from outside it.
        if not file.is_relative_to(self.source.resolve()) or not file.is_file():
            raise KeyError(name)
        return file.open("rb")


class _Tar:
    def __init__(self, source: Path, tar: tarfile.TarFile) -> None:
        self.source = source
        self._tar = tar
        self._members = {member.name.removeprefix("./"): member for member in tar.getmembers()}

    def names(self) -> list[str]:
        return sorted({name.partition("/")[0] for name in self._members if name != "."})

    def open(self, name: str) -> IO[bytes]:
        content = self._tar.extractfile(self._members[name])
        if content is None:
            raise KeyError(name)
        return content


@contextmanager
def _decompressed(source: Path) -> Iterator[IO[bytes]]:
    """The file itself, or its decompressed content if it is gzipped, because random access in gzip is slow."""
    with source.open("rb") as file:
        gzipped = file.read(2) == GZIP_MAGIC
        file.seek(0)
        if not gzipped:
            yield file
            return
        with tempfile.TemporaryFile() as decompressed:
            try:
                shutil.copyfileobj(gzip.GzipFile(fileobj=file), decompressed, _CHUNK)
                decompressed.seek(0)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise invalid_image(source, "the file is damaged or truncated", str(error)) from error
            except OSError as error:
                what = f"no space to decompress it in {tempfile.gettempdir()}: {error.strerror}"
                raise Refused(Problem(DISK_FULL, what, Where(file=str(source)))) from error
            yield decompressed


@contextmanager
def _tar(source: Path, file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    try:
        # Reading all headers detects a truncated archive.
        tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115
        tar.getmembers()
    except tarfile.ReadError as error:
        if "unexpected end" in str(error):
            raise invalid_image(source, "the archive is truncated") from error
        raise invalid_image(source, f"not an image: it looks like {_guess_format(file)}") from error
    with tar:
        yield tar


def _guess_format(file: IO[bytes]) -> str:
    file.seek(0)
    head = file.read(512)
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            return what
    if not head:
        return "an empty file"
    return "a text file" if b"\0" not in head and head.isascii() else "an unknown binary file"
