"""What a published version would change is shown on a terminal, and nothing is done before somebody says yes."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.summary import Summary
from pretended_desk import desk_that_says

PIN = Path(sys.executable).parent / "pin"
AGAIN = 1.0
SEATED = """
import fcntl, os, signal, sys, termios
# What interrupts a program goes to whose terminal it is; and these tests may run where nothing does.
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
PREVIEW = BuildPreview(version="1.0", preview=Preview(kind="PinterestService", project="me", name="web"))
SUMMARY = Summary(
    kind="PinterestService", project="me", name="web", uid="1", generation=1, revision=1,
    goal="Ready", ready=0, wanted=1, image="web:1",
)  # fmt: skip


@pytest.fixture
def submitted(tmp_path: Path) -> Iterator[list[str]]:
    """What a desk was told to do."""
    told: list[str] = []

    def answer(method: str, path: str) -> tuple[int, object]:
        if method == "GET":
            return 200, PREVIEW
        told.append(path)
        return 201, SUMMARY

    with desk_that_says(tmp_path / "state", answer):
        yield told


def typed(folder: Path, keys: bytes, *words: str) -> tuple[int, str]:
    """At a terminal, once the question stands there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SEATED, PIN, "deploy", "web", "--version", "1.0", "--no-wait", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "PIN_STATE": str(folder / "state")},
    )  # fmt: skip
    os.close(theirs)
    said = b""
    while True:
        # What interrupts a program just before it begins to read is heard when it is typed once more.
        if keys and b"[y/N]" in said and not select.select([ours], [], [], AGAIN)[0]:
            os.write(ours, keys)
        if not (chunk := _read(ours)):
            break
        said += chunk
    os.close(ours)
    return process.wait(60), said.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 12)
    except OSError:
        # The last who had it has closed it.
        return b""


@pytest.mark.parametrize("keys", [b"n\n", b"\n", b"\x03", b"\x04"], ids=["no", "nothing", "ctrl-c", "end"])
def test_whoever_does_not_say_yes_has_done_nothing(tmp_path: Path, submitted: list[str], keys: bytes) -> None:
    code, said = typed(tmp_path, keys)
    assert "Deploy it? [y/N]" in said
    assert "Aborted!" in said
    # It may be at its end already when it is interrupted again.
    assert code in (1, -signal.SIGINT)
    assert submitted == []


def test_whoever_says_yes_has_deployed_it(tmp_path: Path, submitted: list[str]) -> None:
    code, said = typed(tmp_path, b"y\n")
    assert "Deploy it? [y/N]" in said
    assert "web@1  submitted" in said
    assert (code, submitted) == (0, ["/v1/projects/me/builds/web/1.0/submissions"])


def test_whoever_has_said_it_beforehand_is_not_asked(tmp_path: Path, submitted: list[str]) -> None:
    code, said = typed(tmp_path, b"", "--yes")
    assert "Deploy it?" not in said
    assert (code, len(submitted)) == (0, 1)
