"""Two commands at once: one waits and says for whom. Two platforms at once: each has a place of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pincompute.base.problem import Refused
from pincompute.engine import places, ports
from pincompute.engine.home import Home
from pincompute.engine.lock import held

HOLD = """
import sys
from pathlib import Path
from pincompute.engine.lock import held
with held(Path(sys.argv[1]), "pin up --name main", print):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(file: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_says_for_whom_it_waits_and_goes_on(tmp_path: Path):
    file = tmp_path / "lock"
    said: list[str] = []
    with holder(file) as first:

        def say(words: str) -> None:
            said.append(words)
            assert first.stdin is not None
            first.stdin.close()

        with held(file, "pin down", say):
            assert file.read_text() == f"pin down, pid {os.getpid()}"
    assert said == [f"waiting for another command to end (pin up --name main, pid {first.pid})"]


def test_one_that_is_killed_holds_nothing(tmp_path: Path):
    with holder(tmp_path / "lock") as first:
        first.kill()
        first.wait()
        said: list[str] = []
        with held(tmp_path / "lock", "pin up", said.append):
            assert said == []


def test_a_lock_that_went_with_its_platform_is_not_taken_for_the_new_one(tmp_path: Path):
    file = tmp_path / "lock"
    inside = threading.Event()
    waiting = threading.Event()
    results: list[bool] = []

    def second() -> None:
        with held(file, "pin up", lambda _: waiting.set()):
            results.append(file.exists() and file.read_text().startswith("pin up"))

    with held(file, "pin down --purge", lambda _: None):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(60)
        file.unlink()
        inside.set()
    thread.join()
    assert results == [True]


def home(tmp_path: Path, name: str) -> Home:
    home = Home(name, tmp_path / "state" / name)
    home.root.mkdir(parents=True, exist_ok=True)
    return home


def test_each_platform_has_a_place_and_keeps_it(tmp_path: Path):
    run = tmp_path / "run"
    one, two = home(tmp_path, "one"), home(tmp_path, "two")
    assert [places.claim(each, None, run) for each in (one, two, one)] == [0, 1, 0]
    assert places.owned(two, run) == 1


def test_after_a_reboot_each_gets_its_place_again(tmp_path: Path):
    run = tmp_path / "run"
    assert places.claim(home(tmp_path, "two"), 1, run) == 1
    assert places.claim(home(tmp_path, "one"), 0, run) == 0
    # Somebody was faster: another one will do.
    assert places.claim(home(tmp_path, "three"), 0, run) == 2


def test_the_place_of_one_whose_folder_is_gone_is_free(tmp_path: Path):
    run = tmp_path / "run"
    gone = home(tmp_path, "gone")
    places.claim(gone, None, run)
    gone.root.rmdir()
    assert places.claim(home(tmp_path, "new"), None, run) == 0


def test_the_last_one_leaves_nothing_behind(tmp_path: Path):
    run = tmp_path / "run"
    one, two = home(tmp_path, "one"), home(tmp_path, "two")
    for each in (one, two):
        places.claim(each, None, run)
    places.release(one, run)
    assert places.owned(two, run) == 1
    places.release(two, run)
    places.release(two, run)
    assert not run.exists()


def test_a_place_is_taken_before_anything_of_its_platform_is_there(tmp_path: Path):
    one, two = (Home(name, tmp_path / "state" / name) for name in ("one", "two"))
    assert [places.claim(each, None, tmp_path / "run") for each in (one, two)] == [0, 1]


def test_when_all_places_are_taken_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(places, "COUNT", 1)
    places.claim(home(tmp_path, "one"), None, tmp_path / "run")
    with pytest.raises(Refused, match="all 1 networks"):
        places.claim(home(tmp_path, "two"), None, tmp_path / "run")


def test_ports_are_chosen_once():
    chosen = ports.choose({}, None)
    assert set(chosen) == {*ports.NAMES, "http"}
    assert len(set(chosen.values())) == len(chosen)
    assert ports.choose(chosen, None) == chosen
    assert ports.choose(chosen, 1234) == {**chosen, "http": 1234}
