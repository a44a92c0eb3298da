"""Sidecar for StatsD: `python -m pincompute.agents.statsd.process UDP_PORT HTTP_PORT`.

It runs in pods and therefore imports as little as possible. The name of this module is part of runtime parts that are
already installed.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import suppress

from pincompute.agents.statsd.series import CONTENT_TYPE, SeriesStore

MAX_DATAGRAM_BYTES = 65_535
MAX_REQUEST_BYTES = 4096
REQUEST_TIMEOUT_S = 5.0
"""For a whole request: a client that sends one byte at a time must not keep Prometheus waiting."""
_LOOPBACK = "127.0.0.1"
_RECEIVE_BUFFER_BYTES = 2**20


class StatsdSidecar:
    """Receives datagrams on loopback, where only containers of its own pod can send any, and serves `/metrics`."""

    def __init__(self, udp_port: int, http_port: int, address: str = "") -> None:
        self.store = SeriesStore()
        self._lock = threading.Lock()
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        self._datagrams.bind((_LOOPBACK, udp_port))
        dualstack = not address and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dualstack else socket.AF_INET
        self._listener = socket.create_server((address, http_port), family=family, dualstack_ipv6=dualstack)

    @property
    def ports(self) -> tuple[int, int]:
        """Ports for datagrams and for HTTP, where the system has chosen them."""
        return self._datagrams.getsockname()[1], self._listener.getsockname()[1]

    def run(self) -> None:
        """Receives forever."""
        threading.Thread(target=self.serve_requests, daemon=True).start()
        self.receive_datagrams()

    def receive_datagrams(self) -> None:
        while True:
            try:
                datagram = self._datagrams.recv(MAX_DATAGRAM_BYTES)
            except OSError:
                # Closed.
                return
            with self._lock:
                self.store.apply_datagram(datagram)

    def serve_requests(self) -> None:
        """Answers one request at a time, each on a connection of its own."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            # An error is a client that has gone, or was too slow.
            with connection, suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        head = b""
        while b"\r\n\r\n" not in head:
            connection.settimeout(max(deadline - time.monotonic(), 0.001))
            received = connection.recv(MAX_REQUEST_BYTES)
            head += received
            if not received or len(head) > MAX_REQUEST_BYTES:
                return
        connection.settimeout(REQUEST_TIMEOUT_S)
        connection.sendall(self._response(head.split(b"\r\n", 1)[0].split(b" ")))

    def _response(self, request_line: list[bytes]) -> bytes:
        if request_line[:2] != [b"GET", b"/metrics"]:
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        with self._lock:
            body = self.store.render()
        fields = f"Content-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close"
        return f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode() + body

    def close(self) -> None:
        for each in (self._datagrams, self._listener):
            # A thread that waits for the socket is woken by a shutdown, and not by a close.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def main() -> None:
    udp_port, http_port = map(int, sys.argv[1:])
    StatsdSidecar(udp_port, http_port).run()


if __name__ == "__main__":
    main()
