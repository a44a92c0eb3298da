"""The supervisor renews certificates of a running platform, and restarts the parts that use them one by one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from issued_certificates import issued_platform
from manual_clock import ManualClock
from pincompute.base.certificate_authority import CA_LIFETIME, LIFETIME
from pincompute.base.problem import Problem, Refused
from pincompute.base.reasons import PART_FAILED
from pincompute.engine import own_services, processes
from pincompute.engine.control_plane import API_SERVER, ETCD, MANAGER
from pincompute.engine.converge import Converger
from pincompute.engine.file_lock import exclusive_lock
from pincompute.engine.home import Home
from pincompute.engine.kubeconfigs import write_kubeconfig
from pincompute.engine.loaded_certificates import loaded_certificates_digest
from pincompute.engine.parts import NoProbe, Part
from pincompute.engine.platform import Platform
from pincompute.engine.processes import Process, find_marked
from pincompute.engine.record import PlatformRecord, read_record
from pincompute.engine.renewal import RenewalActions, find_due, renew
from pincompute.engine.supervisor import RENEWAL_INTERVAL_S, SUPERVISOR, RenewalTimer

SLEEP = (sys.executable, "-c", "import time; time.sleep(600)")
CODE = "c0de"


class RunningPlatform:
    """Processes that only sleep, each with the certificates of a part in its command."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self.folder, self.clock = folder, clock
        self.platform = issued_platform(folder, clock)
        self.home = self.platform.home
        write_kubeconfig(self.platform, MANAGER)
        converger = Converger(self.home, PlatformRecord(ports=dict(self.platform.ports)), lambda _: None)
        converger.stop_superfluous([self.parts()])
        converger.start_stage(self.parts())

    def parts(self) -> list[Part]:
        certificates, configs = self.home.certificates, self.home.configs
        configuration = configs / "manager.yaml"
        configuration.parent.mkdir(exist_ok=True)
        configuration.write_text(f"kubeconfig: {configs / MANAGER}.kubeconfig\n")
        named = {
            ETCD: f"--cert-file={certificates / ETCD / ETCD}.crt",
            API_SERVER: f"--tls-cert-file={certificates / API_SERVER}.crt",
            MANAGER: f"--config={configuration}",
            "log-rotate": "no-certificate",
            SUPERVISOR: f"{certificates / API_SERVER}.crt",
        }
        return [Part(name, (*SLEEP, argument), NoProbe()) for name, argument in named.items()]

    def actions(self, code: str = CODE) -> RenewalActions:
        return RenewalActions(self._prepare, self._stages, lambda: code)

    def _stages(self, _: Platform) -> list[list[Part]]:
        return [self.parts()]

    def _prepare(self, platform: Platform) -> None:
        issued_platform(self.folder, self.clock)
        write_kubeconfig(platform, MANAGER)

    def renew(self, code: str = CODE) -> list[str]:
        return renew(self.home, self.clock, self.actions(code))

    @property
    def record(self) -> PlatformRecord:
        record = read_record(self.home)
        assert record is not None
        return record

    @property
    def processes(self) -> dict[str, Process]:
        return self.record.processes


@pytest.fixture(name="running")
def running_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningPlatform]:
    monkeypatch.setenv(own_services.CODE_VARIABLE, CODE)
    running = RunningPlatform(tmp_path, ManualClock())
    yield running
    processes.stop(structs.replace(process, grace_period_s=0.1) for process in find_marked(running.home))


def test_renews_and_restarts_the_users_one_by_one_in_the_order_of_a_start(
    running: RunningPlatform, monkeypatch: pytest.MonkeyPatch
):
    before, stopped = running.processes, list[list[str]]()

    def stop(leaving: list[Process]) -> None:
        stopped.append([each.part for each in leaving])
        others = [each for each in running.processes.values() if each not in leaving]
        assert all(map(processes.is_running, others)), "one part at a time"
        stop_processes(leaving)

    stop_processes = processes.stop
    assert running.renew() == []
    running.clock.at += LIFETIME * 3 / 4
    with monkeypatch.context() as patched:
        patched.setattr(processes, "stop", stop)
        assert running.renew() == [ETCD, API_SERVER, MANAGER]
    assert stopped == [[ETCD], [API_SERVER], [MANAGER]]
    after = running.processes
    assert {name for name in after if after[name] != before[name]} == {ETCD, API_SERVER, MANAGER}
    assert all(map(processes.is_running, after.values()))
    assert running.record.certificates_renewed == "2026-11-01T06:00:00Z"
    assert find_due(running.platform).issued == ()
    assert running.renew() == []


