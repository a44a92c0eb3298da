"""The example application works as the README shows, also outside a container."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from urllib.request import urlopen

from child_process import child_process
from pincompute.engine.ports import choose_ports

APP = Path(__file__).parents[2] / "examples/hello/app.py"


def test_answers_is_healthy_and_stops_on_sigterm():
    port = choose_ports({}, None)["registry"]
    with child_process(sys.executable, APP, environment={**os.environ, "PORT": str(port)}) as app:
        assert app.stdout is not None
        assert app.stdout.readline() == f"listening on port {port}\n"
        assert response_of(port, "/") == f"hello from {os.uname().nodename}\n"
        assert response_of(port, "/healthz") == "ok\n"
        app.send_signal(signal.SIGTERM)
        assert app.stdout.readline() == "ended\n"
        assert app.wait(60) == 0


def response_of(port: int, path: str) -> str:
    with urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return str(answer.read().decode())
