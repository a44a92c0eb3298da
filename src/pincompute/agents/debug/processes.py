"""Helper that describes the processes and sockets of a container: `python -m pincompute.agents.debug.processes`.

It reads /proc of the node, in a process of its own: thousands of processes must not delay the agent.
"""

from __future__ import annotations

import ipaddress
import json
import os
import resource
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from pincompute.agents.debug.sandbox import MAX_MEMORY_BYTES, read_task

MAX_PROCESSES = 500
MAX_SOCKETS = 500
MAX_SOCKET_BYTES = 8 << 20
"""Of each table of sockets; a line has about 150 bytes."""
MAX_DESCRIPTORS = 20_000
"""Open files that are looked at, of all processes together, to find the owners of sockets."""
MAX_COMMAND_BYTES = 4096
_PAGE_BYTES, _TICKS_PER_S = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
_TCP_STATES = (
    "", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK",
    "LISTEN", "CLOSING",
)  # fmt: skip


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    task = read_task()
    json.dump(report(task["pids"], task["container"], task["pid"]), sys.stdout)


def report(pids: list[int], container: str, first: int) -> dict[str, Any]:
    """Processes of the container, the busiest first, and sockets of its network, those that listen first."""
    uptime_s = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    found = [each for each in (_process(pid, container, uptime_s) for pid in pids) if each]
    found.sort(key=lambda each: (-each["cpuSeconds"], each["pid"]))
    shown = found[:MAX_PROCESSES]
    sockets = list(_sockets(first, container, _socket_owners(shown, container)))
    sockets.sort(key=lambda each: (each["state"] != "LISTEN", each["protocol"], each["local"], each["remote"]))
    for each in shown:
        del each["nodePid"]
    return {
        "processes": shown, "processCount": len(found),
        "sockets": sockets[:MAX_SOCKETS], "socketCount": len(sockets),
    }  # fmt: skip


@contextmanager
def _opened(pid: int, container: str) -> Iterator[int]:
    """Opens the folder of a process. It belongs to this one only, also if another process gets its number.

    Raises OSError if the process has ended, or is of another container.
    """
    folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if container not in _read(folder, "cgroup"):
            raise ProcessLookupError
        yield folder
    finally:
        os.close(folder)


def _process(pid: int, container: str, uptime_s: float) -> dict[str, Any] | None:
    """One process; None if it has ended."""
    try:
        with _opened(pid, container) as folder:
            return _describe(pid, folder, uptime_s)
    except (OSError, IndexError, KeyError, ValueError):
        return None


def _describe(pid: int, folder: int, uptime_s: float) -> dict[str, Any]:
    # The name of the program stands in parentheses and may contain any character.
    fields = _read(folder, "stat").rpartition(")")[2].split()
    status = dict(line.split(":\t", 1) for line in _read(folder, "status").splitlines() if ":\t" in line)
    command = _read(folder, "cmdline", MAX_COMMAND_BYTES).replace("\0", " ").strip() or f"[{status['Name']}]"
    return {
        "nodePid": pid,
        # As the innermost namespace numbers it.
        "pid": int(status["NSpid"].split()[-1]),
        "user": int(status["Uid"].split()[1]),
        "state": fields[0],
        "cpuSeconds": (int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        "memoryBytes": int(fields[21]) * _PAGE_BYTES,
        "ageSeconds": max(0, int(uptime_s - int(fields[19]) / _TICKS_PER_S)),
        "command": command,
    }


def _read(folder: int, name: str, max_bytes: int = 1 << 16) -> str:
    with os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
        return file.read(max_bytes).decode(errors="replace")


def _socket_owners(processes: Iterable[dict[str, Any]], container: str) -> dict[str, int]:
    """Processes by the inodes of their open sockets."""
    owners: dict[str, int] = {}
    targets = ((process["pid"], target) for process in processes for target in _open_files(process, container))
    for pid, target in islice(targets, MAX_DESCRIPTORS):
        if target.startswith("socket:["):
            owners.setdefault(target[len("socket:[") : -1], pid)
    return owners


def _open_files(process: dict[str, Any], container: str) -> Iterator[str]:
    with suppress(OSError), _opened(process["nodePid"], container) as folder:
        files = os.open("fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            with os.scandir(files) as entries:
                for entry in entries:
                    with suppress(OSError):
                        yield os.readlink(entry.name, dir_fd=files)
        finally:
            os.close(files)


def _sockets(first: int, container: str, owners: dict[str, int]) -> Iterator[dict[str, Any]]:
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError), _opened(first, container) as folder:
            lines = _read(folder, f"net/{protocol}", MAX_SOCKET_BYTES).splitlines()[1:]
            for line in lines:
                with suppress(IndexError, ValueError):
                    # The last line may be cut off.
                    yield parse_socket(protocol, line, owners)


def parse_socket(protocol: str, line: str, owners: dict[str, int]) -> dict[str, Any]:
    """One line of /proc/PID/net/tcp, see proc_pid_net(5)."""
    fields = line.split()
    number = int(fields[3], 16)
    tcp = protocol.startswith("tcp")
    state = _TCP_STATES[number] if tcp and number < len(_TCP_STATES) else "" if not tcp else str(number)
    return {
        "protocol": protocol, "state": state, "local": _socket_address(fields[1]), "remote": _socket_address(fields[2]),
        "pid": owners.get(fields[9], 0),
    }  # fmt: skip


def _socket_address(text: str) -> str:
    """The kernel writes addresses as numbers of 32 bits in the order of the machine's bytes."""
    address, _, port = text.partition(":")
    raw = bytes.fromhex(address)
    words = (raw[start : start + 4] for start in range(0, len(raw), 4))
    ordered = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    ip = ipaddress.ip_address(ordered)
    shown = f"[{ip}]" if ip.version == 6 else str(ip)
    return f"{shown}:{int(port, 16) or '*'}"


if __name__ == "__main__":
    main()
