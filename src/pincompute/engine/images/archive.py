"""The files of an image that was built elsewhere: a tar archive, packed or not, or a folder; read without unpacking."""

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

GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20

# The first bytes of what people mistake for an image.
_MAGIC = {
    b"PK\x03\x04": "a zip archive",
    b"\x7fELF": "a program",
    b"\xfd7zXZ": "packed by xz; unpack it first",
    b"BZh": "packed by bzip2; unpack it first",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first",
}


class Archive(Protocol):
    """Files by their path within."""

    source: Path

    def names(self) -> list[str]: ...

    def open(self, name: str) -> IO[bytes]:
        """KeyError where there is none of that name."""
        ...


@contextmanager
def opened(source: Path) -> Iterator[Archive]:
    if not os.access(source, os.R_OK):
        what = "this file may not be read" if source.exists() else "there is no such file or folder"
        raise Refused(Problem(IMAGE_INVALID, what, Where(file=str(source))))
    if source.is_dir():
        yield _Folder(source)
    else:
        with _unpacked(source) as file, _tar(source, file) as tar:
            yield _Tar(source, tar)


def invalid(source: Path, what: str, note: str = "") -> Refused:
    following = "bring in what `docker save` or `buildah push IMAGE oci-archive:FILE` writes"
    return Refused(Problem(IMAGE_INVALID, what, Where(file=str(source)), note=note, next=following))


def chunks(content: IO[bytes]) -> Iterator[bytes]:
    while chunk := content.read(_CHUNK):
        yield chunk


class _Folder:
    def __init__(self, source: Path) -> None:
        self.source = source

    def names(self) -> list[str]:
        return sorted(file.name for file in self.source.iterdir())

    def open(self, name: str) -> IO[bytes]:
        file = (self.source / name).resolve()
        # What an image names must lie within it: nobody's own files are sent off by a crafted folder.
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
def _unpacked(source: Path) -> Iterator[IO[bytes]]:
    """The file itself, or its content where it is gzip: reading here and there in a packed file would be slow."""
    with source.open("rb") as file:
        packed = file.read(2) == GZIP
        file.seek(0)
        if not packed:
            yield file
            return
        with tempfile.TemporaryFile() as plain:
            try:
                shutil.copyfileobj(gzip.GzipFile(fileobj=file), plain, _CHUNK)
                plain.seek(0)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise invalid(source, "the file is damaged or was cut off", str(error)) from error
            except OSError as error:
                what = f"no room to unpack it in {tempfile.gettempdir()}: {error.strerror}"
                raise Refused(Problem(DISK_FULL, what, Where(file=str(source)))) from error
            yield plain


@contextmanager
def _tar(source: Path, file: IO[bytes]) -> Iterator[tarfile.TarFile]:
    try:
        # Reading all headers finds out here whether the end is missing.
        tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115
        tar.getmembers()
    except tarfile.ReadError as error:
        if "unexpected end" in str(error):
            raise invalid(source, "the archive was cut off before its end") from error
        raise invalid(source, f"not an image: it looks like {_looks(file)}") from error
    with tar:
        yield tar


def _looks(file: IO[bytes]) -> str:
    file.seek(0)
    head = file.read(512)
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            return what
    if not head:
        return "an empty file"
    return "a text file" if b"\0" not in head and head.isascii() else "some other binary file"