def test_part_that_fails_stops_the_renewal_and_the_next_one_continues(
    running: RunningPlatform, monkeypatch: pytest.MonkeyPatch
):
    start = processes.start

    def fail_api_server(part: Part, home: Home) -> Process:
        if part.name == API_SERVER:
            raise Refused(Problem(PART_FAILED, f"{part.name} did not start"))
        return start(part, home)

    running.clock.at += LIFETIME * 3 / 4
    with monkeypatch.context() as patched:
        patched.setattr(processes, "start", fail_api_server)
        assert running.renew() == [ETCD]
    assert running.record.renewal_problem == "kube-apiserver did not start"
    assert processes.is_running(running.processes[MANAGER])
    assert not processes.is_running(running.processes[API_SERVER]), "recorded, so that the supervisor restarts it"
    assert running.renew() == [API_SERVER, MANAGER]
    assert running.record.renewal_problem == ""


def test_interrupted_renewal_is_continued(running: RunningPlatform):
    running.clock.at += LIFETIME * 3 / 4
    running.actions().prepare(running.platform)
    assert running.renew() == [ETCD, API_SERVER, MANAGER]


def test_pin_up_restarts_what_an_interrupted_renewal_left(running: RunningPlatform):
    running.clock.at += LIFETIME * 3 / 4
    running.actions().prepare(running.platform)
    converger = Converger(running.home, running.record, lambda _: None)
    before = running.processes
    converger.stop_superfluous([running.parts()])
    converger.start_stage(running.parts())
    assert not {*before.values()} & {running.processes[each] for each in (ETCD, API_SERVER, MANAGER)}


def test_processes_of_an_earlier_version_are_restarted_by_a_renewal(running: RunningPlatform):
    record = running.record
    former = {name: structs.replace(each, certificates="") for name, each in record.processes.items()}
    converger = Converger(running.home, structs.replace(record, processes=former), lambda _: None)
    converger.stop_superfluous([running.parts()])
    assert running.record == record
    running.clock.at += LIFETIME * 3 / 4
    assert running.renew() == [ETCD, API_SERVER, MANAGER]


def test_does_nothing_while_a_command_holds_the_lock(running: RunningPlatform):
    running.clock.at += LIFETIME * 3 / 4
    with exclusive_lock(running.home.lock, "pin up", lambda _: None):
        assert running.renew() == []
    assert find_due(running.platform).issued


def test_leaves_an_updated_program_to_pin_up(running: RunningPlatform):
    assert running.renew("other") == []
    assert running.record.renewal_problem == ""
    running.clock.at += LIFETIME * 3 / 4
    assert running.renew("other") == []
    assert running.record.renewal_problem == "PinCompute was updated after the last pin up"
    assert find_due(running.platform).issued


def test_leaves_authorities_to_pin_up(running: RunningPlatform):
    running.clock.at += CA_LIFETIME * 3 / 4
    before = running.processes
    assert running.renew() == []
    assert running.record.renewal_problem.startswith("an authority must be replaced: ca.crt, etcd/ca.crt")
    assert running.processes == before


def test_certificates_of_hosts_are_left_to_the_ingress(running: RunningPlatform):
    own_services.web_authority(running.platform).issue("shop", hosts=("shop.localhost",))
    running.clock.at += LIFETIME * 3 / 4
    assert "etcd/etcd.crt" in find_due(running.platform).issued
    assert "web/shop.crt" not in find_due(running.platform).issued


def test_identity_in_a_named_folder_counts(running: RunningPlatform):
    folder = running.home.certificates / "identity" / "log-store"
    folder.mkdir()
    part = Part("log-store", ("serve", "--identity", str(folder)), NoProbe())
    seen = set()
    for content in ("a", "b"):
        (folder / "identity.pem").write_text(content)
        seen.add(loaded_certificates_digest(part, running.home))
    assert len(seen) == 2


def test_timer_starts_one_renewal_an_hour():
    now, started = [1000.0], list[subprocess.Popen[bytes]]()

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(SLEEP))
        return started[-1]

    timer = RenewalTimer(start, lambda: now[0])
    timer.poll()
    assert started == []
    for _ in range(3):
        now[0] += RENEWAL_INTERVAL_S
        timer.poll()
    assert len(started) == 1, "an earlier one runs still"
    started[0].kill()
    started[0].wait()
    timer.poll()
    assert len(started) == 2
    started[1].kill()
    started[1].wait()


def test_module_runs_on_a_platform_without_processes(tmp_path: Path):
    command = [sys.executable, "-m", "pincompute.engine.renewal", str(tmp_path / "absent")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not (tmp_path / "absent").exists()
