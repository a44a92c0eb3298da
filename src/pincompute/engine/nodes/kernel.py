"""The kernel's settings that a kubelet changes for the whole machine: remembered before, put back after."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pincompute.base.certificates import write_private

_SETTINGS = Path("/proc/sys")

WISHED = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""What every kubelet sets, asked or not."""


def remember(file: Path, settings: Path = _SETTINGS) -> None:
    """Only what will be changed: where another platform's kubelet has been before, that one puts it back."""
    if file.exists():
        return
    now = {name: int((settings / name).read_text()) for name in WISHED}
    changed = {name: value for name, value in now.items() if value != WISHED[name]}
    write_private(file, msgspec.json.encode(changed))


def put_back(file: Path, settings: Path = _SETTINGS) -> None:
    """What has changed again since is somebody else's will, and stays."""
    try:
        before = msgspec.json.decode(file.read_bytes(), type=dict[str, int])
    except (FileNotFoundError, msgspec.DecodeError):
        return
    for name, value in before.items():
        if int((settings / name).read_text()) == WISHED[name]:
            (settings / name).write_text(str(value))
    file.unlink()
