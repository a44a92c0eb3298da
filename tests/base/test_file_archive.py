"""Archives of folders, and folders of hostile archives."""

from __future__ import annotations

import io
import os
import tarfile
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from pincompute.base.bounded_tar import MAX_HEADER_BYTES, safe_parts
from pincompute.base.file_archive import ArchiveRefused, receive, send


def packed(path: Path) -> tuple[bytes, list[str]]:
    target, notes = io.BytesIO(), list[str]()
    send(os.open, str(path), target, notes.append)
    return target.getvalue(), notes


def unpacked(archive: bytes, path: Path | str, *, only_inner_links: bool = False) -> list[str]:
    notes: list[str] = []
    receive(os.open, str(path), io.BytesIO(archive), notes.append, only_inner_links=only_inner_links)
    return notes


def archive_of(*members: tuple[str, bytes, bytes | str]) -> bytes:
    """Members by name, type, and content or link target."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, type_, content in members:
            member = tarfile.TarInfo(name)
            member.type = type_
            if isinstance(content, str):
                member.linkname = content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return target.getvalue()


def test_copies_a_folder_with_its_links_and_modes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep/er").mkdir(parents=True)
    (source / "deep/er/program").write_bytes(b"\0" * 100_000)
    (source / "deep/er/program").chmod(0o755)
    (source / "link").symlink_to("deep/er/program")
    archive, notes = packed(source)
    (tmp_path / "target").mkdir()
    assert unpacked(archive, tmp_path / "target", only_inner_links=True) == notes == []
    copy = tmp_path / "target/source"
    assert (copy / "link").readlink() == Path("deep/er/program")
    assert (copy / "link").read_bytes() == b"\0" * 100_000
    assert (copy / "deep/er/program").stat().st_mode & 0o777 == 0o755


def test_copies_under_a_new_name_or_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("new")
    archive, _ = packed(tmp_path / "file")
    unpacked(archive, tmp_path / "renamed")
    assert (tmp_path / "renamed").read_text() == "new"
    (tmp_path / "folder").mkdir()
    unpacked(archive, tmp_path / "folder")
    assert (tmp_path / "folder/file").read_text() == "new"
    with pytest.raises(ArchiveRefused, match="is no folder"):
        unpacked(archive, f"{tmp_path}/absent/")
    with pytest.raises(FileNotFoundError):
        unpacked(archive, tmp_path / "absent/file")


def test_copies_hard_links_as_files_and_leaves_out_pipes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("one")
    (source / "b").hardlink_to(source / "a")
    os.mkfifo(source / "pipe")
    archive, notes = packed(source)
    assert notes == ["source/pipe: left out, as it is no file, folder or link"]
    unpacked(archive, tmp_path / "copy")
    assert [each.read_text() for each in sorted((tmp_path / "copy").iterdir())] == ["one", "one"]


def test_refuses_to_send_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArchiveRefused, match="neither a file nor a folder"):
        packed(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "a/..", "..", "a\0b"])
def test_refuses_names_that_climb(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="leads out of its folder"):
        safe_parts(name)
    if "\0" not in name:
        with pytest.raises(ValueError, match="leads out of its folder"):
            unpacked(archive_of((name, tarfile.REGTYPE, b"evil")), tmp_path)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    "type_", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.LNKTYPE], ids=["fifo", "chr", "blk", "hard"]
)
def test_refuses_devices_pipes_and_hard_links(tmp_path: Path, type_: bytes) -> None:
    with pytest.raises(ArchiveRefused, match="only files, folders and symbolic links"):
        unpacked(archive_of(("entry", type_, "/etc/passwd")), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_writes_through_no_link(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    archive = archive_of(("link", tarfile.SYMTYPE, str(outside)), ("link/evil", tarfile.REGTYPE, b"evil"))
    with pytest.raises((ArchiveRefused, OSError)):
        unpacked(archive, target)
    (target / "file").symlink_to(outside / "victim")
    with pytest.raises(OSError, match="symbolic link"):
        unpacked(archive_of(("file", tarfile.REGTYPE, b"evil")), target)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "link", "placed"),
    [
        ("top/a", "b", True), ("top/a", "../b", False), ("top/in/a", "../b", True), ("top/in/a", "../../b", False),
        ("top/a", "/etc/passwd", False), ("top/in/a", "b/../../..", False), ("a", "..", False), ("a", "b", True),
    ],
)  # fmt: skip
def test_places_only_links_that_stay_inside(tmp_path: Path, name: str, link: str, placed: bool) -> None:
    notes = unpacked(archive_of((name, tarfile.SYMTYPE, link)), tmp_path, only_inner_links=True)
    assert (tmp_path / name).is_symlink() is placed
    assert bool(notes) is not placed


def test_reads_no_huge_header_into_memory(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@PaxHeader")
    header.type, header.size = tarfile.XHDTYPE, MAX_HEADER_BYTES + 1
    with pytest.raises(tarfile.ReadError, match="an extended header has"):
        unpacked(header.tobuf() + bytes(4096), tmp_path)


def test_refuses_an_archive_that_is_cut_off(tmp_path: Path) -> None:
    archive = archive_of(("file", tarfile.REGTYPE, b"x" * 5_000))
    with pytest.raises(tarfile.ReadError):
        unpacked(archive[:2_000], tmp_path)
    with pytest.raises(ArchiveRefused, match="empty"):
        unpacked(archive_of(), tmp_path)


def test_fills_a_file_that_shrinks_with_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("short")
    status = os.fstat

    def taller(descriptor: int) -> os.stat_result:
        found = list(status(descriptor))
        found[6] += 10
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", taller)
    archive, notes = packed(tmp_path / "file")
    monkeypatch.undo()
    assert "became shorter" in notes[0]
    unpacked(archive, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"short" + bytes(10)


@given(st.binary(max_size=3_000))
def test_survives_any_bytes(data: bytes) -> None:
    caught = suppress(ArchiveRefused, OSError, ValueError, EOFError, tarfile.TarError)
    with TemporaryDirectory() as folder, caught:
        receive(os.open, folder, io.BytesIO(data), lambda _: None)
