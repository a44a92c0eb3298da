"""Obstacles to a real node, mounts, control groups, and kernel settings of a machine."""

from pathlib import Path

import pytest

from pincompute.engine.nodes import cgroups, kernel_settings
from pincompute.engine.nodes.cgroups import Hierarchy
from pincompute.engine.nodes.machine import Machine, obstacles
from pincompute.engine.nodes.mounts import Mount, mount_points_under, parse_mountinfo

ABLE = Machine(
    system="Linux", root=True, controllers=cgroups.REQUIRED_CONTROLLERS, missing_packages=(), failed_trials={}
)


def test_capable_machine_has_no_obstacles() -> None:
    assert obstacles(ABLE) == ()


def test_reports_all_obstacles() -> None:
    machine = ABLE._replace(
        root=False,
        controllers=frozenset({"cpu", "memory"}),
        missing_packages=("containerd", "runc"),
        failed_trials={"a bridge": "Operation not supported"},
    )
    root, groups, packages, bridge = obstacles(machine)
    assert root.next == "sudo pin up"
    assert groups.what.endswith("cpuset, pids")
    assert packages.what == "Debian packages not installed: containerd, runc"
    assert packages.next == "pin up --install"
    assert (bridge.what, bridge.note) == ("cannot create a bridge on this machine", "Operation not supported")


def test_other_systems_have_one_obstacle() -> None:
    (only,) = obstacles(ABLE._replace(system="Darwin", root=False))
    assert only.what == "containers need Linux; this machine runs Darwin"


MOUNTS = parse_mountinfo(
    "22 28 0:21 / /proc rw,relatime - proc proc rw\n"
    "30 28 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:10 - cgroup cgroup rw,memory\n"
    "31 28 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 28 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "40 28 8:1 /a /state/with\\040space rw shared:1 master:2 - ext4 /dev/vda rw\n"
    "41 40 0:30 / /state/with\\040space/pods tmpfs - tmpfs tmpfs rw\n"
    "42 28 0:31 / /state/with\\040spaces rw - tmpfs tmpfs rw\n"
)


def test_mount_is_parsed_with_options_and_escapes() -> None:
    assert MOUNTS[1] == Mount(Path("/sys/fs/cgroup/memory"), "cgroup", frozenset({"rw", "memory"}))
    assert MOUNTS[4].point == Path("/state/with space")


def test_mounts_under_folder_are_listed_latest_first() -> None:
    assert mount_points_under(Path("/state/with space"), MOUNTS) == [
        Path("/state/with space/pods"),
        Path("/state/with space"),
    ]


def test_finds_all_cgroup_hierarchies() -> None:
    assert cgroups.hierarchies(MOUNTS) == [
        Hierarchy(Path("/sys/fs/cgroup/memory"), frozenset({"memory"})),
        Hierarchy(Path("/sys/fs/cgroup/cpu,cpuacct"), frozenset({"cpu", "cpuacct"})),
        Hierarchy(Path("/sys/fs/cgroup/unified"), frozenset(), unified=True),
    ]


def test_v2_controllers_are_enabled_for_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    monkeypatch.setattr(cgroups, "mounts", lambda: [Mount(tmp_path, "cgroup2", frozenset())])
    cgroups.create("pin7")
    assert (tmp_path / "pin7" / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert cgroups.exists("pin7")


def test_v1_cpuset_is_copied_from_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpuset.mems").write_text("0\n")
    monkeypatch.setattr(cgroups, "mounts", lambda: [Mount(tmp_path, "cgroup", frozenset({"rw", "cpuset"}))])
    cgroups.create("pin7")
    assert (tmp_path / "pin7" / "cpuset.cpus").read_text() == "0-1\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    for name in kernel_settings.KUBELET_SETTINGS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("7")
    return tmp_path


def test_changed_kernel_settings_are_restored(settings: Path) -> None:
    saved = settings / "saved.json"
    kernel_settings.save_settings(saved, settings)
    _write_kubelet_settings(settings)
    kernel_settings.save_settings(saved, settings)
    kernel_settings.restore_settings(saved, settings)
    assert {(settings / name).read_text() for name in kernel_settings.KUBELET_SETTINGS} == {"7"}
    assert not saved.exists()


def test_second_platform_restores_nothing(settings: Path) -> None:
    _write_kubelet_settings(settings)
    kernel_settings.save_settings(settings / "second.json", settings)
    kernel_settings.restore_settings(settings / "second.json", settings)
    assert {
        name: int((settings / name).read_text()) for name in kernel_settings.KUBELET_SETTINGS
    } == kernel_settings.KUBELET_SETTINGS


def test_settings_changed_by_others_are_kept(settings: Path) -> None:
    kernel_settings.save_settings(settings / "saved.json", settings)
    _write_kubelet_settings(settings)
    (settings / "kernel/panic").write_text("30")
    kernel_settings.restore_settings(settings / "saved.json", settings)
    assert (settings / "kernel/panic").read_text() == "30"


def _write_kubelet_settings(settings: Path) -> None:
    for name, value in kernel_settings.KUBELET_SETTINGS.items():
        (settings / name).write_text(str(value))
