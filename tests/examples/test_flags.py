"""The readers of percentage flags: both languages by the same vectors, and nothing that makes them fail."""

from __future__ import annotations

import json
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pincompute.engine.toolchain import find_go, go_environment

CLIENTS = Path(__file__).parents[2] / "clients"
_PINFLAGS: dict[str, Any] = runpy.run_path(str(CLIENTS / "python" / "pinflags.py"), run_name="pinflags")
BUCKETS, Flags, bucket_of, is_on = (_PINFLAGS[each] for each in ("BUCKETS", "Flags", "bucket_of", "is_on"))
VECTORS = json.loads((CLIENTS / "vectors.json").read_text())


def test_python_agrees_with_the_shared_vectors() -> None:
    for each in VECTORS:
        assert bucket_of(each["flag"], each["key"]) == each["bucket"]
        assert is_on(each["value"], each["flag"], each["key"], default=each["default"]) == each["on"], each


def test_go_agrees_with_the_shared_vectors() -> None:
    done = subprocess.run(
        [find_go().program, "test", "./..."], cwd=CLIENTS / "go", env=go_environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_share_of_keys_is_the_percentage() -> None:
    on = sum(is_on(20, "flag", str(number)) for number in range(BUCKETS))
    assert 1_800 < on < 2_200


def test_key_stays_on_when_the_percentage_rises() -> None:
    for key in map(str, range(200)):
        states = [is_on(percent, "flag", key) for percent in range(101)]
        assert states == sorted(states)
        assert (states[0], states[100]) == (False, True)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"a": ', "[" * 100_000, "\x00"])
def test_broken_file_keeps_the_last_good_values(tmp_path: Path, text: str) -> None:
    flags = Flags("flags", folder=str(tmp_path))
    assert flags.is_on("a", "k", default=True)
    write(tmp_path, '{"a": 100}')
    assert flags.is_on("a", "k")
    write(tmp_path, text)
    assert flags.is_on("a", "k")
    write(tmp_path, '{"a": 0}')
    assert not flags.is_on("a", "k", default=True)


@pytest.mark.parametrize("value", [None, True, "50", [], {}, -1, 101, float("nan"), float("inf")])
def test_value_that_is_no_percentage_has_the_default(value: Any) -> None:
    assert is_on(value, "a", "k", default=True)
    assert not is_on(value, "a", "k")


def write(folder: Path, text: str) -> None:
    """Replace the file by one with another inode, as the sidecar does."""
    path = folder / "flags" / "flags.json"
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)
