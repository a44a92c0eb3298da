"""Files of one project in the config store: contents by digest, manifests by digest, and one record for each bundle.

A record is written last, and replaces the former one in a single step: a process that is killed at any moment leaves at
most contents without a bundle, which are removed later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from pincompute.api.config_bundle import ConfigBundle
from pincompute.base.secure_files import make_private_folder, write_private_file
from pincompute.objects.config_bundle import BundleFile, manifest_of, parse_manifest

_record = msgspec.json.Decoder(ConfigBundle)


class ProjectFolder:
    """The folder of a project. It also counts what the project uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._contents, self._manifests = folder / "contents", folder / "manifests"
        self._bundles = folder / "bundles"
        sizes = [each.stat().st_size for each in (*self._files_in(self._contents), *self._files_in(self._manifests))]
        self.used_bytes = sum(sizes)
        self.file_count = len(sizes)

    @property
    def namespace_uid(self) -> str:
        """Uid of the namespace for which it was made: a later project of the same name gets nothing of it."""
        with suppress(FileNotFoundError):
            return (self.folder / "namespace").read_text()
        return ""

    def bind(self, uid: str) -> None:
        write_private_file(self.folder / "namespace", uid.encode())

    def read_bundles(self) -> dict[str, ConfigBundle]:
        found = {}
        for file in self._files_in(self._bundles):
            bundle = _record.decode(file.read_bytes())
            found[bundle.name] = bundle
        return found

    def write_bundle(self, bundle: ConfigBundle) -> None:
        _write_durably(self._bundles / f"{bundle.name}.json", msgspec.json.encode(bundle))

    def remove_bundle(self, name: str) -> None:
        (self._bundles / f"{name}.json").unlink(missing_ok=True)

    def content_path(self, digest: str) -> Path:
        return self._contents / digest

    def has_content(self, digest: str) -> bool:
        """Whether the content is there; it then counts as just uploaded."""
        try:
            os.utime(self.content_path(digest))
        except FileNotFoundError:
            return False
        return True

    def write_content(self, digest: str, content: bytes) -> None:
        self._write_counted(self.content_path(digest), content)

    def write_manifest(self, digest: str, files: list[BundleFile]) -> None:
        path = self._manifests / digest
        if not path.exists():
            self._write_counted(path, manifest_of(files))

    def read_manifest(self, digest: str) -> list[BundleFile]:
        return parse_manifest((self._manifests / digest).read_bytes())

    def remove_unused(self, manifests: set[str], before: float) -> None:
        """Removes manifests that no bundle has, and contents of no manifest that are older than the time."""
        for file in self._files_in(self._manifests):
            if file.name not in manifests:
                self._remove_file(file)
        used = {each.digest for digest in manifests for each in self.read_manifest(digest)}
        for file in self._files_in(self._contents):
            if file.name not in used and file.stat().st_mtime < before:
                self._remove_file(file)

    def _write_counted(self, path: Path, content: bytes) -> None:
        _write_durably(path, content)
        self.used_bytes += len(content)
        self.file_count += 1

    def _remove_file(self, file: Path) -> None:
        size = file.stat().st_size
        file.unlink()
        self.used_bytes -= size
        self.file_count -= 1

    @staticmethod
    def _files_in(folder: Path) -> Iterator[Path]:
        if folder.is_dir():
            # Files that begin with a dot are of an interrupted write.
            yield from (each for each in sorted(folder.iterdir()) if not each.name.startswith("."))


def _write_durably(path: Path, content: bytes) -> None:
    make_private_folder(path.parent)
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        # On a full disk, the half of a file would keep it full.
        fresh.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
