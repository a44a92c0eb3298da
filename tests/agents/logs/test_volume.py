"""Selection of files in a log volume with too many files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pincompute.agents.logs.volume import LOGS_1_IMAGE, MAX_FILES, VolumeStreams


def write_files(folder: Path, count: int) -> None:
    """Creates files; the later the name, the older the file."""
    for number in range(count):
        file = folder / f"{number:03}.log"
        file.write_text("a\n")
        os.utime(file, (count - number, count - number))


def shipped(files: VolumeStreams) -> list[str]:
    return [each.container for each in files()]


def test_ships_newest_files_and_logs_the_ignored_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_files(tmp_path, MAX_FILES + 3)
    files = VolumeStreams(tmp_path, "me", "web-0", "u1", "pincompute-logs:2")
    assert shipped(files) == [f"{number:03}.log" for number in range(MAX_FILES)]
    os.utime(tmp_path / f"{MAX_FILES + 2:03}.log")
    now = shipped(files)
    assert f"{MAX_FILES + 2:03}.log" in now
    assert f"{MAX_FILES - 1:03}.log" not in now
    assert len(now) == MAX_FILES
    events = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(each["event"], each["ignored"]) for each in events] == [("log files ignored", 3)]


def test_logs_1_ships_first_files_by_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_files(tmp_path, MAX_FILES + 3)
    files = VolumeStreams(tmp_path, "me", "web-0", "u1", LOGS_1_IMAGE)
    os.utime(tmp_path / f"{MAX_FILES + 2:03}.log")
    assert shipped(files) == [f"{number:03}.log" for number in range(MAX_FILES)]
    assert capfd.readouterr().err == ""
