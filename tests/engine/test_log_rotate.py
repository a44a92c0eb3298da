"""Log rotation truncates logs while they are written, and imports the standard library only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pincompute.engine import log_rotate


def test_long_log_is_rotated_while_it_is_written(tmp_path: Path):
    log = tmp_path / "etcd.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"old\n" * 100)
        log_rotate.rotate_logs(tmp_path, limit=100)
        writer.write(b"new\n")
        assert log.read_bytes() == b"new\n"
        assert log.with_name("etcd.log.1").read_bytes() == b"old\n" * 100
        writer.write(b"newer\n" * 100)
        log_rotate.rotate_logs(tmp_path, limit=100)
    assert log.read_bytes() == b""
    assert log.with_name("etcd.log.1").read_bytes().startswith(b"new\nnewer\n")
    assert len(list(tmp_path.iterdir())) == 2


def test_short_log_is_not_rotated(tmp_path: Path):
    (tmp_path / "desk.log").write_text("short\n")
    log_rotate.rotate_logs(tmp_path, limit=100)
    assert [file.name for file in tmp_path.iterdir()] == ["desk.log"]


def test_ends_when_folder_is_removed_and_needs_no_packages(tmp_path: Path):
    gone = tmp_path / "gone"
    command = [sys.executable, "-IS", "-X", "importtime", log_rotate.__file__, gone]
    done = subprocess.run(command, check=True, timeout=30, capture_output=True, text=True)
    assert "pincompute" not in done.stderr.replace(str(log_rotate.__file__), "")
    assert "click" not in done.stderr
