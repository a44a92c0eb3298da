"""Attacks on configuration bundles: foreign projects, paths that climb, endless uploads, and a store that lies."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from config_bundles import bundle_files, new_config_store, publish_files, served_config
from pincompute.agents.callers import Caller
from pincompute.agents.config.limits import ConfigLimits
from pincompute.agents.config.store import ConfigStore
from pincompute.api.names import DESK, METRICS_READER, OPERATOR
from pincompute.base.problem import Problem, Refused
from pincompute.cli.bundle_files import LocalBundle
from pincompute.objects.config_bundle import MAX_FILE_BYTES, MAX_FILES, bundle_errors, content_digest

POD, FOREIGN = Caller("", "ads", "web"), Caller("", "search", "web")
SECRET = {"prices.json": b"of ads only"}
DIGEST = content_digest(b"of ads only")


@pytest.fixture(name="store")
def config_store(tmp_path: Path) -> ConfigStore:
    store = new_config_store(tmp_path)
    publish_files(store, SECRET)
    return store


def body_of(files: dict[str, bytes], **changes: Any) -> bytes:
    rows = [{**file._asdict(), **changes} for file in bundle_files(files)]
    return msgspec.json.encode({"files": rows, "by": "eve"})


@pytest.mark.parametrize(
    "path", ["/v1/bundles/ads/flags/0", "/v1/bundles/ads/flags/1", f"/v1/bundles/ads/flags/1/{DIGEST}"]
)
async def test_foreign_pod_learns_nothing_of_a_bundle(store: ConfigStore, path: str) -> None:
    """The answer is that for a bundle that does not exist, and a shared bundle reveals that alone."""
    publish_files(store, {"x": b"1"}, "search/flags")
    async with served_config(store, FOREIGN) as request:
        answers = []
        for asked in (path, path.replace("ads/flags", "ads/nothing")):
            async with request("GET", asked) as response:
                assert response.status == 404
                answers.append((await response.text()).replace("nothing", "flags"))
        assert answers[0] == answers[1]
        store.share("ads", "flags", ["search"])
        async with request("GET", path) as response:
            assert response.status == 200
        # A content of another bundle of the project is not part of what is shared.
        other = content_digest(b"other")
        publish_files(store, {"y": b"other"}, "ads/other")
        async with request("GET", f"/v1/bundles/ads/flags/1/{other}") as response:
            assert response.status == 404
        store.share("ads", "flags", [])
        async with request("GET", path) as response:
            assert response.status == 404


async def test_live_request_of_a_foreign_pod_shows_no_digest(store: ConfigStore) -> None:
    for caller, known, versions in ((FOREIGN, "x", [""]), (POD, "", ["1"])):
        query = {"bundle": "ads/flags", "known": known}
        async with served_config(store, caller) as request, request("GET", "/v1/live", **query) as response:
            assert [each.partition("=")[0] for each in await response.json()] == versions


@pytest.mark.parametrize("caller", [POD, Caller(), Caller(OPERATOR), Caller(METRICS_READER)])
async def test_only_the_desk_writes(store: ConfigStore, caller: Caller) -> None:
    bundle = "/v1/projects/ads/bundles/flags"
    attempts = [
        ("PUT", f"/v1/projects/ads/contents/{DIGEST}"), ("GET", f"/v1/projects/ads/contents/{DIGEST}"),
        ("GET", "/v1/projects/ads/bundles"), ("GET", bundle), ("DELETE", bundle), ("POST", f"{bundle}/versions"),
        ("GET", f"{bundle}/versions/1"), ("PUT", f"{bundle}/pointer"), ("PUT", f"{bundle}/shares"),
    ]  # fmt: skip
    async with served_config(store, caller) as request:
        for method, path in attempts:
            async with request(method, path) as response:
                assert response.status == 403, (method, path)
    assert store.bundle("ads", "flags").current == 1


async def test_platform_processes_are_no_pods(store: ConfigStore) -> None:
    async with served_config(store, Caller(DESK)) as request, request("GET", "/v1/bundles/ads/flags/1") as response:
        assert response.status == 403


@pytest.mark.parametrize(
    "path",
    [
        "../evil",
        "/etc/passwd",
        "a/../../b",
        "..",
        ".",
        "a//b",
        "a/",
        "",
        "a\\b",
        "a\nb",
        "ä",
        "a" * 201,
        "/".join("a" * 9),
    ],
)
async def test_paths_that_climb_are_refused(store: ConfigStore, path: str) -> None:
    async with served_config(store, Caller(DESK)) as request:
        body = body_of({"x": b"1"}, path=path)
        async with request("POST", "/v1/projects/ads/bundles/flags/versions", body) as response:
            assert response.status == 422
            assert (await response.json())[0]["reason"] == "ConfigInvalid"


@pytest.mark.parametrize("name", ["..", "%2e%2e", "a%2fb", "A", "", "a" * 64, "a\u0000"])
async def test_names_lead_to_no_other_file(store: ConfigStore, name: str) -> None:
    async with served_config(store, Caller(DESK)) as request:
        for path in (f"/v1/projects/{name}/bundles/flags", f"/v1/projects/ads/bundles/{name}"):
            async with request("GET", path) as response:
                assert response.status in {400, 404}, path


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"files": {}}', b'{"files": [], "by": "x"}', b'{"files": ' + b"[" * 100_000, b"\xff"]
)
async def test_requests_that_are_none_are_refused(store: ConfigStore, body: bytes) -> None:
    path = "/v1/projects/ads/bundles/flags/versions"
    async with served_config(store, Caller(DESK)) as request, request("POST", path, body) as response:
        assert response.status == 422


@pytest.mark.parametrize(
    "changes", [{"size": 7}, {"digest": "0" * 64}, {"digest": "../x"}, {"size": -1}, {"size": 10**9}]
)
async def test_files_that_are_not_as_declared_are_never_published(store: ConfigStore, changes: dict[str, Any]) -> None:
    store.put_content("ads", content_digest(b"1"), b"1")
    async with served_config(store, Caller(DESK)) as request:
        body = body_of({"x": b"1"}, **changes)
        async with request("POST", "/v1/projects/ads/bundles/evil/versions", body) as response:
            answer = await response.json()
    assert response.status == 422 or answer["missing"]
    with pytest.raises(Refused):
        store.bundle("ads", "evil")


def test_wrong_content_of_a_digest_is_refused(store: ConfigStore) -> None:
    with pytest.raises(Refused, match="the content has the digest"):
        store.put_content("ads", "0" * 64, b"x")


def test_ten_thousand_files_are_refused_without_naming_each() -> None:
    errors = list(bundle_errors(bundle_files({f"f{number}": b"x" for number in range(10_000)})))
    assert errors == [f"the bundle has 10,000 files, the maximum is {MAX_FILES:,}"]
    climbing = list(bundle_errors(bundle_files({f"../{number}": b"x" for number in range(MAX_FILES)})))
    assert len(climbing) == 11


def test_file_that_is_also_a_folder_is_refused() -> None:
    assert list(bundle_errors(bundle_files({"a": b"", "a/b": b""}))) == ["'a' is a file and a folder"]


def test_uploads_without_end_fill_only_their_own_project(tmp_path: Path) -> None:
    store = new_config_store(tmp_path, ConfigLimits(bytes=100_000, files=50))
    with pytest.raises(Refused):
        upload_endlessly(store, 1_000)
    assert sum(each.stat().st_size for each in (tmp_path / "ads").rglob("*") if each.is_file()) <= 100_000
    with pytest.raises(Refused):
        upload_endlessly(store, 1)
    assert publish_files(store, SECRET, "search/flags").version == 1


def upload_endlessly(store: ConfigStore, repeated: int) -> None:
    for number in range(1_000):
        content = str(number).encode() * repeated
        store.put_content("ads", content_digest(content), content)


async def test_oversized_content_is_refused(store: ConfigStore) -> None:
    content = b"x" * (MAX_FILE_BYTES + 2)
    path = f"/v1/projects/ads/contents/{content_digest(content)}"
    async with served_config(store, Caller(DESK)) as request, request("PUT", path, content) as response:
        assert response.status == 413


async def test_live_requests_of_a_project_are_bounded(tmp_path: Path) -> None:
    store = new_config_store(tmp_path, ConfigLimits(live_requests=3))
    publish_files(store, SECRET)
    keys = [("ads", "flags")]
    with store.watch("ads", keys), store.watch("ads", keys), store.watch("ads", keys):
        with pytest.raises(Refused, match="3 requests of project ads"), store.watch("ads", keys):
            pass
        with store.watch("search", keys):
            pass
    with store.watch("ads", keys):
        assert store.live_request_count == 1
    assert store.live_request_count == 0


async def test_two_publishers_at_once_get_two_versions(store: ConfigStore) -> None:
    """And every version has the files of one of them."""
    async with served_config(store, Caller(DESK)) as request:
        contents = [f"of {number}".encode() for number in range(20)]
        for content in contents:
            store.put_content("ads", content_digest(content), content)

        async def publish(content: bytes) -> int:
            body = body_of({"x": content})
            async with request("POST", "/v1/projects/ads/bundles/flags/versions", body) as response:
                return int((await response.json())["version"])

        versions = await asyncio.gather(*map(publish, contents))
    assert sorted(versions) == list(range(2, 22))
    for version, content in zip(versions, contents, strict=True):
        (file,) = store.read_version("ads", "flags", version).files
        assert store.read_content("ads", file.digest) == content


def test_links_and_devices_of_a_folder_are_not_published(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "good").write_text("x")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "linked").symlink_to("/etc")
    with pytest.raises(Refused) as refused:
        LocalBundle.read(folder)
    assert [each.what.partition(" ")[0] for each in refused.value.problems] == ["link", "linked"]
    assert all(isinstance(each, Problem) for each in refused.value.problems)
