"""Runs a program in a network namespace of its own, in which only one port of this machine can be reached.

Chromium aborts all requests when an interface of the machine appears or goes, as those of pods do in other tests. In a
namespace of its own nothing changes. Connections leave it by a Unix socket, which namespaces share.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CHUNK_BYTES = 65_536
Connect = Callable[[], socket.socket]


@contextmanager
def still_network(program: Path, port: int, folder: Path) -> Iterator[Path]:
    """Yields a script that runs the program there, with its arguments and open files."""
    gate, script = folder / "gate", folder / "program"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(gate))
        listener.listen(128)
        _forward_beside(listener, lambda: socket.create_connection(("127.0.0.1", port)))
        unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        words = [*unshare, sys.executable, str(Path(__file__)), str(gate), str(port), str(program)]
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o700)
        yield script
        listener.shutdown(socket.SHUT_RDWR)


def _forward_beside(listener: socket.socket, connect: Connect) -> None:
    threading.Thread(target=_accept_all, args=(listener, connect), daemon=True).start()


def _accept_all(listener: socket.socket, connect: Connect) -> None:
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            try:
                far = connect()
            except OSError:
                near.close()
                continue
            ends = threading.Barrier(2)
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_copy, args=(source, target, ends), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket, ends: threading.Barrier) -> None:
    with suppress(OSError):
        while chunk := source.recv(_CHUNK_BYTES):
            target.sendall(chunk)
    # A connection that ends on one side ends on the other one, too: both directions are woken.
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    ends.wait()
    source.close()


def main(gate: str, port: str, *command: str) -> int:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

    def through_gate() -> socket.socket:
        outside = socket.socket(socket.AF_UNIX)
        outside.connect(gate)
        return outside

    with socket.create_server(("127.0.0.1", int(port)), backlog=128) as listener:
        _forward_beside(listener, through_gate)
        # Playwright speaks with Chromium by files that it has opened.
        return subprocess.call(command, close_fds=False)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
