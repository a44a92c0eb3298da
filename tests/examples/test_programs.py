"""The programs of the examples work, also outside a container."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from child_process import child_process
from pincompute.engine.ports import choose_ports

PROGRAMS = Path(__file__).parents[2] / "examples/programs"


@contextmanager
def running(program: str, **environment: str) -> Iterator[tuple[str, int]]:
    """Start a program; yields its first line and its port. On SIGTERM it must exit with 0."""
    port = choose_ports({}, None)["registry"]
    variables = {**os.environ, "PORT": str(port), **environment}
    with child_process(sys.executable, PROGRAMS / program, environment=variables) as process:
        assert process.stdout is not None
        yield process.stdout.readline(), port
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def run_program(program: str, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, PROGRAMS / program, *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == code
    return done.stdout


def send_lines(port: int, *lines: str) -> list[str]:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection, connection.makefile("rw") as stream:
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()
        return [stream.readline().strip() for _ in lines]


def test_parts_cover_all_lines():
    def counted_lines(part: int, of: int) -> int:
        return int(run_program("count", "--part", str(part), "--of", str(of)).split()[4])

    assert counted_lines(0, 2) + counted_lines(1, 2) == counted_lines(0, 1) > 100_000


def test_report_is_of_one_day():
    assert run_program("report", "--yesterday") != run_program("report")
    assert run_program("report").startswith("report of 2")


def test_exporter_serves_load_and_memory():
    with running("exporter") as (first_line, port), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        assert first_line == f"listening on port {port}\n"
        names = {line.split()[0] for line in answer.read().decode().splitlines()}
        assert names == {"node_load1", "node_load5", "node_load15", "node_memory_MemTotal_bytes",
                         "node_memory_MemAvailable_bytes"}  # fmt: skip


def test_store_is_durable(tmp_path: Path):
    with running("db", DATA=str(tmp_path)) as (first_line, port):
        assert first_line == f"0 values, listening on port {port}\n"
        assert send_lines(port, "set colour dark green", "get colour", "get size") == ["ok", "dark green", "nothing"]
    with (tmp_path / "journal").open("a") as journal:
        journal.write("colour cut o")
    with running("db", DATA=str(tmp_path)) as (first_line, port):
        assert first_line == f"1 values, listening on port {port}\n"
        assert send_lines(port, "get colour", "drop") == ["dark green", "say: set KEY VALUE, or: get KEY"]


@pytest.mark.parametrize(("number", "code", "expected"), [(0, 0, "1,440,008 bytes"), (12, 3, "bad JPEG header")])
def test_resize_succeeds_or_reports_bad_header(number: int, code: int, expected: str):
    assert expected in run_program("resize", str(number), code=code)
