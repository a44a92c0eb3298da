"""kube-proxy, which forwards Service addresses to pods, from pods and from this host."""

from __future__ import annotations

import yaml

from pincompute.engine.build import pinned_version
from pincompute.engine.config_files import write_if_changed
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform
from pincompute.engine.system_commands import SYSTEM_PATH

_HEALTH = 10256
USER = "system:kube-proxy"
"""User with a default role binding of Kubernetes."""


def write(platform: Platform) -> None:
    content = yaml.safe_dump(kube_proxy_config(platform), sort_keys=False)
    write_if_changed(platform.home.configs / "kube-proxy.yaml", content)


def kube_proxy_part(platform: Platform) -> Part:
    return Part(
        "kube-proxy",
        (
            str(platform.programs.kubernetes),
            "kube-proxy",
            f"--config={platform.home.configs / 'kube-proxy.yaml'}",
            f"--hostname-override={platform.node_name}",
        ),
        HttpProbe(f"http://{platform.node_address}:{_HEALTH}/healthz"),
        environment={"PATH": SYSTEM_PATH},
        network_namespace=platform.network_namespace,
        version=pinned_version("k8s.io/kubernetes"),
    )


def kube_proxy_config(platform: Platform) -> dict[str, object]:
    """KubeProxyConfiguration. The rules are in the node's network namespace and are deleted with it."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(platform.kubeconfig_of("kube-proxy"))},
        "clusterCIDR": platform.pod_range,
        "healthzBindAddress": f"{platform.node_address}:{_HEALTH}",
        "metricsBindAddress": "127.0.0.1:10249",
        "nodePortAddresses": ["primary"],
        # With the default of 1 s, new pods would get traffic later.
        "iptables": {"minSyncPeriod": "200ms"},
        # Connection tracking limits belong to the host and are not changed.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
