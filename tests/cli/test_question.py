"""What a published version would change is shown on a terminal, and nothing is done before somebody says yes."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest

from pincompute.api.preview import BuildPreview, Preview
from pincompute.api.summary import Summary
from pincompute.base.context import Context, write_context

PIN = Path(sys.executable).parent / "pin"
AGAIN = 0.2
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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, PREVIEW)

        def do_POST(self) -> None:
            told.append(self.path)
            self._answer(201, SUMMARY)

        def _answer(self, status: int, value: object) -> None:
            body = msgspec.json.encode(value)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None: ...  # noqa: A002  (as the library names it)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    address = f"http://127.0.0.1:{server.server_port}"
    write_context(tmp_path / "state", Context(name="main", desk=address, token="secret", kubeconfig=""))
    yield told
    server.shutdown()
    serving.join()
    server.server_close()


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
