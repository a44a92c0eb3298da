"""What is put into a store comes back as it was, and never becomes something else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from artifactory import TOKEN, Artifactory, artifactory
from pincompute.base.problem import Refused
from pincompute.kube.artifacts import Store, open_store

PATH = "builds/ads/shop/1.0+a b/workload.yaml"


@pytest.fixture
async def server() -> AsyncIterator[Artifactory]:
    async with artifactory() as started:
        yield started


@pytest.fixture(params=["folder", "artifactory"])
async def store(request: pytest.FixtureRequest, server: Artifactory, tmp_path: Path) -> AsyncIterator[Store]:
    where = str(tmp_path / "store") if request.param == "folder" else server.where
    async with open_store(where, lambda: TOKEN) as opened:
        yield opened


async def test_what_is_put_comes_back(store: Store) -> None:
    assert await store.get(PATH) is None
    assert await store.names("builds/ads/shop") == []
    await store.put(PATH, b"spec: {}", {"version": "1.0+a b"})
    await store.put("builds/ads/shop/2.0/workload.yaml", b"", {})
    assert await store.get(PATH) == b"spec: {}"
    assert await store.names("builds/ads/shop") == ["1.0+a b", "2.0"]


async def test_the_same_again_is_as_good_as_once_and_something_else_is_refused(store: Store) -> None:
    await store.put(PATH, b"one", {})
    await store.put(PATH, b"one", {})
    with pytest.raises(Refused, match="what is published never changes"):
        await store.put(PATH, b"two", {})
    assert await store.get(PATH) == b"one"


async def test_what_is_said_of_it_is_kept_beside_it(server: Artifactory) -> None:
    async with open_store(server.where, lambda: TOKEN) as store:
        await store.put("a", b"one", {"commit": "abc", "branch": "feature/a;b=c"})
    assert server.properties["a"] == {"commit": "abc", "branch": "feature/a;b=c"}


async def test_what_comes_back_otherwise_is_refused(server: Artifactory, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_store(server.where, lambda: TOKEN) as store:
        await store.put("a", b"one", {})
        monkeypatch.setattr("artifactory._checksums", Mock(return_value={"sha1": "", "sha256": "0" * 64}))
        with pytest.raises(Refused, match="is not what its checksum says"):
            await store.get("a")
        with pytest.raises(Refused, match="is not what was sent"):
            await store.put("b", b"one", {})


async def test_a_store_that_fails_is_told_in_its_own_words(server: Artifactory) -> None:
    async with open_store(server.where, lambda: "wrong") as store:
        with pytest.raises(Refused) as refused:
            await store.get("a")
    assert refused.value.text() == (
        f"the artifact store {server.where}: it answered 401 to GET  [StoreFailed]\n"
        '  {"errors": [{"status": 401, "message": "Bad credentials"}]}'
    )
    async with open_store("http://127.0.0.1:1/artifactory/none") as store:
        with pytest.raises(Refused, match="it does not answer as a store does"):
            await store.get("a")


async def test_what_opens_it_may_be_renewed(server: Artifactory) -> None:
    tokens = iter(("wrong", TOKEN, "two\nlines"))
    async with open_store(server.where, lambda: next(tokens)) as store:
        with pytest.raises(Refused, match="answered 401"):
            await store.get("a")
        assert await store.get("a") is None
        with pytest.raises(Refused, match="its token has characters that no token has"):
            await store.get("a")


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "builds").write_text("in the way")
    async with open_store(str(tmp_path)) as store:
        assert await store.get(PATH) is None
        with pytest.raises(Refused, match="the artifact store"):
            await store.put(PATH, b"", {})
