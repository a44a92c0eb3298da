"""Reading a damaged image archive ends with its contents or a Problem, never with a traceback."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from image_files import docker_save_files, oci_layout_files, tar, write_files
from pincompute.base.problem import Refused
from pincompute.engine.images.archive import open_archive
from pincompute.engine.images.contents import read_images

ARCHIVES = {
    "saved": tar(docker_save_files("a", "b")),
    "laid out": tar(oci_layout_files("a", platforms=("linux/amd64",))),
    "packed": gzip.compress(tar(docker_save_files("a"))),
}

# Offset, number of bytes removed, and bytes inserted.
Damage = tuple[int, int, bytes]
damages: st.SearchStrategy[list[Damage]] = st.lists(
    st.tuples(st.integers(0, 12_000), st.integers(0, 600), st.binary(max_size=8)), min_size=1, max_size=5
)


@given(damages)
@pytest.mark.parametrize("kind", ARCHIVES)
def test_damaged_archive_raises_problem_only(
    tmp_path_factory: pytest.TempPathFactory, kind: str, damages: list[Damage]
):
    content = ARCHIVES[kind]
    for offset, length, replacement in damages:
        content = content[:offset] + replacement + content[offset + length :]
    file = tmp_path_factory.getbasetemp() / f"damaged {kind}"
    file.write_bytes(content)
    with suppress(Refused), open_archive(file) as archive:
        read_images(archive)


def test_rejects_documents_that_are_not_utf8(tmp_path: Path):
    folder = write_files(tmp_path, {**docker_save_files("a"), "manifest.json": b'[{"Config": "\xff"}]'})
    with open_archive(folder) as archive, pytest.raises(Refused, match=r"manifest\.json is not valid"):
        read_images(archive)
