"""A platform's status, as a person and as a program reads it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from pincompute.engine.commands import down, status, up
from pincompute.engine.home import home_of
from pincompute.engine.nodes.shape import Simulated
from pincompute.engine.record import Record, write
from pincompute.engine.status import Health, Nodes, PartStatus, Status, text
from pincompute.main import group

SEEN = Status(
    name="main",
    health="damaged",
    kubeconfig="/state/main/kubeconfig",
    server="https://10.201.0.1:20001",
    http="http://NAME.PROJECT.localhost:8080",
    nodes=Nodes(real=True, simulated=Simulated(count=50, zones=3)),
    parts=[
        PartStatus(
            name="etcd", health=Health.READY, pid=12, age=4000.0, memory=50 << 20, version="v3.6.8",
            address="https://127.0.0.1:20002", log="/state/main/logs/etcd.log",
        ),
        PartStatus(name="desk", health=Health.ENDED, version="0.1.0", log="/state/main/logs/desk.log"),
    ],
)  # fmt: skip


def test_a_person_sees_a_table():
    assert text(SEEN).splitlines() == [
        "platform main is damaged",
        "  kubeconfig  /state/main/kubeconfig",
        "  workloads   http://NAME.PROJECT.localhost:8080",
        "  nodes       node-main, 50 simulated of 32 processors and 128Gi in 3 zones",
        "",
        "PART  HEALTH  PID  AGE  MEMORY  VERSION  ADDRESS                  LOG",
        "etcd  ready   12   1h   50 MiB  v3.6.8   https://127.0.0.1:20002  /state/main/logs/etcd.log",
        "desk  ended                     0.1.0                             /state/main/logs/desk.log",
    ]


def test_a_program_reads_these_fields():
    seen = json.loads(msgspec.json.encode(SEEN))
    assert list(seen) == ["name", "health", "kubeconfig", "server", "http", "nodes", "parts"]
    assert list(seen["parts"][0]) == ["name", "health", "pid", "age", "memory", "version", "address", "log"]
    assert list(seen["nodes"]["simulated"]) == ["count", "cpu", "memory", "zones"]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "state"


def test_a_platform_that_is_down_says_so_and_is_no_success(state: Path):
    write(home_of("main", state), Record(ports={"api": 1, "http": 8080}))
    done = CliRunner().invoke(status, ["-o", "json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["health"] == "down"
    done = CliRunner().invoke(status)
    assert done.stdout.startswith("platform main is down\n")
    assert done.stderr == "next: pin up --name main\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("up --nodes -1", "--nodes -1 is not between 0 and 10000  [NodesInvalid]"),
        ("up --node-shape 32", "--node-shape '32' is not"),
        ("up --name a/b", "'a/b' cannot be the name of a platform  [NameInvalid]"),
        ("status", "there is no platform 'main' on this machine  [PlatformUnknown]\n  next: pin up\n"),
        ("down --name gone", "next: pin up --name gone"),
        ("kubectl get pods", "next: pin up"),
    ],
)
def test_a_mistake_gets_one_clear_message_and_changes_nothing(words: str, said: str, state: Path):
    done = CliRunner().invoke(group(), words.split())
    assert done.exit_code == 1
    assert said in done.stderr
    assert done.stdout == ""
    assert not state.exists()


def test_a_record_that_cannot_be_read_stops_all_but_down(state: Path):
    file = home_of("main", state).root / "record.json"
    write(home_of("main", state), Record())
    file.write_text("{")
    done = CliRunner().invoke(group(), ["status"])
    assert (done.exit_code, "[RecordInvalid]" in done.stderr) == (1, True)
    done = CliRunner().invoke(down, ["--purge"])
    assert done.exit_code == 0
    assert list(state.iterdir()) == []


def test_a_full_disk_is_told_in_words(state: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(state))

    monkeypatch.setattr("pincompute.engine.up.up", full)
    done = CliRunner().invoke(group(), ["up"])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"{state}: there is no room left on the disk  [DiskFull]")


def test_help_names_every_word():
    said = CliRunner().invoke(up, ["--help"]).stdout
    for word in ("--name", "--nodes", "--node-shape", "--zones", "--simulated", "--http-port"):
        assert word in said
