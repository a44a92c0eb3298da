"""The log store is killed repeatedly: acknowledged lines are kept, and no line is stored twice."""

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
from pincompute.agents.logs.follower import Follower
from pincompute.agents.logs.position import Batch, Position, Stream
from pincompute.agents.logs.shipper import Shipper
from pincompute.agents.logs.store_client import StoreClient
from pincompute.agents.logs.stream_file import StreamFile
from pincompute.agents.store_connection import FileCredentials, StoreUnavailable
from pincompute.base.certificate_authority import Authority

STREAM = Stream("me", "hello-0", "uid", "hello")
KILLS = 5


class RecordingClient(StoreClient):
    """Remembers the last position that the store has acknowledged."""

    acknowledged = Position()
    responded = threading.Event()

    def send_batch(self, batch: Batch) -> tuple[bool, Position]:
        stored, position = super().send_batch(batch)
        self.acknowledged = position
        self.responded.set()
        return stored, position


@contextmanager
def store_process(folder: Path, port: int, authority: Authority) -> Generator[subprocess.Popen[bytes]]:
    words = (sys.executable, str(Path(__file__).with_name("store_process.py")), folder, str(port), authority.folder)
    with subprocess.Popen(words) as process:
        try:
            yield process
        finally:
            process.kill()


def test_acknowledged_lines_survive_kills_and_are_stored_once(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certificates")
    authority.establish()
    authority.issue("store", hosts=("127.0.0.1",))
    authority.issue("shipper")
    printed, folder, port = tmp_path / "0.log", tmp_path / "stored_path", reserved_port()
    credentials = FileCredentials(authority.bundle, authority.certificate("shipper"), authority.key("shipper"))
    client = RecordingClient(f"https://127.0.0.1:{port}", credentials)
    make = partial(Follower, STREAM, partial(node.rotated_files, printed), node.complete_lines, inodes=False)
    shipper = Shipper(client, lambda: {STREAM: make}, 0)
    stored_path = folder / "me" / "hello" / "hello-0_uid" / "hello" / "0.log"
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
            ship_round(shipper)

    threads = [threading.Thread(target=each) for each in (write, ship)]
    for each in threads:
        each.start()
    try:
        for _ in range(KILLS):
            client.responded.clear()
            with store_process(folder, port, authority) as store:
                assert client.responded.wait(60)
                store.kill()
                store.wait()
            acknowledged = client.acknowledged
            found = StreamFile(stored_path).position
            assert (found.segment, found.offset) >= (acknowledged.segment, acknowledged.offset)
    finally:
        ended.set()
        for each in threads:
            each.join()
    with store_process(folder, port, authority):
        while StreamFile(stored_path).position.offset < printed.stat().st_size:
            ship_round(shipper)
    shipper.close()
    client.close()
    assert [line.decode().split(" ", 3)[3] for line in StreamFile(stored_path).tail()] == written


def ship_round(shipper: Shipper) -> None:
    try:
        shipper.ship_round()
    except StoreUnavailable:
        # Connecting to a closed loopback port without a pause can end in a connection to itself.
        time.sleep(0.05)


def reserved_port() -> int:
    """A free port below the range of outgoing connections, so that none takes it while the store is down."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in range(lowest - 1 - os.getpid() % 8_000, 1_024, -1):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("every port is taken")
