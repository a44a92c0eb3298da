"""The kubelet of the real node."""

from __future__ import annotations

from pathlib import Path

import yaml

from pincompute.api.names import SIMULATED_LABEL
from pincompute.engine.build import pinned_version
from pincompute.engine.config_files import write_if_changed
from pincompute.engine.control_plane import GATES
from pincompute.engine.nodes.containerd import containerd_socket
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
from pincompute.engine.system_commands import SYSTEM_PATH

_PORT = 10250
_POD_PIDS_LIMIT = 8192


def kubelet_folder(platform: Platform) -> Path:
    return platform.home.data / "kubelet"


def pod_log_folder(platform: Platform) -> Path:
    """Folder of container logs."""
    return platform.home.logs / "pods"


def kubelet_user(platform: Platform) -> str:
    """User name that the node authorizer recognizes; it limits access to objects of this node."""
    return f"system:node:{platform.node_name}"


def write(platform: Platform) -> None:
    configs = platform.home.configs
    write_if_changed(configs / "kubelet.yaml", yaml.safe_dump(kubelet_config(platform), sort_keys=False))
    write_if_changed(configs / "resolv.conf", f"nameserver {platform.node_address}\n")


def kubelet_part(platform: Platform) -> Part:
    labels = {SIMULATED_LABEL: "false", "topology.kubernetes.io/zone": "zone-1"}
    return Part(
        "kubelet",
        (
            str(platform.programs.kubernetes),
            "kubelet",
            f"--config={platform.home.configs / 'kubelet.yaml'}",
            f"--kubeconfig={platform.kubeconfig_of('kubelet')}",
            f"--root-dir={kubelet_folder(platform)}",
            f"--hostname-override={platform.node_name}",
            f"--node-ip={platform.node_address}",
            f"--node-labels={','.join(f'{name}={value}' for name, value in labels.items())}",
        ),
        HttpProbe(f"https://{platform.node_address}:{_PORT}/healthz", client_certificate="admin"),
        environment={"PATH": SYSTEM_PATH},
        network_namespace=platform.network_namespace,
        version=pinned_version("k8s.io/kubernetes"),
    )


def kubelet_config(platform: Platform) -> dict[str, object]:
    """KubeletConfiguration; other fields have the defaults of Kubernetes."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        **_authentication(platform),
        **_runtime(platform),
        **_dns(platform),
        **_limits(),
        "featureGates": {gate.removesuffix("=true"): True for gate in GATES.split(",")},
    }


def _authentication(platform: Platform) -> dict[str, object]:
    """Mutual TLS, and authorization by the API server, for requests such as logs and exec."""
    authority = platform.authority
    return {
        "address": platform.node_address,
        "port": _PORT,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "tlsCertFile": str(authority.certificate("kubelet")),
        "tlsPrivateKeyFile": str(authority.key("kubelet")),
        "tlsMinVersion": "VersionTLS13",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority.bundle)},
        },
        "authorization": {"mode": "Webhook"},
    }


def _runtime(platform: Platform) -> dict[str, object]:
    return {
        "containerRuntimeEndpoint": f"unix://{containerd_socket(platform)}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{platform.network_namespace}",
        # cgroup v1 is deprecated, but still supported here.
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "serializeImagePulls": False,
        "podLogsDir": str(pod_log_folder(platform)),
        "containerLogMaxSize": "10Mi",
        "containerLogMaxFiles": 3,
        "volumePluginDir": str(kubelet_folder(platform) / "volume-plugins"),
    }


def _dns(platform: Platform) -> dict[str, object]:
    return {
        "clusterDomain": "cluster.local",
        "clusterDNS": [platform.dns_address],
        # The host's resolv.conf may name a resolver on loopback, which pods cannot reach.
        "resolvConf": str(platform.home.configs / "resolv.conf"),
    }


def _limits() -> dict[str, object]:
    """Low eviction thresholds, as the disk of a developer's machine may be nearly full."""
    return {
        "maxPods": 110,
        # Without a limit one pod can take all process ids of the machine.
        "podPidsLimit": _POD_PIDS_LIMIT,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "100Mi",
            "imagefs.available": "100Mi",
        },
        # No image garbage collection: images that were loaded by hand may have no other source.
        "imageGCHighThresholdPercent": 100,
    }
