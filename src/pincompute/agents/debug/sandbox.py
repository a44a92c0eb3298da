"""Confines a helper to one container: its root, the identity of its user, and no more rights than that user has."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

MAX_MEMORY_BYTES = 512 << 20
MAX_OPEN_FILES = 600
_SYS_OPENAT2, _SYS_CAPSET = 437, {"x86_64": 126, "aarch64": 91}
_RESOLVE_NO_MAGICLINKS, _RESOLVE_IN_ROOT = 0x02, 0x10
_CLONE_NEWNS, _MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = (
    0x20000, 1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
_MNT_DETACH = 2
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_FILE_CAPABILITIES = {"CAP_CHOWN": 0, "CAP_DAC_OVERRIDE": 1, "CAP_DAC_READ_SEARCH": 2, "CAP_FOWNER": 3, "CAP_FSETID": 4}
"""All others of the container's are given up, too: they are of no use for files."""
_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):  # noqa: N818  (named by what happened)
    """The reason why a helper cannot do its task, for the user."""


class Identity(NamedTuple):
    """User, groups and capabilities of the container."""

    uid: int
    gid: int
    groups: list[int]
    capabilities: list[str]


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def read_task() -> dict[str, Any]:
    """The task is the first line of the input. It is read byte by byte, so that the rest stays in the pipe."""
    line = bytearray()
    while (byte := os.read(0, 1)) not in {b"", b"\n"}:
        line += byte
    task: dict[str, Any] = json.loads(line)
    return task


def fail(message: str) -> NoReturn:
    """Ends the helper with a message for the user."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
    os._exit(1)


def open_container_root(pid: int, container: str) -> int:
    """The root of a running container, as a descriptor."""
    try:
        # All is read by this descriptor, which belongs to one process only, also if another gets its number.
        process = os.open(f"/proc/{pid}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        root = os.open("root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=process)
        with os.fdopen(os.open("cgroup", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)) as file:
            belongs = container in file.read()
    except OSError as error:
        raise Failed(f"the container has ended: {error.strerror}") from None
    if not belongs:
        raise Failed("the container has ended")
    return root


def mount_ended_root(mounts: list[dict[str, Any]]) -> int:
    """The root of an ended container, read-only, in a mount namespace that ends with this process."""
    (mount,) = mounts
    folder = tempfile.mkdtemp(prefix="pin-debug-")
    try:
        _checked(_libc.unshare(_CLONE_NEWNS))
        _checked(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
        _mount_read_only(mount["type"], mount["source"], mount["options"], folder)
        root = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        # The mount lives on with the descriptor, and is at no path any more.
        _checked(_libc.umount2(folder.encode(), _MNT_DETACH))
    except OSError as error:
        raise Failed(f"the files of the ended container cannot be read: {error.strerror}") from None
    finally:
        Path(folder).rmdir()
    return root


def _mount_read_only(type_: str, source: str, options: list[str], folder: str) -> None:
    flags = _MS_RDONLY | _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    if type_ == "overlay":
        _checked(_libc.mount(b"overlay", folder.encode(), b"overlay", flags, read_only_overlay(options).encode()))
        return
    # A snapshotter without overlays has a plain folder for each container.
    _checked(_libc.mount(source.encode(), folder.encode(), None, _MS_BIND, None))
    _checked(_libc.mount(None, folder.encode(), None, _MS_BIND | _MS_REMOUNT | flags, None))


def read_only_overlay(options: list[str]) -> str:
    """The options of an overlay without an upper folder: what was written lies on top, and nothing can be."""
    values = {name: value for name, _, value in (each.partition("=") for each in options)}
    layers = [values["upperdir"], values["lowerdir"]] if "upperdir" in values else [values["lowerdir"]]
    return f"lowerdir={':'.join(layers)}"


def assume(identity: Identity) -> None:
    """Gives up root, for good."""
    for limit, value in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES),
    ):
        resource.setrlimit(limit, (value, value))
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    os.umask(0o022)
    os.setgroups(identity.groups)
    os.setresgid(identity.gid, identity.gid, identity.gid)
    # A user other than root loses all capabilities by this; root keeps those that its container has.
    os.setresuid(identity.uid, identity.uid, identity.uid)
    _limit_capabilities(set(identity.capabilities) if identity.uid == 0 else set())


def _limit_capabilities(names: set[str]) -> None:
    mask = sum(1 << number for name, number in _FILE_CAPABILITIES.items() if name in names)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    # Effective, permitted and inheritable, of the first 32 capabilities and then of the others.
    data = (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0)
    _checked(_libc.syscall(_SYS_CAPSET[os.uname().machine], header, data))


def open_in(root: int, path: str, flags: int) -> int:
    """Opens a path as the container sees it: neither `..` nor links lead out of its root."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    encoded = os.fsencode(path) or b"/"
    descriptor = _libc.syscall(_SYS_OPENAT2, root, encoded, ctypes.byref(how), ctypes.sizeof(how))
    return int(_checked(descriptor, path))


def _checked(result: int, path: str = "") -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path or None)
    return result
