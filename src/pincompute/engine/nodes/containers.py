"""The runtime that runs containers: containerd with folders, socket and pod network of its own."""

from __future__ import annotations

import json
from pathlib import Path

from pincompute.engine.debian import program, version
from pincompute.engine.files import write_changed
from pincompute.engine.nodes import image
from pincompute.engine.nodes.cgroups import CONTAINERD
from pincompute.engine.nodes.machine import Machine
from pincompute.engine.parts import Part, Socket
from pincompute.engine.platform import Platform
from pincompute.engine.tools import PATH, run


def folder(platform: Platform) -> Path:
    return platform.home.data / "containerd"


def socket(platform: Platform) -> Path:
    return state(platform) / "containerd.sock"


def state(platform: Platform) -> Path:
    """What is true only while it runs: mounts, sockets, network namespaces. It is removed at the end."""
    return folder(platform) / "run"


def networks(platform: Platform) -> Path:
    """The address that each pod has."""
    return folder(platform) / "addresses"


def write(platform: Platform, host: Machine) -> None:
    """Lay down every file that containerd reads."""
    configs = platform.home.configs
    for name, content in {
        "containerd.toml": configuration(platform, host),
        "images/_default/hosts.toml": registry(platform),
        "network/10-pod.conflist": pod_network(platform),
    }.items():
        write_changed(configs / name, content)


def part(platform: Platform) -> Part:
    daemon = _program("containerd")
    return Part(
        "containerd",
        (str(daemon), "--config", str(platform.home.configs / "containerd.toml")),
        Socket(path=socket(platform)),
        # The program that stands between it and each container lies beside it.
        environment={"PATH": f"{daemon.parent}:{PATH}"},
        namespace=platform.namespace,
        version=version("containerd"),
    )


def configuration(platform: Platform, host: Machine) -> str:
    """containerd's own configuration."""
    return f"""\
version = 2
root = "{folder(platform) / "root"}"
state = "{state(platform)}"

[grpc]
address = "{socket(platform)}"

# It and its shims live, and at the latest end, with everything else in the platform's control group.
[cgroup]
path = "/{platform.namespace}/{CONTAINERD}"

[plugins."io.containerd.internal.v1.opt"]
path = "{folder(platform) / "opt"}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{image.PAUSE}"
netns_mounts_under_state_dir = true
restrict_oom_score_adj = {_toml(not host.may_lower_oom_score)}

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{_program("host-local").parent}"
conf_dir = "{platform.home.configs / "network"}"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{"overlayfs" if host.overlay else "native"}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{_program("runc")}"
Root = "{state(platform) / "runc"}"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{platform.home.configs / "images"}"
"""


def registry(platform: Platform) -> str:
    """Every image, whatever registry its name says, comes from the platform's own.

    Nothing further away can be reached from the node's network: asking there would only make a misspelt name slow.
    containerd 1.6 overlooks the whole file where it has no table `host`, so there is an empty one.
    """
    return f"""\
server = "https://{platform.address}:{platform.ports["registry"]}"
ca = "{platform.authority.bundle}"
capabilities = ["pull", "resolve"]

[host]
"""


def pod_network(platform: Platform) -> str:
    """A bridge in the node's namespace, an address for each pod, and ports of the node for those that ask."""
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(networks(platform)),
            "ranges": [[{"subnet": platform.pod_range}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": platform.namespace, "plugins": [bridge, ports]}, indent=2)


def import_image(platform: Platform, name: str, program: Path) -> None:
    """Hand containerd an image that it cannot fetch: its only file is a program of ours."""
    control = [_program("ctr"), "--address", socket(platform), "--namespace", "k8s.io"]
    run([*control, "images", "import", "-"], image.archive(name, program))


def _program(name: str) -> Path:
    found = program(name)
    assert found is not None, f"obstacles() lets no machine without {name} get here"
    return found


def _toml(value: bool) -> str:
    return "true" if value else "false"
