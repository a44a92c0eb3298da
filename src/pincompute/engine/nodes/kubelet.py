"""The kubelet: what makes this machine a node."""

from __future__ import annotations

from pathlib import Path

import yaml

from pincompute.api.names import SIMULATED
from pincompute.engine.build import pinned
from pincompute.engine.control_plane import GATES
from pincompute.engine.files import write_changed
from pincompute.engine.nodes.containers import socket
from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform
from pincompute.engine.tools import PATH

_PORT = 10250


def folder(platform: Platform) -> Path:
    return platform.home.data / "kubelet"


def logs(platform: Platform) -> Path:
    """What containers print."""
    return platform.home.logs / "pods"


def user(platform: Platform) -> str:
    """By this name the API server lets it see only what its own node needs."""
    return f"system:node:{platform.node_name}"


def write(platform: Platform) -> None:
    configs = platform.home.configs
    write_changed(configs / "kubelet.yaml", yaml.safe_dump(config(platform), sort_keys=False))
    write_changed(configs / "resolv.conf", f"nameserver {platform.node_address}\n")


def part(platform: Platform) -> Part:
    labels = {SIMULATED: "false", "topology.kubernetes.io/zone": "zone-1"}
    return Part(
        "kubelet",
        (
            str(platform.programs.kubernetes),
            "kubelet",
            f"--config={platform.home.configs / 'kubelet.yaml'}",
            f"--kubeconfig={platform.config('kubelet')}",
            f"--root-dir={folder(platform)}",
            f"--hostname-override={platform.node_name}",
            f"--node-ip={platform.node_address}",
            f"--node-labels={','.join(f'{name}={value}' for name, value in labels.items())}",
        ),
        Web(f"https://{platform.node_address}:{_PORT}/healthz", client="admin"),
        environment={"PATH": PATH},
        namespace=platform.namespace,
        version=pinned("k8s.io/kubernetes"),
    )


def config(platform: Platform) -> dict[str, object]:
    """A KubeletConfiguration. What is not said here is as Kubernetes has it by default."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        **_door(platform),
        **_runtime(platform),
        **_names(platform),
        **_limits(),
        "featureGates": {gate.removesuffix("=true"): True for gate in GATES.split(",")},
    }


def _door(platform: Platform) -> dict[str, object]:
    """Who may ask it for logs and shells: the API server decides, and both sides show a certificate."""
    authority = platform.authority
    return {
        "address": platform.node_address,
        "port": _PORT,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "tlsCertFile": str(authority.certificate("kubelet")),
        "tlsPrivateKeyFile": str(authority.key("kubelet")),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority.bundle)},
        },
        "authorization": {"mode": "Webhook"},
    }


def _runtime(platform: Platform) -> dict[str, object]:
    return {
        "containerRuntimeEndpoint": f"unix://{socket(platform)}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{platform.namespace}",
        # Version 1 of control groups is old, not wrong.
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "serializeImagePulls": False,
        "podLogsDir": str(logs(platform)),
        "containerLogMaxSize": "10Mi",
        "containerLogMaxFiles": 3,
        "volumePluginDir": str(folder(platform) / "volume-plugins"),
    }


def _names(platform: Platform) -> dict[str, object]:
    return {
        "clusterDomain": "cluster.local",
        "clusterDNS": [platform.dns_address],
        # The host's own file may name a resolver on the host's loopback, which no pod can reach.
        "resolvConf": str(platform.home.configs / "resolv.conf"),
    }


def _limits() -> dict[str, object]:
    """This is somebody's own machine: its disk may be nearly full, and that is no reason to throw out pods."""
    return {
        "maxPods": 110,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "100Mi",
            "imagefs.available": "100Mi",
        },
        # Images are never thrown out either: there may be no second place to get them from.
        "imageGCHighThresholdPercent": 100,
    }
