"""A node's network in miniature: network namespaces of a node, its machine and some pods, wired like `ptp` does."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

RANGE = "10.99.0.0/24"
HOST = "10.98.0.1"
"""The machine's address in the network of the node."""
_GATEWAY = "10.99.0.1"
_NEW_NETWORK = 0x40000000
_DROPPED_AFTER_S = 0.15
_libc = ctypes.CDLL(None, use_errno=True)


class NetworkNamespace:
    """A network namespace, and a thread inside, which makes its sockets. It exists as long as its process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo ready; read end"],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        self._thread = ThreadPoolExecutor(1, initializer=self._enter)

    @property
    def file(self) -> Path:
        return Path(f"/proc/{self._process.pid}/ns/net")

    def _enter(self) -> None:
        descriptor = os.open(self.file, os.O_RDONLY)
        try:
            if _libc.setns(descriptor, _NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(descriptor)

    def run(self, *command: str, stdin: str = "") -> str:
        line = ["nsenter", f"--net={self.file}", *command]
        done = subprocess.run(line, input=stdin, text=True, check=False, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def socket(self, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
        return self._thread.submit(socket.socket, socket.AF_INET, kind).result()

    def close(self) -> None:
        self._thread.shutdown()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


class PodNetwork(NamedTuple):
    node: NetworkNamespace
    host: NetworkNamespace
    pods: dict[str, NetworkNamespace]
    """By address."""
    listeners: dict[tuple[str, int], socket.socket]
    """By address and port."""

    def load(self, rules: str) -> None:
        self.node.run("nft", "-f", "-", stdin=rules)

    def result_of(self, sender: str, receiver: str, port: int) -> str:
        """How a new connection ends: `open`, `rejected` or `dropped`. The sender is a pod, or the machine."""
        namespace = self.host if sender == HOST else self.pods[sender]
        with closing(namespace.socket()) as client:
            client.settimeout(_DROPPED_AFTER_S)
            try:
                client.connect((receiver, port))
            except TimeoutError:
                return "dropped"
            except ConnectionRefusedError:
                return "rejected"
            if listener := self.listeners.get((receiver, port)):
                # Otherwise its queue fills up, and further connections time out.
                listener.accept()[0].close()
        return "open"


@contextmanager
def pod_network_of(addresses: list[str], ports: list[int]) -> Generator[PodNetwork]:
    """Every pod and the machine listen on all ports."""
    with ExitStack() as stack:
        node, host, *pods = (stack.enter_context(closing(NetworkNamespace())) for _ in range(len(addresses) + 2))
        _connect_machine(node, host)
        for number, (address, pod) in enumerate(zip(addresses, pods, strict=True)):
            _connect_pod(node, pod, f"pod{number}", address)
        by_address = dict(zip(addresses, pods, strict=True))
        listeners = {
            (address, port): stack.enter_context(closing(namespace.socket()))
            for address, namespace in {HOST: host, **by_address}.items()
            for port in ports
        }
        for address, listener in listeners.items():
            listener.bind(address)
            listener.listen()
        yield PodNetwork(node, host, by_address, listeners)


@pytest.fixture
def pod_network(request: pytest.FixtureRequest) -> Iterator[PodNetwork]:
    """With the pods and ports that the test module names as ADDRESSES and PORTS."""
    with pod_network_of(request.module.ADDRESSES, request.module.PORTS) as network:
        yield network


def _connect_machine(node: NetworkNamespace, host: NetworkNamespace) -> None:
    pid = host.file.parts[2]
    _ip(node, f"link add uplink type veth peer name eth0 netns {pid}", "address add 10.98.0.2/24 dev uplink",
        "link set uplink up", "link set lo up", f"route add default via {HOST}")  # fmt: skip
    node.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    _ip(host, "link set lo up", f"address add {HOST}/24 dev eth0", "link set eth0 up",
        f"route add {RANGE} via 10.98.0.2")  # fmt: skip


def _connect_pod(node: NetworkNamespace, pod: NetworkNamespace, device: str, address: str) -> None:
    pid = pod.file.parts[2]
    _ip(node, f"link add {device} type veth peer name eth0 netns {pid}", f"address add {_GATEWAY}/32 dev {device}",
        f"link set {device} up", f"route add {address}/32 dev {device}")  # fmt: skip
    _ip(pod, "link set lo up", f"address add {address}/32 dev eth0", "link set eth0 up",
        f"route add {_GATEWAY} dev eth0", f"route add default via {_GATEWAY}")  # fmt: skip


def _ip(namespace: NetworkNamespace, *commands: str) -> None:
    namespace.run("ip", "-batch", "-", stdin="\n".join(commands))
