"""The store is killed again and again while lines come: what it said it had taken it has, and all comes once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from pincompute.agents.logs import node
from pincompute.agents.logs.courier import Away, Courier, Papers
from pincompute.agents.logs.follow import Follower
from pincompute.agents.logs.kept import Kept
from pincompute.agents.logs.place import Batch, Position, Stream
from pincompute.agents.logs.ship import Shipper
from pincompute.base.certificates import Authority

STREAM = Stream("me", "hello-0", "uid", "hello")
TIMES = 5


class Told(Courier):
    """Remembers what the store has said that it has."""

    known = Position()
    taken = threading.Event()

    def bring(self, batch: Batch) -> tuple[bool, Position]:
        taken, position = super().bring(batch)
        self.known = position
        self.taken.set()
        return taken, position


@contextmanager
def storing(folder: Path, port: int, authority: Authority) -> Generator[subprocess.Popen[bytes]]:
    words = (sys.executable, str(Path(__file__).with_name("storing.py")), folder, str(port), authority.folder)
    with subprocess.Popen(words) as process:
        try:
            yield process
        finally:
            process.kill()


def test_nothing_that_was_acknowledged_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    authority.establish()
    authority.issue("store", hosts=("127.0.0.1",))
    authority.issue("shipper")
    printed, folder, port = tmp_path / "0.log", tmp_path / "kept", own_port()
    papers = Papers(authority.bundle, authority.certificate("shipper"), authority.key("shipper"))
    courier = Told(f"https://127.0.0.1:{port}", papers)
    make = partial(Follower, STREAM, partial(node.files, printed), node.whole, inodes=False)
    shipper = Shipper(courier, lambda: {STREAM: make}, 0)
    kept = folder / "me" / "hello" / "hello-0_uid" / "hello" / "0.log"
    written: list[str] = []
    ended = threading.Event()

    def write() -> None:
        with printed.open("a") as file:
            while not ended.wait(0.001):
                number = len(written)
                file.write(f"2026-01-01T00:00:00.{number:09}Z stdout F line {number}\n")
                file.flush()
                written.append(f"line {number}")

    def ship() -> None:
        while not ended.is_set():
            go_round(shipper)

    threads = [threading.Thread(target=each) for each in (write, ship)]
    for each in threads:
        each.start()
    try:
        for _ in range(TIMES):
            courier.taken.clear()
            with storing(folder, port, authority) as store:
                assert courier.taken.wait(60)
                store.kill()
                store.wait()
            known = courier.known
            found = Kept(kept).position
            assert (found.segment, found.offset) >= (known.segment, known.offset)
    finally:
        ended.set()
        for each in threads:
            each.join()
    with storing(folder, port, authority):
        while Kept(kept).position.offset < printed.stat().st_size:
            go_round(shipper)
    shipper.close()
    courier.close()
    assert [line.decode().split(" ", 3)[3] for line in Kept(kept).last()] == written


def go_round(shipper: Shipper) -> None:
    try:
        shipper.round()
    except Away:
        # Whoever asks an empty port without a pause meets itself there in the end.
        time.sleep(0.05)


def own_port() -> int:
    """Nobody is given it for a connection while the store is away."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in range(lowest - 1 - os.getpid() % 8_000, 1_024, -1):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("every port is taken")
