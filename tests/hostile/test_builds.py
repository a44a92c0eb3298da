"""Attacks by a Dockerfile, its commands and its folder on the machine that builds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from image_builds import ImageBuilds, processes_in_sandboxes, wait_until_seen
from pincompute.base.problem import Refused
from pincompute.base.registry_token import RegistryAccess, RegistryTokenSigner, repository_access
from pincompute.engine import proc
from pincompute.engine.images import registry, sandbox
from pincompute.engine.images.bases import write_bases
from pincompute.engine.system_commands import run
from pincompute.kube.image_registry import ImageRegistry

pytestmark = pytest.mark.cluster

MIB = 1 << 20

ATTACKS = """\
succeeded=
try() { if "$@" > /dev/null 2>&1; then echo "possible: $*"; succeeded=1; fi; }
roots="/proc/1/root /proc/$PPID/root"
read_host() { cat "$1" && return; for root in $roots; do cat "$root$1" && return; done; return 1; }
# The attempts themselves work.
try read_host /attack.sh
test -n "$succeeded" || exit 2
succeeded=
try read_host "$SECRET"
try read_host /root/.bashrc
try ls /proc/1/root/usr/local/bin
try ls /dev/vda /dev/loop0 /dev/kmsg /dev/mem
write_host() { for root in $roots; do echo x > "$root/usr/bin/planted" && return; done; return 1; }
try write_host
try sh -c 'echo 1 > /proc/sys/kernel/core_pattern'
try sh -c 'echo b > /proc/sysrq-trigger'
try sh -c 'mkdir /sys/fs/cgroup/memory/planted'
try mount -t tmpfs none /mnt
try mount -o bind / /mnt
try mount -o remount,rw /proc/sys
try mknod /disk b 254 0
try unshare -Ur true
try nsenter -t 1 -m true
try insmod /attack.sh
try chroot /proc/1/root true
try hostname elsewhere
try nc -w 1 127.0.0.1 "$PORT"
try nc -w 1 169.254.169.254 80
try nc -w 1 10.96.0.1 443
try wget -T 1 -O - http://1.1.1.1/
ip link | grep -v 'lo:' | grep -q '^[0-9]' && echo "possible: a network device" && succeeded=1
grep -q 'NoNewPrivs.*1' /proc/self/status || { echo "possible: setuid programs"; succeeded=1; }
grep -q '^ *0 *1879048192 *65536$' /proc/self/uid_map || { echo "possible: accounts of the host"; succeeded=1; }
sleep 1000 > /dev/null 2>&1 &
test -z "$succeeded"
"""


def test_commands_reach_nothing_of_the_machine(image_builds: ImageBuilds):
    secret = image_builds.folder / "secret"
    secret.write_text("a secret of the machine")
    port = registry.writes_address(image_builds.platform).rpartition(":")[2]
    lines = (
        "FROM busybox:test",
        "COPY attack.sh /",
        f"ENV SECRET={secret} PORT={port}",
        "RUN mkdir /mnt; sh /attack.sh",
    )
    result = image_builds.build("\n".join(lines), **{"attack.sh": ATTACKS})
    assert result.exit_code == 0, result.stderr
    image_builds.wait_until_removed()


@pytest.mark.parametrize(
    ("limit", "command", "message"),
    [
        ({"DISK_BYTES": 64 * MIB}, "dd if=/dev/zero of=/full bs=1M", "[DiskFull]"),
        (
            {"MEMORY_BYTES": 256 * MIB},
            "dd if=/dev/zero of=/dev/null bs=400M count=1",
            "a build may use 4 GiB of memory",
        ),
        ({"PIDS": 64}, "for i in $(seq 200); do sleep 1000 & done", "fork"),
        ({"OUTPUT_BYTES": MIB}, "yes", "MiB of output"),
        ({"TIME_LIMIT_S": 3.0}, "exec sleep 1000", "not finished after"),
    ],
)
def test_commands_are_bounded(
    image_builds: ImageBuilds, monkeypatch: pytest.MonkeyPatch, limit: dict[str, float], command: str, message: str
):
    for name, value in limit.items():
        monkeypatch.setattr(sandbox, name, value)
    result = image_builds.build(f"FROM busybox:test\nRUN {command}\n")
    assert result.exit_code == 1
    assert message in result.stderr, result.stderr
    image_builds.wait_until_removed()


def test_links_of_the_folder_lead_nowhere(image_builds: ImageBuilds):
    (image_builds.folder / "secret").write_text("a secret of the machine")
    context = image_builds.write("")
    (context / "file").symlink_to("../secret")
    (context / "folder").symlink_to(image_builds.folder)
    for line in ("COPY file /stolen", "COPY folder/secret /stolen", "COPY ../secret /stolen", "ADD folder/ /"):
        result = image_builds.build(f"FROM busybox:test\n{line}\nRUN test ! -e /stolen && test ! -e /secret\n")
        assert result.exit_code == 0 or "Dockerfile:2: " in result.stderr, result.stderr


def test_killed_build_leaves_no_process_and_the_next_one_removes_its_folder(image_builds: ImageBuilds):
    context = image_builds.write("FROM busybox:test\nRUN exec sleep 1000\n")
    command = [sys.executable, "-m", "pincompute", "image", "load", str(context), "--as", "killed:1"]
    with subprocess.Popen(command, env={**os.environ, **image_builds.environment}, stderr=subprocess.DEVNULL) as build:
        wait_until_seen(lambda: any("sleep" in proc.command_line(pid) for pid in processes_in_sandboxes()))
        build.send_signal(signal.SIGKILL)
    wait_until_seen(lambda: not processes_in_sandboxes())
    assert f"{image_builds.state}/cache/images/builds/" not in Path("/proc/mounts").read_text() + loop_devices()
    left = image_builds.folders[0]
    # A mount that outlived its command shows files which are not part of the build.
    kept, mounted = context / "Dockerfile", left / "mounted"
    mounted.mkdir()
    run(["mount", "--bind", str(context), str(mounted)])
    assert image_builds.build("FROM busybox:test\n").exit_code == 0
    image_builds.wait_until_removed()
    assert kept.exists()


async def test_image_of_another_project_is_no_base(image_builds: ImageBuilds):
    signer = RegistryTokenSigner(registry.token_key(image_builds.platform))

    async def authorize(access: RegistryAccess) -> str:
        allowed = access == repository_access("ads/web")
        return signer.sign("ads", (access,)) if allowed else signer.sign("ads", ())

    platform = image_builds.platform
    async with ImageRegistry(registry.writes_address(platform), platform.home.certificates, authorize) as images:
        with pytest.raises(Refused, match="HTTP 401"):
            await write_bases(images, image_builds.folder, {"busybox:test": 2}, "Dockerfile")
    assert list(image_builds.folder.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["oci-archive:/etc/shadow", "dir:/root", "docker-archive:/x.tar", "containers-storage:x"]
)
def test_base_is_no_path_of_the_machine(image_builds: ImageBuilds, name: str):
    result = image_builds.build(f"FROM {name}\n")
    assert result.exit_code == 1
    assert "Dockerfile:1: " in result.stderr
    image_builds.wait_until_removed()


def loop_devices() -> str:
    return subprocess.run(["losetup", "--list"], check=True, capture_output=True, text=True).stdout
