"""Processes and sockets, as the kernel describes them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pincompute.agents.debug import processes
from pincompute.agents.debug.processes import parse_socket, report

ANY = ":"
"""Every control group has a colon, so that every process belongs to this container."""


@pytest.mark.parametrize(
    ("protocol", "line", "expected"),
    [
        (
            "tcp",
            "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1",
            {"state": "LISTEN", "local": "127.0.0.1:8080", "remote": "0.0.0.0:*", "pid": 5},
        ),
        (
            "tcp6",
            "1: 00000000000000000000000001000000:01BB B80D0120000000000000000001000000:C350 01 0:0 0:0 0 0 0 9 1",
            {"state": "ESTABLISHED", "local": "[::1]:443", "remote": "[2001:db8::1]:50000", "pid": 0},
        ),
        (
            "udp",
            "2: 00000000:0035 00000000:0000 07 0:0 0:0 0 0 0 77 1",
            {"state": "", "local": "0.0.0.0:53", "remote": "0.0.0.0:*", "pid": 5},
        ),
    ],
)  # fmt: skip
def test_parses_sockets(protocol: str, line: str, expected: dict[str, object]) -> None:
    found = parse_socket(protocol, line, {"77": 5})
    assert {name: found[name] for name in expected} == expected


@pytest.fixture
def child() -> Iterator[int]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process.pid
        process.kill()


def test_describes_processes_and_the_owners_of_sockets(child: int) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        found = report([os.getpid(), child], ANY, os.getpid())
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        (shown,) = (each for each in found["sockets"] if each["local"] == address)
    assert (shown["pid"], shown["state"]) == (os.getpid(), "LISTEN")
    by_pid = {each["pid"]: each for each in found["processes"]}
    assert by_pid[child]["command"] == "sleep 1000"
    assert by_pid[os.getpid()]["memoryBytes"] > 1_000_000
    assert found["processCount"] == 2


def test_leaves_out_processes_of_other_containers_and_ended_ones(child: int) -> None:
    assert report([child], "of-another", os.getpid())["processes"] == []
    assert report([2**22 + 1], ANY, os.getpid())["processes"] == []


def test_lists_are_bounded(monkeypatch: pytest.MonkeyPatch, child: int) -> None:
    monkeypatch.setattr(processes, "MAX_PROCESSES", 1)
    monkeypatch.setattr(processes, "MAX_SOCKETS", 0)
    found = report([os.getpid(), child], ANY, os.getpid())
    assert (len(found["processes"]), found["processCount"]) == (1, 2)
    assert found["sockets"] == []


def test_imports_the_standard_library_only() -> None:
    code = "import sys, pincompute.agents.debug.processes, pincompute.agents.debug.files; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"aiohttp", "msgspec", "click"} & set(loaded) == set()
