"""containerd, with its own folders, socket and pod network for each platform."""

from __future__ import annotations

import json
from pathlib import Path

from pincompute.engine.config_files import write_if_changed
from pincompute.engine.debian import find_program, program_version
from pincompute.engine.images import registry
from pincompute.engine.nodes import program_image
from pincompute.engine.nodes.cgroups import CONTAINERD_GROUP
from pincompute.engine.nodes.machine import Machine
from pincompute.engine.parts import Part, SocketProbe
from pincompute.engine.platform import Platform
from pincompute.engine.system_commands import SYSTEM_PATH, run


def containerd_folder(platform: Platform) -> Path:
    return platform.home.data / "containerd"


def containerd_socket(platform: Platform) -> Path:
    return containerd_state(platform) / "containerd.sock"


def containerd_state(platform: Platform) -> Path:
    """Runtime state: mounts, sockets, network namespaces. It is removed when the platform stops."""
    return containerd_folder(platform) / "run"


def pod_address_folder(platform: Platform) -> Path:
    """IP addresses that host-local has assigned to pods."""
    return containerd_folder(platform) / "addresses"


def write(platform: Platform, host: Machine) -> None:
    """Write the configuration files of containerd."""
    configs = platform.home.configs
    for name, content in {
        "containerd.toml": containerd_toml(platform, host),
        "images/_default/hosts.toml": registry_hosts_toml(platform),
        "network/10-pod.conflist": cni_config(platform),
    }.items():
        write_if_changed(configs / name, content)


def containerd_part(platform: Platform) -> Part:
    daemon = _program("containerd")
    return Part(
        "containerd",
        (str(daemon), "--config", str(platform.home.configs / "containerd.toml")),
        SocketProbe(path=containerd_socket(platform)),
        # The shim is found by the PATH, in the folder of containerd.
        environment={"PATH": f"{daemon.parent}:{SYSTEM_PATH}"},
        network_namespace=platform.network_namespace,
        version=program_version("containerd"),
    )


def containerd_toml(platform: Platform, host: Machine) -> str:
    """Configuration of containerd."""
    return f"""\
version = 2
root = "{containerd_folder(platform) / "root"}"
state = "{containerd_state(platform)}"

[grpc]
address = "{containerd_socket(platform)}"

# containerd and its shims are in the platform's control group, so that they are killed with everything else.
[cgroup]
path = "/{platform.network_namespace}/{CONTAINERD_GROUP}"

[plugins."io.containerd.internal.v1.opt"]
path = "{containerd_folder(platform) / "opt"}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{program_image.PAUSE}"
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
Root = "{containerd_state(platform) / "runc"}"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{platform.home.configs / "images"}"
"""


def registry_hosts_toml(platform: Platform) -> str:
    """Configuration that redirects every registry to the platform's own.

    Other registries are unreachable from the node's network, so a pull from them would only fail slowly.
    containerd reads this file, and the client certificate by which the registry knows the node, for each pull.
    containerd 1.6 ignores a file without a `host` table, so there is an empty one.
    """
    certificate, key = registry.node_credentials(platform)
    return f"""\
server = "https://{registry.nodes_address(platform)}"
ca = "{platform.authority.bundle}"
client = [["{certificate}", "{key}"]]
capabilities = ["pull", "resolve"]

[host]
"""


def cni_config(platform: Platform) -> str:
    """CNI configuration: a pair of devices and a route for each pod, host-local addresses, and host ports.

    There is no bridge, so every packet between two pods is routed by the node, and passes its rules.
    """
    pods = {
        "type": "ptp",
        "ipam": {
            "type": "host-local",
            "dataDir": str(pod_address_folder(platform)),
            "ranges": [[{"subnet": platform.pod_range}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": platform.network_namespace, "plugins": [pods, ports]}, indent=2)


def import_image(platform: Platform, name: str, program: Path) -> None:
    """Import an image with a single program into containerd; no registry has it."""
    control = [_program("ctr"), "--address", containerd_socket(platform), "--namespace", "k8s.io"]
    run([*control, "images", "import", "-"], program_image.docker_archive(name, program))


def _program(name: str) -> Path:
    found = find_program(name)
    assert found is not None, f"obstacles() rejects machines without {name}"
    return found


def _toml(value: bool) -> str:
    return "true" if value else "false"
