"""Whatever happened to an image's file on its way, reading it ends in its contents or in words."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from image_files import laid_out, saved, tar, write
from pincompute.base.problem import Refused
from pincompute.engine.images.archive import opened
from pincompute.engine.images.contents import contents

ARCHIVES = {
    "saved": tar(saved("a", "b")),
    "laid out": tar(laid_out("a", platforms=("linux/amd64",))),
    "packed": gzip.compress(tar(saved("a"))),
}

# Where, how much goes, and what comes in its place.
Damage = tuple[int, int, bytes]
damages: st.SearchStrategy[list[Damage]] = st.lists(
    st.tuples(st.integers(0, 12_000), st.integers(0, 600), st.binary(max_size=8)), min_size=1, max_size=5
)


@given(damages)
@pytest.mark.parametrize("kind", ARCHIVES)
def test_damage_is_told_and_never_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, kind: str, damages: list[Damage]
):
    content = ARCHIVES[kind]
    for place, length, instead in damages:
        content = content[:place] + instead + content[place + length :]
    file = tmp_path_factory.getbasetemp() / f"damaged {kind}"
    file.write_bytes(content)
    with suppress(Refused), opened(file) as archive:
        contents(archive)


def test_documents_that_are_not_utf8_are_told(tmp_path: Path):
    folder = write(tmp_path, {**saved("a"), "manifest.json": b'[{"Config": "\xff"}]'})
    with opened(folder) as archive, pytest.raises(Refused, match=r"manifest\.json is not what it should be"):
        contents(archive)
