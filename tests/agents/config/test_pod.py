"""Bundles in a pod: files that are complete and verified, live changes, and a store that does not respond."""

from __future__ import annotations

import stat
from functools import partial
from pathlib import Path

import pytest

from config_bundles import StoreSource, bundle_files, new_config_store, publish_files, unavailable
from pincompute.agents.config.bundle_folder import BundleAltered, BundleFolder
from pincompute.agents.config.fetch import Fetcher, PinnedBundle
from pincompute.agents.config.follow import COMPLETE, Follower
from pincompute.agents.config.patience import wait_for_bundles
from pincompute.agents.config.source import BundleRejected, checked_version
from pincompute.agents.config.store import ConfigStore
from pincompute.objects.config_bundle import content_digest

ONE, TWO = {"flags.json": b"1", "deep/a": b"same"}, {"flags.json": b"2", "deep/a": b"same"}


@pytest.fixture(name="store")
def config_store(tmp_path: Path) -> ConfigStore:
    return new_config_store(tmp_path / "store")


@pytest.fixture
def source(store: ConfigStore) -> StoreSource:
    return StoreSource(store)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pod = tmp_path / "pod"
    pod.mkdir()
    return pod


def pinned(store: ConfigStore, version: int = 0) -> PinnedBundle:
    found = store.read_version("ads", "flags", version)
    return PinnedBundle("ads/flags", found.version, found.digest)


def test_parses_what_the_template_says() -> None:
    assert PinnedBundle.parse("ads/flags@3=abc") == PinnedBundle("ads/flags", 3, "abc")


def test_fetches_every_file_readable_by_any_user(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    assert Fetcher([pinned(store)], source, BundleFolder(folder)).find_missing() == {}
    assert (folder / "flags" / "flags.json").read_bytes() == b"1"
    assert (folder / "flags" / "deep" / "a").read_bytes() == b"same"
    assert stat.S_IMODE((folder / "flags" / "deep" / "a").stat().st_mode) == 0o444
    assert stat.S_IMODE((folder / "flags" / "deep").stat().st_mode) == 0o755


def test_store_that_is_down_is_named_and_waited_for(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    source.failure = unavailable()
    fetcher = Fetcher([pinned(store)], source, BundleFolder(folder))
    slept: list[float] = []
    wait = partial(wait_for_bundles, fetcher.find_missing, folder, "https://store", monotonic=lambda: sum(slept))
    with pytest.raises(SystemExit) as ended:
        wait(sleep=slept.append)
    assert str(ended.value).startswith("configuration bundles missing from https://store since 20")
    assert str(ended.value).endswith(": ads/flags@1 (connection refused)")

    def back_after_many(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 100:
            source.failure = None

    # The next container does not end any more: its restart would be delayed by minutes.
    wait(sleep=back_after_many)
    assert (folder / "flags" / "flags.json").exists()
    assert [each.name for each in folder.iterdir() if each.name == ".missing"] == []


def test_another_digest_than_that_of_the_revision_is_rejected(
    store: ConfigStore, source: StoreSource, folder: Path
) -> None:
    publish_files(store, ONE)
    fetcher = Fetcher([pinned(store)._replace(digest="0" * 64)], source, BundleFolder(folder))
    assert fetcher.find_missing() == {}
    assert "and the revision with 000000000000" in next(iter(fetcher.rejected.values()))
    assert not (folder / "flags").exists()


def test_altered_content_is_never_installed(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    source.replaced = {content_digest(b"1"): b"evil"}
    fetcher = Fetcher([pinned(store)], source, BundleFolder(folder))
    assert "flags.json is not as its digest says" in fetcher.find_missing()["ads/flags@1"]
    assert [each.name for each in folder.rglob("*") if each.name != ".bundles"] == []
    source.replaced = {}
    assert fetcher.find_missing() == {}


def test_altered_list_of_files_is_never_installed(folder: Path) -> None:
    files = bundle_files(ONE)
    with pytest.raises(BundleAltered):
        BundleFolder(folder).install("flags", "1" * 64, files, lambda _: b"")


def test_files_already_there_are_not_fetched_again(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    for _ in range(2):
        assert Fetcher([pinned(store)], source, BundleFolder(folder)).find_missing() == {}
    assert len(source.reads) == 2


def test_damaged_files_are_fetched_again(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    Fetcher([pinned(store)], source, BundleFolder(folder)).find_missing()
    damaged = folder / "flags" / "flags.json"
    damaged.chmod(0o644)
    damaged.write_bytes(b"x")
    Fetcher([pinned(store)], source, BundleFolder(folder)).find_missing()
    assert damaged.read_bytes() == b"1"


def test_follows_changes_and_fetches_only_changed_files(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    follower = Follower(["ads/flags"], source, folder)
    assert follower.find_missing() == {}
    assert (folder / COMPLETE).exists()
    publish_files(store, TWO)
    opened = (folder / "flags" / "flags.json").open("rb")
    source.reads.clear()
    assert follower.follow_once() == {}
    assert (folder / "flags" / "flags.json").read_bytes() == b"2"
    assert source.reads == [content_digest(b"2")]
    with opened:
        # A program that has a file of the former version open still reads that.
        assert opened.read() == b"1"
    store.point("ads", "flags", 1)
    assert follower.follow_once() == {}
    assert (folder / "flags" / "flags.json").read_bytes() == b"1"


def test_keeps_the_last_good_version(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    follower = Follower(["ads/flags"], source, folder)
    follower.find_missing()
    source.failure = unavailable()
    assert follower.follow_once() == {"ads/flags": "connection refused"}
    source.failure = None
    publish_files(store, TWO)
    source.replaced = {content_digest(b"2"): b"3"}
    assert "not as its digest says" in follower.follow_once()["ads/flags"]
    store.delete("ads", "flags")
    assert "no such bundle" in follower.follow_once()["ads/flags"]
    assert (folder / "flags" / "flags.json").read_bytes() == b"1"


def test_restarted_sidecar_starts_without_the_store(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    Follower(["ads/flags"], source, folder).find_missing()
    source.failure = unavailable()
    assert Follower(["ads/flags"], source, folder).find_missing() == {}


def test_one_bundle_that_fails_does_not_delay_another(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    publish_files(store, ONE)
    follower = Follower(["ads/gone", "ads/flags"], source, folder)
    assert list(follower.find_missing()) == ["ads/gone"]
    assert (folder / "flags" / "flags.json").exists()
    assert not (folder / COMPLETE).exists()


def test_disk_of_a_pod_is_not_filled_by_old_versions(store: ConfigStore, source: StoreSource, folder: Path) -> None:
    follower = Follower(["ads/flags"], source, folder)
    for number in range(10):
        publish_files(store, {"flags.json": str(number).encode()})
        follower.follow_once()
    assert len(list((folder / ".bundles").iterdir())) == 2


@pytest.mark.parametrize("path", ["../../evil", "/etc/passwd", "a/../../b", "a//b", "", "a\0b"])
def test_pod_writes_nothing_outside_of_its_folder(path: str) -> None:
    """Also for a store that an attacker controls."""
    with pytest.raises(BundleRejected, match="not allowed"):
        checked_version({"version": 1, "digest": "", "files": [{"path": path, "digest": "0" * 64, "size": 1}]})
