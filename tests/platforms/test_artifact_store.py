"""Artifact stores, a folder and Artifactory: content comes back unchanged and is never replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from fake_artifactory import TOKEN, Artifactory, fake_artifactory
from pincompute.base.problem import Refused
from pincompute.platforms.artifact_store import ArtifactStore, open_artifact_store

PATH = "builds/ads/shop/1.0+a b/workload.yaml"


@pytest.fixture
async def server() -> AsyncIterator[Artifactory]:
    async with fake_artifactory() as started:
        yield started


@pytest.fixture(params=["folder", "artifactory"])
async def store(request: pytest.FixtureRequest, server: Artifactory, tmp_path: Path) -> AsyncIterator[ArtifactStore]:
    location = str(tmp_path / "store") if request.param == "folder" else server.address
    async with open_artifact_store(location, lambda: TOKEN) as opened:
        yield opened


async def test_put_get_and_list(store: ArtifactStore) -> None:
    assert await store.get(PATH) is None
    assert await store.list_names("builds/ads/shop") == []
    await store.put(PATH, b"spec: {}", {"version": "1.0+a b"})
    await store.put("builds/ads/shop/2.0/workload.yaml", b"", {})
    assert await store.get(PATH) == b"spec: {}"
    assert await store.list_names("builds/ads/shop") == ["1.0+a b", "2.0"]


async def test_put_is_idempotent_and_refuses_other_content(store: ArtifactStore) -> None:
    await store.put(PATH, b"one", {})
    await store.put(PATH, b"one", {})
    with pytest.raises(Refused, match="published files never change"):
        await store.put(PATH, b"two", {})
    assert await store.get(PATH) == b"one"


async def test_stores_properties_in_artifactory(server: Artifactory) -> None:
    async with open_artifact_store(server.address, lambda: TOKEN) as store:
        await store.put("a", b"one", {"commit": "abc", "branch": "feature/a;b=c"})
    assert server.properties["a"] == {"commit": "abc", "branch": "feature/a;b=c"}


async def test_rejects_checksum_mismatch(server: Artifactory, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_artifact_store(server.address, lambda: TOKEN) as store:
        await store.put("a", b"one", {})
        monkeypatch.setattr("fake_artifactory._checksums", Mock(return_value={"sha1": "", "sha256": "0" * 64}))
        with pytest.raises(Refused, match="does not match its checksum"):
            await store.get("a")
        with pytest.raises(Refused, match="does not match the upload"):
            await store.put("b", b"one", {})


async def test_error_contains_response_of_store(server: Artifactory) -> None:
    async with open_artifact_store(server.address, lambda: "wrong") as store:
        with pytest.raises(Refused) as refused:
            await store.get("a")
    assert refused.value.text() == (
        f"artifact store {server.address}: HTTP 401 for GET  [StoreFailed]\n"
        '  {"errors": [{"status": 401, "message": "Bad credentials"}]}'
    )
    async with open_artifact_store("http://127.0.0.1:1/artifactory/none") as store:
        with pytest.raises(Refused, match="no valid response"):
            await store.get("a")


async def test_token_is_read_for_each_request(server: Artifactory) -> None:
    tokens = iter(("wrong", TOKEN, "two\nlines"))
    async with open_artifact_store(server.address, lambda: next(tokens)) as store:
        with pytest.raises(Refused, match="HTTP 401"):
            await store.get("a")
        assert await store.get("a") is None
        with pytest.raises(Refused, match="its token must be printable ASCII"):
            await store.get("a")


async def test_unwritable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "builds").write_text("in the way")
    async with open_artifact_store(str(tmp_path)) as store:
        assert await store.get(PATH) is None
        with pytest.raises(Refused, match="artifact store"):
            await store.put(PATH, b"", {})
