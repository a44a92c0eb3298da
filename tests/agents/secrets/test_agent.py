"""The agent in a pod: complete before the application starts, follows rotation, and keeps its copy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pincompute.agents.secrets.agent import REPORT_AFTER_S, RETRY_S, Agent, Times
from pincompute.agents.secrets.folder import COMPLETE_FILE, FILE_MODE, SecretFolder
from pincompute.agents.secrets.store_client import Refusal, SecretClient, SecretRefused, Versions
from pincompute.agents.store_connection import StoreUnavailable
from pincompute.base.reasons import SECRET_NOT_GRANTED, SECRETS_UNAVAILABLE
from pincompute.planning.diagnosis.missing_secrets import missing_secrets_problem

NOT_GRANTED = Refusal(SECRET_NOT_GRANTED.code, "secret key is not granted to me/web", "pin secret grant key")
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


class FakeStore(SecretClient):
    """The store as the agent sees it: versions and values by name, refusals, or an outage."""

    def __init__(self, **values: bytes) -> None:
        self.secrets: dict[str, int | Refusal] = dict.fromkeys(values, 1)
        self.values = values
        self.down = False
        self.refusal: Refusal | None = None
        self.since: list[str] = []

    def fetch_versions(self, names: Sequence[str], since: str) -> Versions:
        self.since.append(since)
        if self.down:
            raise StoreUnavailable("connection refused")
        if self.refusal:
            raise SecretRefused(self.refusal)
        return Versions(repr(sorted(self.secrets.items())), {each: self.secrets[each] for each in names})

    def fetch_value(self, name: str) -> tuple[int, bytes]:
        if self.down:
            raise StoreUnavailable("connection refused")
        version = self.secrets[name]
        assert isinstance(version, int)
        return version, self.values[name]

    def rotate(self, name: str, value: bytes) -> None:
        version = self.secrets[name]
        assert isinstance(version, int)
        self.secrets[name], self.values[name] = version + 1, value


class FakeTimes:
    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.elapsed_s += seconds

    def times(self) -> Times:
        # Each look at the clock takes a second, so that a loop ends.
        return Times(self.monotonic, self.sleep, lambda: NOW)

    def monotonic(self) -> float:
        self.elapsed_s += 1.0
        return self.elapsed_s


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    return tmp_path / "secrets"


def agent_of(store: FakeStore, folder: Path, *names: str, times: FakeTimes | None = None) -> Agent:
    files = SecretFolder(folder, "me", os.getgid())
    return Agent(store, files, list(names), (times or FakeTimes()).times())


def test_files_are_written_with_the_mode_of_their_group(folder: Path) -> None:
    store = FakeStore(db=b"\x00binary\n", key=b"k")
    assert agent_of(store, folder, "db", "key").step() is None
    assert (folder / "db").read_bytes() == b"\x00binary\n"
    assert (folder / "db").stat().st_mode & 0o777 == FILE_MODE
    assert (folder / COMPLETE_FILE).exists()


def test_rotation_replaces_the_file(folder: Path) -> None:
    store = FakeStore(db=b"one")
    agent = agent_of(store, folder, "db")
    agent.step()
    before = (folder / "db").open("rb")
    store.rotate("db", b"two")
    agent.step()
    assert (folder / "db").read_bytes() == b"two"
    with before:
        # A program that reads while the file is replaced reads one version or the other, and never a mixture.
        assert before.read() == b"one"
    # The second request has the digest of the first answer, so that the store can hold it.
    assert store.since[0] == ""
    assert store.since[1]


def test_copy_is_kept_while_the_store_is_down(folder: Path) -> None:
    store, times = FakeStore(db=b"one"), FakeTimes()
    agent = agent_of(store, folder, "db", times=times)
    agent.step()
    store.down = True
    assert agent.step() is None
    assert times.elapsed_s >= RETRY_S
    store.down = False
    store.rotate("db", b"two")
    agent.step()
    assert (folder / "db").read_bytes() == b"two"


def test_new_container_starts_with_the_copy_while_the_store_is_down(folder: Path) -> None:
    store = FakeStore(db=b"one")
    agent_of(store, folder, "db").step()
    (folder / COMPLETE_FILE).unlink()
    store.down = True
    files = SecretFolder(folder, "me", os.getgid())
    files.mark_if_complete(["db"])
    assert (folder / COMPLETE_FILE).exists()
    assert agent_of(store, folder, "db").step() is None


def test_revoked_secret_stays_in_a_running_pod_and_others_follow_rotation(folder: Path) -> None:
    store = FakeStore(db=b"one", key=b"k")
    agent = agent_of(store, folder, "db", "key")
    agent.step()
    store.secrets["key"] = NOT_GRANTED
    store.rotate("db", b"two")
    assert agent.step() is None
    assert (folder / "key").read_bytes() == b"k"
    assert (folder / "db").read_bytes() == b"two"


def test_missing_secret_holds_the_application_back_and_is_reported_once(folder: Path) -> None:
    store = FakeStore(db=b"one")
    store.secrets["key"] = NOT_GRANTED
    times = FakeTimes()
    line = agent_of(store, folder, "db", "key", times=times).run()
    assert times.elapsed_s > REPORT_AFTER_S
    assert not (folder / COMPLETE_FILE).exists()
    problem = missing_secrets_problem("secrets-1", f"db: version 1\n{line}\n")
    assert problem is not None
    assert problem.reason is SECRET_NOT_GRANTED
    assert problem.what == NOT_GRANTED.what
    assert problem.next == NOT_GRANTED.next
    assert "since 2026-01-31T12:00:00+00:00" in problem.note
    # The next container does not end for the same reason, and sees the grant.
    store.secrets["key"] = 1
    store.values["key"] = b"k"
    assert agent_of(store, folder, "db", "key").step() is None
    assert (folder / COMPLETE_FILE).exists()


def test_next_container_waits_instead_of_ending_again(folder: Path) -> None:
    files = SecretFolder(folder, "me", os.getgid())
    assert files.report("SecretUnknown")
    assert not files.report("SecretUnknown")
    assert files.report("SecretNotGranted")


def test_unreachable_store_is_reported_with_the_time_since_when(folder: Path) -> None:
    store = FakeStore(db=b"one")
    store.down = True
    problem = missing_secrets_problem("secrets-7", agent_of(store, folder, "db").run())
    assert problem is not None
    assert problem.reason is SECRETS_UNAVAILABLE
    assert "connection refused" in problem.what


def test_refused_certificate_is_reported(folder: Path) -> None:
    store = FakeStore(db=b"one")
    store.refusal = Refusal("PeerRefused", "the certificate is of a former project me", "")
    assert agent_of(store, folder, "db").run().startswith("PeerRefused: the certificate is of a former project me")


def test_full_volume_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_disk_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store = FakeStore(db=b"one")
    monkeypatch.setattr(SecretFolder, "write", raise_disk_full)
    line = agent_of(store, folder, "db").run()
    assert "cannot write the files of secrets: No space left on device" in line


def test_crash_between_file_and_version_writes_it_again(folder: Path) -> None:
    store = FakeStore(db=b"one")
    agent_of(store, folder, "db").step()
    (folder / ".state" / "version.db").unlink()
    (folder / ".state" / "db.new").write_bytes(b"partial")
    store.values["db"] = b"again"
    agent_of(store, folder, "db").step()
    assert (folder / "db").read_bytes() == b"again"


def test_secret_of_another_project_has_its_name_in_the_file(folder: Path) -> None:
    store = FakeStore(**{"ads/key": b"theirs", "key@3": b"ours"})
    agent_of(store, folder, "ads/key", "key@3").step()
    assert (folder / "ads.key").read_bytes() == b"theirs"
    assert (folder / "key").read_bytes() == b"ours"


def test_files_of_other_secrets_are_removed(folder: Path) -> None:
    (folder / "former").write_text("x")
    SecretFolder(folder, "me", os.getgid()).remove_others(["db"])
    assert not (folder / "former").exists()


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("logs-1", "SecretUnknown: x; since 2026-01-31T12:00:00+00:00"),
        ("secrets-1", "Traceback (most recent call last)"),
        ("secrets-1", "NoSuchReason: x; since 2026-01-31T12:00:00+00:00"),
        ("secrets-1", "SecretUnknown: x; since yesterday"),
        ("secrets-1", ""),
        ("", "SecretUnknown: x; since 2026-01-31T12:00:00+00:00"),
    ],
)
def test_other_last_lines_are_no_missing_secret(part: str, message: str) -> None:
    assert missing_secrets_problem(part, message) is None
