"""The keeper cuts long logs under their writers, and imports next to nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pincompute.engine import keeper


def test_a_long_log_is_cut_and_its_writer_goes_on_at_the_beginning(tmp_path: Path):
    log = tmp_path / "etcd.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"old\n" * 100)
        keeper.keep(tmp_path, limit=100)
        writer.write(b"new\n")
        assert log.read_bytes() == b"new\n"
        assert log.with_name("etcd.log.1").read_bytes() == b"old\n" * 100
        writer.write(b"newer\n" * 100)
        keeper.keep(tmp_path, limit=100)
    assert log.read_bytes() == b""
    assert log.with_name("etcd.log.1").read_bytes().startswith(b"new\nnewer\n")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_short_log_is_left_alone(tmp_path: Path):
    (tmp_path / "desk.log").write_text("short\n")
    keeper.keep(tmp_path, limit=100)
    assert [file.name for file in tmp_path.iterdir()] == ["desk.log"]


def test_it_ends_with_the_platform_and_needs_no_packages(tmp_path: Path):
    gone = tmp_path / "gone"
    command = [sys.executable, "-IS", "-X", "importtime", keeper.__file__, gone]
    done = subprocess.run(command, check=True, timeout=30, capture_output=True, text=True)
    assert "pincompute" not in done.stderr.replace(str(keeper.__file__), "")
    assert "click" not in done.stderr
