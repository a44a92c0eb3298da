"""The programs of the examples do what they say, also outside a container."""

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

from pincompute.engine.ports import choose

PROGRAMS = Path(__file__).parents[2] / "examples/programs"


@contextmanager
def running(program: str, **environment: str) -> Iterator[tuple[str, int]]:
    """What it says first, and its port; it ends well when it is told to."""
    port = choose({}, None)["registry"]
    with subprocess.Popen([sys.executable, PROGRAMS / program], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PORT": str(port), **environment}) as process:  # fmt: skip
        assert process.stdout is not None
        yield process.stdout.readline(), port
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


def ran(program: str, *words: str, code: int = 0) -> str:
    done = subprocess.run([sys.executable, PROGRAMS / program, *words], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == code
    return done.stdout


def asked(port: int, *lines: str) -> list[str]:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection, connection.makefile("rw") as stream:
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()
        return [stream.readline().strip() for _ in lines]


def test_the_parts_are_all_of_the_lines():
    def lines(part: int, of: int) -> int:
        return int(ran("count", "--part", str(part), "--of", str(of)).split()[4])

    assert lines(0, 2) + lines(1, 2) == lines(0, 1) > 100_000


def test_a_report_is_of_a_day():
    assert ran("report", "--yesterday") != ran("report")
    assert ran("report").startswith("report of 2")


def test_the_exporter_tells_load_and_memory():
    with running("exporter") as (said, port), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        assert said == f"listening on port {port}\n"
        names = {line.split()[0] for line in answer.read().decode().splitlines()}
        assert names == {"node_load1", "node_load5", "node_load15", "node_memory_MemTotal_bytes",
                         "node_memory_MemAvailable_bytes"}  # fmt: skip


def test_the_store_knows_after_its_end_what_it_said_it_kept(tmp_path: Path):
    with running("db", DATA=str(tmp_path)) as (said, port):
        assert said == f"0 values, listening on port {port}\n"
        assert asked(port, "set colour dark green", "get colour", "get size") == ["ok", "dark green", "nothing"]
    with (tmp_path / "journal").open("a") as journal:
        journal.write("colour cut o")
    with running("db", DATA=str(tmp_path)) as (said, port):
        assert said == f"1 values, listening on port {port}\n"
        assert asked(port, "get colour", "drop") == ["dark green", "say: set KEY VALUE, or: get KEY"]


@pytest.mark.parametrize(("number", "code", "words"), [(0, 0, "1,440,008 bytes"), (12, 3, "bad JPEG header")])
def test_pictures(number: int, code: int, words: str):
    assert words in ran("resize", str(number), code=code)
