"""What a machine lacks for a real node, what is mounted on it, and the settings that are put back."""

from pathlib import Path

import pytest

from pincompute.engine.nodes import cgroups, kernel
from pincompute.engine.nodes.cgroups import Hierarchy
from pincompute.engine.nodes.machine import Machine, obstacles
from pincompute.engine.nodes.mounts import Mount, beneath, parse

ABLE = Machine(system="Linux", root=True, controllers=cgroups.NEEDED, packages=(), failures={})


def test_an_able_machine_has_no_obstacles() -> None:
    assert obstacles(ABLE) == ()


def test_all_obstacles_are_told_at_once_each_with_what_it_lacks() -> None:
    machine = ABLE._replace(
        root=False,
        controllers=frozenset({"cpu", "memory"}),
        packages=("containerd", "runc"),
        failures={"a bridge": "Operation not supported"},
    )
    root, groups, packages, bridge = obstacles(machine)
    assert root.next == "sudo pin up"
    assert groups.what.endswith("cpuset, pids")
    assert packages.what == "not on this machine: containerd, runc"
    assert packages.next == "pin up --install"
    assert (bridge.what, bridge.note) == ("this machine does not let us make a bridge", "Operation not supported")


def test_elsewhere_than_on_linux_nothing_else_matters() -> None:
    (only,) = obstacles(ABLE._replace(system="Darwin", root=False))
    assert only.what == "containers need Linux, and this is Darwin"


MOUNTS = parse(
    "22 28 0:21 / /proc rw,relatime - proc proc rw\n"
    "30 28 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:10 - cgroup cgroup rw,memory\n"
    "31 28 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 28 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "40 28 8:1 /a /state/with\\040space rw shared:1 master:2 - ext4 /dev/vda rw\n"
    "41 40 0:30 / /state/with\\040space/pods tmpfs - tmpfs tmpfs rw\n"
    "42 28 0:31 / /state/with\\040spaces rw - tmpfs tmpfs rw\n"
)


def test_a_mount_is_read_with_its_options_and_odd_letters() -> None:
    assert MOUNTS[1] == Mount(Path("/sys/fs/cgroup/memory"), "cgroup", frozenset({"rw", "memory"}))
    assert MOUNTS[4].point == Path("/state/with space")


def test_mounts_of_a_folder_are_let_go_the_latest_first_and_a_neighbours_stay() -> None:
    assert beneath(Path("/state/with space"), MOUNTS) == [Path("/state/with space/pods"), Path("/state/with space")]


def test_every_hierarchy_of_control_groups_is_known() -> None:
    assert cgroups.hierarchies(MOUNTS) == [
        Hierarchy(Path("/sys/fs/cgroup/memory"), frozenset({"memory"})),
        Hierarchy(Path("/sys/fs/cgroup/cpu,cpuacct"), frozenset({"cpu", "cpuacct"})),
        Hierarchy(Path("/sys/fs/cgroup/unified"), frozenset(), unified=True),
    ]


def test_where_there_is_only_version_2_its_controllers_are_handed_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    monkeypatch.setattr(cgroups, "mounts", lambda: [Mount(tmp_path, "cgroup2", frozenset())])
    cgroups.make("pin7")
    assert (tmp_path / "pin7" / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    assert cgroups.exists("pin7")


def test_a_new_group_of_version_1_may_use_the_processors_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpuset.mems").write_text("0\n")
    monkeypatch.setattr(cgroups, "mounts", lambda: [Mount(tmp_path, "cgroup", frozenset({"rw", "cpuset"}))])
    cgroups.make("pin7")
    assert (tmp_path / "pin7" / "cpuset.cpus").read_text() == "0-1\n"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    for name in kernel.WISHED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("7")
    return tmp_path


def test_what_a_kubelet_changes_is_put_back(settings: Path) -> None:
    remembered = settings / "remembered.json"
    kernel.remember(remembered, settings)
    _as_a_kubelet_does(settings)
    kernel.remember(remembered, settings)
    kernel.put_back(remembered, settings)
    assert {(settings / name).read_text() for name in kernel.WISHED} == {"7"}
    assert not remembered.exists()


def test_the_second_of_two_platforms_puts_nothing_back(settings: Path) -> None:
    _as_a_kubelet_does(settings)
    kernel.remember(settings / "second.json", settings)
    kernel.put_back(settings / "second.json", settings)
    assert {name: int((settings / name).read_text()) for name in kernel.WISHED} == kernel.WISHED


def test_what_somebody_has_changed_since_stays(settings: Path) -> None:
    kernel.remember(settings / "remembered.json", settings)
    _as_a_kubelet_does(settings)
    (settings / "kernel/panic").write_text("30")
    kernel.put_back(settings / "remembered.json", settings)
    assert (settings / "kernel/panic").read_text() == "30"


def _as_a_kubelet_does(settings: Path) -> None:
    for name, value in kernel.WISHED.items():
        (settings / name).write_text(str(value))
