"""Which files of a log volume are shipped, where there are too many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pincompute.agents.logs.volume import FIRST, MOST, Files


def written(folder: Path, count: int) -> None:
    """One after the other, the last by name first."""
    for number in range(count):
        file = folder / f"{number:03}.log"
        file.write_text("a\n")
        os.utime(file, (count - number, count - number))


def shipped(files: Files) -> list[str]:
    return [each.container for each in files()]


def test_those_that_were_written_last_are_shipped_and_the_others_told_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, MOST + 3)
    files = Files(tmp_path, "me", "web-0", "u1", "pincompute-logs:2")
    assert shipped(files) == [f"{number:03}.log" for number in range(MOST)]
    os.utime(tmp_path / f"{MOST + 2:03}.log")
    now = shipped(files)
    assert f"{MOST + 2:03}.log" in now
    assert f"{MOST - 1:03}.log" not in now
    assert len(now) == MOST
    said = capfd.readouterr().err
    assert said.count("3 files are not shipped") == 1


def test_the_first_version_goes_by_name_for_ever(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, MOST + 3)
    files = Files(tmp_path, "me", "web-0", "u1", FIRST)
    os.utime(tmp_path / f"{MOST + 2:03}.log")
    assert shipped(files) == [f"{number:03}.log" for number in range(MOST)]
    assert capfd.readouterr().err == ""
