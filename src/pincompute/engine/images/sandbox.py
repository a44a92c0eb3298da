"""Sandbox of an image build: a container of runc without network, on a disk of its own.

buildah runs in it as root of a user namespace. It sees the programs of this machine, a copy of the folder and the base
images, and writes one file. Disk, mounts and processes belong to the process that started them: the kernel removes them
with it, however it ends.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pincompute.engine.nodes import cgroups
from pincompute.engine.system_commands import COMMAND_ENVIRONMENT

FIRST_ID = 0x70000000
"""User and group of this machine that are root in the sandbox. No account of this machine has one of its ids."""
ID_COUNT = 65536
MEMORY_BYTES = 4 << 30
DISK_BYTES = 10 << 30
CPUS = 2
PIDS = 1024
OUTPUT_BYTES = 64 << 20
TIME_LIMIT_S = 1800.0

ENDS_WITH_PARENT = (
    "setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
)  # fmt: skip
"""Runs a program that ends with its parent: the kernel kills the child, with it the whole pid namespace, and removes
the mounts."""

BASES = "/bases"
"""Folder of the base images in the sandbox."""
CONTEXT = "/build/context"
DOCKERFILE = "/build/Dockerfile"
IMAGE = "/build/out/image.tar"

_CHUNK_BYTES = 1 << 16
_DISK = "/boot"
"""Mount point of the disk. In the mount namespace of the build, the folder of this machine is hidden."""

# Capabilities in the user namespace: what buildah needs to mount layers, and what it passes on to commands.
_CAPABILITIES = (
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD",
    "CAP_NET_BIND_SERVICE", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_ADMIN", "CAP_SYS_CHROOT",
)  # fmt: skip
_NAMESPACES = ("user", "mount", "pid", "ipc", "uts", "network", "cgroup")

# Arguments: folder of the build, context, size of the disk, id of root, control group. The image is read without
# following a link, after every process of the sandbox has ended.
_SCRIPT = f"""
set -eu
folder=$1 context=$2 size=$3 id=$4 group=$5
truncate -s "$size" "$folder/disk"
mkfs.ext4 -q -m 0 -O ^has_journal -E lazy_itable_init=1,nodiscard "$folder/disk"
mount -o loop "$folder/disk" {_DISK}
rm "$folder/disk"
cd {_DISK}
mkdir -p root/usr root/proc root/dev root/sys root/run root/var root/etc/containers root/build root{BASES}
ln -s usr/bin usr/sbin usr/lib usr/lib64 root
ln -s /build/tmp root/tmp
ln -s /build/tmp root/var/tmp
echo root:x:0:0:root:/build/home:/bin/sh > root/etc/passwd
echo root:x:0: > root/etc/group
echo '{{"default": [{{"type": "insecureAcceptAnything"}}]}}' > root/etc/containers/policy.json
touch root/etc/hosts root/etc/resolv.conf root/etc/containers/registries.conf
mkdir work work/context work/home work/out work/store work/tmp
cp -RP --preserve=mode,links "$context/." work/context
cp "$folder/Dockerfile" work/Dockerfile
chown -hR "$id:$id" work
mount --bind -o ro,nosuid,nodev /usr root/usr
mount -t tmpfs -o ro,size=0 none root/usr/local
mount --bind -o ro,nosuid,nodev "$folder/bases" root{BASES}
mount --bind work root/build
code=0
runc --root {_DISK}/runc run --bundle "$folder" "$group" || code=$?
if [ -f work/out/image.tar ] && [ $code = 0 ]; then
  dd if=work/out/image.tar of="$folder/image.tar" iflag=nofollow bs=1M status=none
fi
exit $code
"""


class Ended(NamedTuple):
    """How a build in the sandbox ended."""

    code: int
    timed_out: bool = False
    output_exceeded: bool = False


async def run(folder: Path, context: Path, arguments: Sequence[str], on_output: Callable[[bytes], None]) -> Ended:
    """Run a program in the sandbox. Its file IMAGE becomes `image.tar` in the folder."""
    group = group_name(folder)
    (folder / "bases").mkdir(exist_ok=True)
    (folder / "config.json").write_bytes(msgspec.json.encode(container_config(arguments, group)))
    process = await asyncio.create_subprocess_exec(
        *command(folder, context, disk_bytes(folder), group), env=COMMAND_ENVIRONMENT, start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(TIME_LIMIT_S):
            return await _await_end(process, process.stdout, on_output)
    except TimeoutError:
        return Ended(-1, timed_out=True)
    finally:
        if process.returncode is None:
            process.kill()
        # asyncio notices the end of a process after that of its output only, which it does not read while it is full.
        while await process.stdout.read(_CHUNK_BYTES):
            continue
        await process.wait()
        remove(folder)


async def _await_end(
    process: asyncio.subprocess.Process, output: asyncio.StreamReader, on_output: Callable[[bytes], None]
) -> Ended:
    size = 0
    while chunk := await output.read(_CHUNK_BYTES):
        size += len(chunk)
        on_output(chunk)
        if size > OUTPUT_BYTES:
            return Ended(-1, output_exceeded=True)
    return Ended(await process.wait())


def remove(folder: Path) -> None:
    """Kill what is left of a build, and remove its control group."""
    cgroups.kill_and_remove(group_name(folder))


def group_name(folder: Path) -> str:
    return f"pincompute-build-{folder.name}"


def disk_bytes(folder: Path) -> int:
    """Size of the disk: it never fills that of this machine."""
    return min(DISK_BYTES, shutil.disk_usage(folder).free // 2)


def command(folder: Path, context: Path, size: int, group: str) -> list[str]:
    given = (str(folder), str(context), str(size), str(FIRST_ID), group)
    return [*ENDS_WITH_PARENT, "sh", "-c", _SCRIPT, "sandbox", *given]


def container_config(arguments: Sequence[str], group: str) -> dict[str, Any]:
    """Configuration of runc."""
    ids = [{"containerID": 0, "hostID": FIRST_ID, "size": ID_COUNT}]
    return {
        "ociVersion": "1.0.2",
        "root": {"path": f"{_DISK}/root", "readonly": True},
        "hostname": "build",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(arguments),
            "env": ["PATH=/usr/sbin:/usr/bin", "HOME=/build/home", "TMPDIR=/build/tmp", "LC_ALL=C"],
            "cwd": "/build",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES),
            "noNewPrivileges": True,
            "rlimits": [{"type": "RLIMIT_CORE", "hard": 0, "soft": 0}],
            # Without CAP_SYS_RESOURCE a lower value than that of this process is refused.
            "oomScoreAdj": max(500, int(Path("/proc/self/oom_score_adj").read_text())),
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=1m"]},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
        ],
        "linux": {
            "uidMappings": ids,
            "gidMappings": ids,
            "namespaces": [{"type": each} for each in _NAMESPACES],
            "cgroupsPath": f"/{group}",
            "resources": {
                "memory": {"limit": MEMORY_BYTES},
                "cpu": {"period": 100_000, "quota": 100_000 * CPUS},
                "pids": {"limit": PIDS},
            },
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/acpi", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    }
