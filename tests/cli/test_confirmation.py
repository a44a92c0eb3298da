"""`pin deploy --version` on a terminal shows the changes, and deploys only after a confirmation."""

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

from fake_desk import fake_desk
from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.workload_summary import WorkloadSummary

PIN = Path(sys.executable).parent / "pin"
KEY_REPEAT_INTERVAL_S = 1.0
WITH_CONTROLLING_TERMINAL = """
import fcntl, os, signal, sys, termios
# Ctrl-C goes to the processes of the controlling terminal, and a test may run without one.
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
PREVIEW = BuildPreview(version="1.0", preview=Preview(kind="PinterestService", project="me", name="web"))
SUMMARY = WorkloadSummary(
    kind="PinterestService", project="me", name="web", uid="1", generation=1, revision=1,
    goal="Ready", ready=0, wanted=1, image="web:1",
)  # fmt: skip


@pytest.fixture
def submitted(tmp_path: Path) -> Iterator[list[str]]:
    """The paths of the submissions that the desk gets."""
    paths: list[str] = []

    def answer(method: str, path: str) -> tuple[int, object]:
        if method == "GET":
            return 200, PREVIEW
        paths.append(path)
        return 201, SUMMARY

    with fake_desk(tmp_path / "state", answer):
        yield paths


def deploy_on_terminal(folder: Path, keys: bytes, *options: str) -> tuple[int, str]:
    """Type the keys once the question is shown; return the exit code and the output."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_CONTROLLING_TERMINAL, PIN,
         "deploy", "web", "--version", "1.0", "--no-wait", *options],
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        env={**os.environ, "PIN_STATE": str(folder / "state")},
    )  # fmt: skip
    os.close(slave)
    output = b""
    while True:
        # An interrupt just before the program begins to read is lost, so that keys are repeated.
        if keys and b"[y/N]" in output and not select.select([master], [], [], KEY_REPEAT_INTERVAL_S)[0]:
            os.write(master, keys)
        if not (chunk := _read_terminal(master)):
            break
        output += chunk
    os.close(master)
    return process.wait(60), output.decode()


def _read_terminal(terminal: int) -> bytes:
    """Return no bytes once the last process has closed the other side, for which Linux raises EIO."""
    try:
        return os.read(terminal, 1 << 12)
    except OSError:
        return b""


@pytest.mark.parametrize("keys", [b"n\n", b"\n", b"\x03", b"\x04"], ids=["no", "nothing", "ctrl-c", "end"])
def test_submits_nothing_without_confirmation(tmp_path: Path, submitted: list[str], keys: bytes) -> None:
    code, output = deploy_on_terminal(tmp_path, keys)
    assert "Deploy it? [y/N]" in output
    assert "Aborted!" in output
    # A repeated interrupt may kill the process while it exits.
    assert code in (1, -signal.SIGINT)
    assert submitted == []


def test_submits_after_confirmation(tmp_path: Path, submitted: list[str]) -> None:
    code, output = deploy_on_terminal(tmp_path, b"y\n")
    assert "Deploy it? [y/N]" in output
    assert "web@1  submitted" in output
    assert (code, submitted) == (0, ["/v1/projects/me/builds/web/1.0/submissions"])


def test_yes_option_skips_the_question(tmp_path: Path, submitted: list[str]) -> None:
    code, output = deploy_on_terminal(tmp_path, b"", "--yes")
    assert "Deploy it?" not in output
    assert (code, len(submitted)) == (0, 1)
