"""Paths of a container lead nowhere else, and helpers keep no rights that the container's user has not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pincompute.agents.debug.sandbox import open_in, read_only_overlay

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root")


def content_of(root: Path, path: str) -> str:
    opened = os.open(root, os.O_PATH)
    try:
        with os.fdopen(open_in(opened, path, os.O_RDONLY)) as file:
            return file.read()
    finally:
        os.close(opened)


def test_paths_stay_in_the_root(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "secret").write_text("inside")
    (root / "etc/absolute").symlink_to("/secret")
    (root / "etc/climbing").symlink_to("../../../../secret")
    for path in ("secret", "/secret", "../secret", "/../../secret", "etc/absolute", "etc/climbing", "etc/../secret"):
        assert content_of(root, path) == "inside", path


def test_magic_links_are_refused() -> None:
    with pytest.raises(OSError, match=r"symbolic links|denied|cross-device"):
        content_of(Path("/proc"), "self/root/etc/passwd")


def test_ended_containers_are_mounted_without_a_place_to_write() -> None:
    options = ["index=off", "workdir=/s/2/work", "upperdir=/s/2/fs", "lowerdir=/s/1/fs:/s/0/fs"]
    assert read_only_overlay(options) == "lowerdir=/s/2/fs:/s/1/fs:/s/0/fs"


@as_root
@pytest.mark.parametrize(
    ("uid", "capabilities", "readable"), [(1000, "[]", False), (0, "[]", False), (0, "['CAP_DAC_OVERRIDE']", True)]
)
def test_a_helper_reads_only_what_the_user_may(tmp_path: Path, uid: int, capabilities: str, readable: bool) -> None:
    file = tmp_path / "private"
    file.write_text("private")
    os.chown(file, 4711, 4711)
    file.chmod(0o600)
    code = f"""
import os
from pincompute.agents.debug.sandbox import Identity, assume
assume(Identity({uid}, {uid}, [], {capabilities}))
assert os.getresuid() == ({uid},) * 3 and os.getgroups() == []
effective = [line for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm"))]
print([int(line.split()[1], 16) for line in effective])
try:
    os.setresuid(0, 0, 0)
    assert {uid} == 0
except PermissionError:
    pass
print(open({str(file)!r}).read())
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert ("private" in done.stdout) is readable, done.stderr
    assert done.stdout.startswith("[2, 2]" if readable else "[0, 0]"), done.stderr
    if not readable:
        assert "PermissionError" in done.stderr
