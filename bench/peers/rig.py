"""The rig: an API server and etcd on one core with an audit log, and one contender at a time on the other."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.control_plane import ControlPlane

from bench.accounting import used_s
from bench.cpu_affinity import CONTENDER_CPUS, SERVER_CPUS, pinned_to
from bench.empty_control_plane import empty_control_plane
from bench.figures import ROOT
from bench.peers.audit import POLICY, AuditLog
from bench.peers.cgroup import ContenderGroup, contender_group
from bench.peers.contenders import Contender

_ADMINISTRATORS = ("system:masters",)
"""All contenders are administrators: the API server neither limits their rate nor searches their rights."""
_STOP_TIMEOUT_S = 20.0


class Rig(NamedTuple):
    plane: ControlPlane
    folder: Path
    audit: AuditLog

    def server_used_s(self) -> float:
        """Processor time on the API server's core: its own, etcd's, and that of the client, which is this process."""
        pids = (self.plane.api_server.process.pid, self.plane.etcd.process.pid, os.getpid())
        return sum(map(used_s, pids))

    def kubeconfig(self, user: str) -> Path:
        folder = self.folder / user
        folder.mkdir(exist_ok=True)
        return self.plane.kubeconfig(folder, user, _ADMINISTRATORS)


class RunningContender:
    """The process of a contender, its user, its control group and its log."""

    def __init__(
        self, contender: Contender, process: subprocess.Popen[str], group: ContenderGroup, log: Path, user: str
    ) -> None:
        self.contender = contender
        self.process = process
        self.group = group
        self.user = user
        self._log = log

    def ask(self, line: str = "") -> dict[str, Any]:
        """Sends a line, and returns the next line of its output, which is JSON. Exits if the contender has ended."""
        self.say(line)
        return self.hear()

    def say(self, line: str = "") -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout
        answer = self.process.stdout.readline()
        if not answer:
            self.process.wait()
            self.check()
        answered: dict[str, Any] = json.loads(answer)
        return answered

    def check(self) -> None:
        """Exits with the end of its log if the contender has ended."""
        if (code := self.process.poll()) is not None:
            end = self._log.read_text()[-3000:]
            raise SystemExit(f"{self.contender.name} ended with {code}; the end of its log:\n{end}")


@contextmanager
def open_rig() -> Iterator[Rig]:
    """This process is the user that creates and edits workloads. It runs on the core of the API server."""
    with pinned_to(SERVER_CPUS), empty_control_plane(audit_policy=POLICY) as (plane, folder):
        yield Rig(plane, folder, AuditLog(folder / "audit.log"))


@contextmanager
def running(rig: Rig, contender: Contender, *words: str) -> Iterator[RunningContender]:
    """Starts a contender without a limit. Its standard input ends with the block, and then it has to end."""
    user = f"bench-{contender.name}"
    kubeconfig = rig.kubeconfig(user)
    log = rig.folder / f"{contender.name}.log"
    command = [each.replace("KUBECONFIG", str(kubeconfig)) for each in (*contender.command, *words)]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": "", **dict(contender.variables)}
    with contender_group() as group, log.open("w") as output, pinned_to(CONTENDER_CPUS):
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if contender.speaks else output,
            stderr=output,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        try:
            group.add(process.pid)
            os.sched_setaffinity(0, SERVER_CPUS)
            yield RunningContender(contender, process, group, log, user)
        finally:
            _stop(process, group)


def _stop(process: subprocess.Popen[str], group: ContenderGroup) -> None:
    group.limit_cores(1)
    process.terminate()
    end = time.monotonic() + _STOP_TIMEOUT_S
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
