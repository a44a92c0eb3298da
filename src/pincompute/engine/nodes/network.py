"""The network of one platform: a network namespace, connected to the host by a veth pair.

The host gets a device and two routes. Its firewall and settings are not changed, so processes in the namespace reach
this host only; images from elsewhere are loaded with `pin image load`.
"""

from __future__ import annotations

from pathlib import Path

from pincompute.engine.nodes.mounts import mounts, unmount_all
from pincompute.engine.system_commands import run, succeeds

_NAMESPACES = Path("/run/netns")


def create_network(index: int, services: str) -> None:
    """Create namespace, devices and routes. Every step is idempotent, so that an interrupted call can be repeated."""
    name = f"pin{index}"
    _make_namespace(name)
    if not Path(f"/sys/class/net/{name}h").exists():
        _ip(f"link add {name}h type veth peer name {name}n netns {name}")
    _ip(
        f"address replace 10.201.{index}.1/24 dev {name}h",
        f"link set {name}h up",
    )
    _ip(
        "link set lo up",
        f"address replace 10.201.{index}.2/24 dev {name}n",
        f"link set {name}n up",
        f"route replace default via 10.201.{index}.1",
        inside=name,
    )
    _ip(
        f"route replace 10.202.{index}.0/24 via 10.201.{index}.2",
        f"route replace {services} via 10.201.{index}.2",
    )
    _set_sysctl("net/ipv4/ip_forward", "1", inside=name)
    _reject_unserved_addresses(name, services)


def remove_network(index: int) -> None:
    """Delete the host's device, and with it its routes; then the namespace with its devices, addresses and rules."""
    name = f"pin{index}"
    if Path(f"/sys/class/net/{name}h").exists():
        _ip(f"link delete {name}h")
    unmount_all(_NAMESPACES / name)
    (_NAMESPACES / name).unlink(missing_ok=True)


def platform_namespaces() -> list[str]:
    """Network namespaces of all platforms on this machine."""
    return [file.name for file in _NAMESPACES.glob("pin*")]


def _make_namespace(name: str) -> None:
    file = _NAMESPACES / name
    if any(mount.point == file for mount in mounts()):
        return
    file.parent.mkdir(exist_ok=True)
    file.touch()
    # Not `ip netns add`, which leaves a permanent mount of the whole folder.
    run(["unshare", f"--net={file}", "true"])


def _reject_unserved_addresses(name: str, services: str) -> None:
    """Reject packets that still have a Service's address after kube-proxy's rules.

    Otherwise a connection to a Service that kube-proxy does not know yet hangs for two minutes: connection tracking
    remembers its first packet without translation, and applies that to every retry.
    """
    iptables = [*_enter_namespace(name), "iptables", "--wait"]
    for chain in ("FORWARD", "OUTPUT"):
        rule = [chain, "--destination", services, "--protocol", "tcp", "--jump", "REJECT", "--reject-with", "tcp-reset"]
        if not succeeds([*iptables, "--check", *rule]):
            run([*iptables, "--append", *rule])


def _ip(*commands: str, inside: str = "") -> None:
    where = ["-netns", inside] if inside else []
    run(["ip", *where, "-batch", "-"], "\n".join(commands))


def _set_sysctl(setting: str, value: str, inside: str) -> None:
    run([*_enter_namespace(inside), "tee", f"/proc/sys/{setting}"], value)


def _enter_namespace(name: str) -> list[str]:
    return ["nsenter", f"--net={_NAMESPACES / name}"]
