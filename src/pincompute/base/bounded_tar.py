"""Reads archives of others as a stream, in bounded memory. It uses the standard library only."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import IO, Any, cast

CHUNK_BYTES = 1 << 16
MAX_HEADER_BYTES = 1 << 20
"""Extended headers hold long names. `tarfile` reads each into memory, of any size that it claims."""
MAX_DEPTH = 256
_HEADERS = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}


class BoundedTarInfo(tarfile.TarInfo):
    """Refuses extended headers that are too large."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _HEADERS and self.size > MAX_HEADER_BYTES:
            raise tarfile.ReadError(
                f"an extended header has {self.size:,} bytes, at most {MAX_HEADER_BYTES:,} are read"
            )
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return member


def read_members(stream: IO[bytes]) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The members as they arrive. Those that were read are forgotten, as there may be millions."""
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=BoundedTarInfo, ignore_zeros=False) as archive:
        while (member := archive.next()) is not None:
            yield archive, member
            cast("Any", archive).members.clear()


def safe_parts(name: str) -> list[str]:
    """The steps of a member's name. Raises ValueError for one that could lead out of the folder."""
    parts = [part for part in name.split("/") if part not in {"", "."}]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError(f"the archive has a name that leads out of its folder: {name[:200]!r}")
    if len(parts) > MAX_DEPTH:
        raise ValueError(f"the archive has a folder of more than {MAX_DEPTH} levels")
    return parts


class PaddedFile:
    """A file of a fixed size: one that shrinks while it is read is filled with zeros, as its header is sent already."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.shrank = False

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            self.shrank = True
            data += bytes(size - len(data))
        return data
