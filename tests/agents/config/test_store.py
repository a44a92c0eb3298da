"""The config store: versions, limits, faults of its disk, and crashes."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config_bundles import bundle_files, new_config_store, publish_files
from manual_clock import ManualClock
from pincompute.agents.config import project_folder
from pincompute.agents.config.limits import ConfigLimits
from pincompute.agents.config.store import ConfigStore
from pincompute.base.problem import Refused
from pincompute.objects.config_bundle import content_digest

ONE, TWO = {"a.json": b"1"}, {"a.json": b"2", "deep/b.toml": b""}


@pytest.fixture(name="store")
def config_store(tmp_path: Path) -> ConfigStore:
    return new_config_store(tmp_path)


def test_publishes_numbered_versions_and_points_to_the_last(store: ConfigStore) -> None:
    assert publish_files(store, ONE).version == 1
    assert publish_files(store, TWO).version == 2
    assert store.bundle("ads", "flags").current == 2
    assert [each.path for each in store.read_version("ads", "flags").files] == ["a.json", "deep/b.toml"]
    assert store.read_version("ads", "flags", 1).digest != store.read_version("ads", "flags", 2).digest


def test_equal_files_make_no_version(store: ConfigStore) -> None:
    publish_files(store, TWO)
    again = publish_files(store, dict(reversed(TWO.items())))
    assert (again.version, again.unchanged) == (1, True)
    # Once more after another version, it is a new one.
    publish_files(store, ONE)
    assert publish_files(store, TWO).version == 3


def test_lists_missing_contents_instead_of_publishing(store: ConfigStore) -> None:
    published = store.publish("ads", "flags", bundle_files(TWO), "ann")
    assert published.version == 0
    assert set(published.missing) == {each.digest for each in bundle_files(TWO)}
    with pytest.raises(Refused, match="no configuration bundle ads/flags"):
        store.bundle("ads", "flags")


def test_rolls_back_and_survives_a_restart(store: ConfigStore, tmp_path: Path) -> None:
    publish_files(store, ONE)
    publish_files(store, TWO)
    store.point("ads", "flags", 1)
    store.share("ads", "flags", ["search", "ads"])
    again = ConfigStore(tmp_path)
    assert again.bundle("ads", "flags") == store.bundle("ads", "flags")
    assert again.bundle("ads", "flags").shared_with == ["search"]
    assert publish_files(again, {"c": b"3"}).version == 3
    with pytest.raises(Refused, match="has no version 9"):
        again.point("ads", "flags", 9)


def test_keeps_the_current_version_and_those_in_use(tmp_path: Path) -> None:
    store = new_config_store(tmp_path, ConfigLimits(versions=3, unused_seconds=-1))
    for number in range(6):
        publish_files(store, {"n": str(number).encode()}, in_use=[2])
    assert [each.version for each in store.bundle("ads", "flags").versions] == [2, 4, 5, 6]
    assert store.read_content("ads", content_digest(b"1")) == b"1"
    with pytest.raises(Refused, match="no file with the digest"):
        store.read_content("ads", content_digest(b"0"))


def test_limits_bytes_and_bundles_of_a_project(tmp_path: Path) -> None:
    store = new_config_store(tmp_path, ConfigLimits(bytes=10_000, bundles=2))
    publish_files(store, {"a": b"x" * 4_000})
    with pytest.raises(Refused, match="project ads has"):
        publish_files(store, {"a": b"y" * 9_000}, "ads/other")
    publish_files(store, ONE, "ads/second")
    with pytest.raises(Refused, match="2 bundles"):
        publish_files(store, ONE, "ads/third")
    # Another project is not concerned.
    assert publish_files(store, {"a": b"y" * 9_000}, "search/flags").version == 1


def test_removes_contents_of_no_bundle_after_an_hour(tmp_path: Path) -> None:
    clock = ManualClock()
    store = ConfigStore(tmp_path, clock=clock)
    store.put_content("ads", content_digest(b"x"), b"x")
    path = tmp_path / "ads" / "contents" / content_digest(b"x")
    for minutes, expected in ((59, True), (61, False)):
        moment = clock.now() - timedelta(minutes=minutes)
        os.utime(path, (moment.timestamp(),) * 2)
        store.collect_unused()
        assert path.exists() == expected


def test_full_disk_is_refused_and_leaves_nothing(
    store: ConfigStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_files(store, ONE)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(project_folder.os, "fsync", full)
    with pytest.raises(Refused, match="No space left"):
        publish_files(store, TWO)
    monkeypatch.undo()
    assert not [each for each in tmp_path.rglob("*") if each.name.startswith(".")]
    assert store.bundle("ads", "flags").current == 1
    assert publish_files(store, TWO).version == 2


@pytest.mark.parametrize("crash_at", range(1, 9))
def test_killed_at_any_write_the_next_process_has_the_old_state_or_the_new(
    store: ConfigStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash_at: int
) -> None:
    """A kill between any two steps of a write; the next process continues, and nothing is half."""
    publish_files(store, ONE)
    steps = 0

    class Killed(BaseException):
        pass

    def counted(write: object) -> object:
        def step(*arguments: object, **named: object) -> object:
            nonlocal steps
            steps += 1
            if steps == crash_at:
                raise Killed
            return write(*arguments, **named)  # type: ignore[operator]

        return step

    monkeypatch.setattr(project_folder.os, "fsync", counted(os.fsync))
    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    with suppress(Killed):
        publish_files(store, TWO)
    monkeypatch.undo()
    again = new_config_store(tmp_path)
    bundle = again.bundle("ads", "flags")
    assert bundle.current in {1, 2}
    for version in bundle.versions:
        for file in again.read_version("ads", "flags", version.version).files:
            assert content_digest(again.read_content("ads", file.digest)) == file.digest
    assert publish_files(again, TWO).version == 2
    assert again.bundle("ads", "flags").current == 2


def test_a_later_project_of_the_name_gets_nothing(store: ConfigStore, tmp_path: Path) -> None:
    publish_files(store, ONE)
    publish_files(store, ONE, "search/words")
    store.share("search", "words", ["ads"])
    store.forget_namespace("ads")
    assert store.bundles("ads") == []
    # The right to read is of the former project, too.
    assert store.bundle("search", "words").shared_with == []
    publish_files(store, ONE, "search/flags")
    missed = ConfigStore(tmp_path)
    missed.observe_namespace("search", "another-uid")
    assert missed.bundles("search") == []


def test_projects_deleted_while_it_was_down_are_removed(store: ConfigStore, tmp_path: Path) -> None:
    publish_files(store, ONE)
    again = ConfigStore(tmp_path)
    again.observe_namespace("search", "uid-of-search")
    again.remove_missing_projects()
    assert not (tmp_path / "ads").exists()


def test_time_and_publisher_are_recorded(tmp_path: Path) -> None:
    store = ConfigStore(tmp_path, clock=ManualClock())
    publish_files(store, ONE)
    version = store.bundle("ads", "flags").versions[0]
    assert version.published_by == "ann"
    assert datetime.fromisoformat(version.published_at).tzinfo == UTC
