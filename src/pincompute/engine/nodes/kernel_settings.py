"""Saves the kernel settings that a kubelet changes for the whole machine, and restores them afterwards."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pincompute.base.secure_files import write_private_file

_SETTINGS = Path("/proc/sys")

KUBELET_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""Settings that every kubelet writes at its start."""


def save_settings(file: Path, settings: Path = _SETTINGS) -> None:
    """Save the settings that the kubelet will change.

    Settings that another platform's kubelet has changed already are restored by that platform.
    """
    if file.exists():
        return
    now = {name: int((settings / name).read_text()) for name in KUBELET_SETTINGS}
    changed = {name: value for name, value in now.items() if value != KUBELET_SETTINGS[name]}
    write_private_file(file, msgspec.json.encode(changed))


def restore_settings(file: Path, settings: Path = _SETTINGS) -> None:
    """Restore saved settings, except those that were changed by others since."""
    try:
        before = msgspec.json.decode(file.read_bytes(), type=dict[str, int])
    except (FileNotFoundError, msgspec.DecodeError):
        return
    for name, value in before.items():
        if int((settings / name).read_text()) == KUBELET_SETTINGS[name]:
            (settings / name).write_text(str(value))
    file.unlink()
