"""`pin status` as text and JSON, and errors of the engine's commands."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from pincompute.engine.commands import down, status, up
from pincompute.engine.home import home_of
from pincompute.engine.nodes.simulated_spec import SimulatedNodes
from pincompute.engine.record import PlatformRecord, write_record
from pincompute.engine.status import Health, Nodes, PartStatus, PlatformStatus, render_status
from pincompute.engine.supervisor import SUPERVISOR
from pincompute.main import command_group

DAMAGED = PlatformStatus(
    name="main",
    health="damaged",
    kubeconfig="/state/main/kubeconfig",
    server="https://10.201.0.1:20001",
    http="http://NAME.PROJECT.localhost:8080",
    nodes=Nodes(real=True, simulated=SimulatedNodes(count=50, zones=3)),
    parts=[
        PartStatus(
            name="etcd", health=Health.READY, pid=12, age_s=4000.0, memory_bytes=50 << 20, version="v3.6.8",
            address="https://127.0.0.1:20002", log="/state/main/logs/etcd.log",
        ),
        PartStatus(name="desk", health=Health.ENDED, restarts=3, version="0.1.0", log="/state/main/logs/desk.log"),
    ],
)  # fmt: skip


def test_text_output_is_a_table():
    header = [
        "platform main: damaged",
        "  kubeconfig  /state/main/kubeconfig",
        "  workloads   http://NAME.PROJECT.localhost:8080",
        "  nodes       node-main, 50 simulated, each 32 CPUs, 128Gi, in 3 zones",
        "  logs        /state/main/logs/PART.log",
        "",
    ]
    assert render_status(DAMAGED).splitlines() == [
        *header,
        "PART  HEALTH  RESTARTS  AGE  MEMORY  VERSION",
        "etcd  ready   0         1h   50 MiB  v3.6.8",
        "desk  ended   3                      0.1.0",
    ]
    assert render_status(DAMAGED, wide=True).splitlines() == [
        *header,
        "PART  HEALTH  RESTARTS  AGE  MEMORY  VERSION  PID  ADDRESS                  LOG",
        "etcd  ready   0         1h   50 MiB  v3.6.8   12   https://127.0.0.1:20002  /state/main/logs/etcd.log",
        "desk  ended   3                      0.1.0                                  /state/main/logs/desk.log",
    ]


def test_text_output_has_the_command_that_reads_the_metrics():
    operator = PartStatus(name="operator", health=Health.READY, address="http://127.0.0.1:20005")
    status = msgspec.structs.replace(DAMAGED, metrics_header="/my state/main/metrics.header", parts=[operator])
    line = "  metrics     curl -H '@/my state/main/metrics.header' http://127.0.0.1:20005/metrics"
    assert line in render_status(status).splitlines()


def test_text_output_has_the_addresses_of_other_metrics():
    operator = PartStatus(name="operator", health=Health.READY, address="http://127.0.0.1:20005")
    metrics = {"operator": "http://127.0.0.1:20005/metrics", "desk": "http://127.0.0.1:20006/metrics"}
    status = msgspec.structs.replace(DAMAGED, metrics_header="/h", metrics=metrics, parts=[operator])
    urls = [line.split()[-1] for line in render_status(status).splitlines() if line.endswith("/metrics")]
    assert urls == list(metrics.values())


DUE = "2027-01-31T12:00:00Z"
BY_HAND = f"pin up, before certificates expire at {DUE}: the supervisor does not run"


@pytest.mark.parametrize(
    ("supervisor", "fields", "line"),
    [
        (Health.READY, {}, None),
        (Health.READY, {"certificates_expire": DUE}, f"within the hour, as certificates expire at {DUE}"),
        (Health.ENDED, {"certificates_expire": DUE}, BY_HAND),
        (None, {"certificates_expire": DUE}, BY_HAND),
        (
            Health.READY,
            {"certificates_expire": DUE, "renewal_problem": "PinCompute was updated"},
            f"pin up, before certificates expire at {DUE}: PinCompute was updated",
        ),
        (Health.READY, {"renewal_problem": "desk did not start"}, "pin up: desk did not start"),
        (Health.READY, {"certificates_renewed": DUE}, f"certificates renewed at {DUE}"),
    ],
)
def test_text_output_tells_the_renewal_of_certificates(
    supervisor: Health | None, fields: dict[str, str], line: str | None
):
    parts = [PartStatus(name=SUPERVISOR, health=each) for each in (supervisor,) if each]
    status = msgspec.structs.replace(DAMAGED, parts=parts, **fields)
    seen = [each.split(maxsplit=1)[1] for each in render_status(status).splitlines() if each.startswith("  renewal")]
    assert seen == ([] if line is None else [line])


def test_json_output_has_stable_fields():
    seen = json.loads(msgspec.json.encode(DAMAGED))
    assert list(seen) == [
        "name", "health", "kubeconfig", "server", "http", "metrics_header", "metrics", "prometheus", "nodes", "parts",
        "certificates_expire", "certificates_renewed", "renewal_problem",
    ]  # fmt: skip
    assert list(seen["parts"][0]) == [
        "name", "health", "pid", "age", "memory", "restarts", "version", "address", "log",
    ]  # fmt: skip
    assert list(seen["nodes"]["simulated"]) == ["count", "cpu", "memory", "zones"]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIN_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "state"


def test_status_of_stopped_platform_exits_with_1(state: Path):
    write_record(home_of("main", state), PlatformRecord(ports={"api": 1, "http": 8080}))
    done = CliRunner().invoke(status, ["-o", "json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout)["health"] == "down"
    done = CliRunner().invoke(status)
    assert done.stdout.startswith("platform main: down\n")
    assert done.stderr == "next: pin up --name main\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("up --nodes -1", "--nodes -1: must be between 0 and 10000  [NodesInvalid]"),
        ("up --node-shape 32", "--node-shape '32': must be"),
        ("up --name a/b", "'a/b' is not a valid platform name  [NameInvalid]"),
        ("status", "no platform 'main' on this machine  [PlatformUnknown]\n  next: pin up\n"),
        ("down --name gone", "next: pin up --name gone"),
        ("kubectl get pods", "next: pin up"),
    ],
)
def test_invalid_command_is_reported_and_changes_nothing(command: str, message: str, state: Path):
    done = CliRunner().invoke(command_group(), command.split())
    assert done.exit_code == 1
    assert message in done.stderr
    assert done.stdout == ""
    assert not state.exists()


def test_only_pin_down_works_with_unreadable_record(state: Path):
    file = home_of("main", state).root / "record.json"
    write_record(home_of("main", state), PlatformRecord())
    file.write_text("{")
    done = CliRunner().invoke(command_group(), ["status"])
    assert (done.exit_code, "[RecordInvalid]" in done.stderr) == (1, True)
    done = CliRunner().invoke(down, ["--purge"])
    assert done.exit_code == 0
    assert list(state.iterdir()) == []


def test_reports_full_disk(state: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(state))

    monkeypatch.setattr("pincompute.engine.up.up", full)
    done = CliRunner().invoke(command_group(), ["up"])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"{state}: disk full  [DiskFull]")


def test_help_lists_all_options():
    text = CliRunner().invoke(up, ["--help"]).stdout
    for option in ("--name", "--nodes", "--node-shape", "--zones", "--simulated", "--http-port"):
        assert option in text
