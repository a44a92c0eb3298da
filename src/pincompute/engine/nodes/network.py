"""The network of one platform: a namespace of its own, joined to the host by one pair of devices.

The host gets a device and two routes, and nothing else: no rule of its firewall and no setting is touched, so what is
in the namespace reaches this host and no further. An image that is only far away is brought in by `pin image load`.
"""

from __future__ import annotations

from pathlib import Path

from pincompute.engine.nodes.mounts import mounts, release
from pincompute.engine.tools import run, succeeds

_NAMESPACES = Path("/run/netns")


def lay(index: int) -> None:
    """Make what is not there yet. Each step can be repeated, so that one begun before is finished."""
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
        f"route replace 10.203.{index}.0/24 via 10.201.{index}.2",
    )
    _set("net/ipv4/ip_forward", "1", inside=name)
    _refuse_what_nobody_serves(name, f"10.203.{index}.0/24")


def remove(index: int) -> None:
    """With the namespace go its devices, addresses and firewall rules; with the host's device its routes."""
    name = f"pin{index}"
    if Path(f"/sys/class/net/{name}h").exists():
        _ip(f"link delete {name}h")
    release(_NAMESPACES / name)
    (_NAMESPACES / name).unlink(missing_ok=True)


def namespaces() -> list[str]:
    """Those of all platforms of this machine."""
    return [file.name for file in _NAMESPACES.glob("pin*")]


def bridges_are_filtered() -> bool:
    """Whether packets between two ports of a bridge pass the firewall, as answers of a Service's pods must."""
    if not _filter().exists():
        succeeds(["modprobe", "br_netfilter"])
    return _filter().exists()


def _filter() -> Path:
    return Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


def _make_namespace(name: str) -> None:
    file = _NAMESPACES / name
    if any(mount.point == file for mount in mounts()):
        return
    file.parent.mkdir(exist_ok=True)
    file.touch()
    # Not `ip netns add`: that leaves a mount of the whole folder behind for ever.
    run(["unshare", f"--net={file}", "true"])


def _refuse_what_nobody_serves(name: str, services: str) -> None:
    """Refuse what still has a Service's address after kube-proxy's rules.

    Otherwise whoever calls a Service a moment before kube-proxy knows it waits two minutes for nothing: the packets of
    that call are remembered as leading nowhere, however often they are repeated.
    """
    iptables = [*_inside(name), "iptables", "--wait"]
    for chain in ("FORWARD", "OUTPUT"):
        rule = [chain, "--destination", services, "--protocol", "tcp", "--jump", "REJECT", "--reject-with", "tcp-reset"]
        if not succeeds([*iptables, "--check", *rule]):
            run([*iptables, "--append", *rule])


def _ip(*commands: str, inside: str = "") -> None:
    where = ["-netns", inside] if inside else []
    run(["ip", *where, "-batch", "-"], "\n".join(commands))


def _set(setting: str, value: str, inside: str) -> None:
    run([*_inside(inside), "tee", f"/proc/sys/{setting}"], value)


def _inside(name: str) -> list[str]:
    return ["nsenter", f"--net={_NAMESPACES / name}"]
