"""kube-proxy: a Service's address leads to its pods, from every pod and from this host."""

from __future__ import annotations

import yaml

from pincompute.engine.build import pinned
from pincompute.engine.files import write_changed
from pincompute.engine.nodes.network import bridges_are_filtered
from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform
from pincompute.engine.tools import PATH

_HEALTH = 10256
USER = "system:kube-proxy"
"""Kubernetes itself grants this user what it needs."""


def write(platform: Platform) -> None:
    content = config(platform, hide_clients=not bridges_are_filtered())
    write_changed(platform.home.configs / "kube-proxy.yaml", yaml.safe_dump(content, sort_keys=False))


def part(platform: Platform) -> Part:
    return Part(
        "kube-proxy",
        (
            str(platform.programs.kubernetes),
            "kube-proxy",
            f"--config={platform.home.configs / 'kube-proxy.yaml'}",
            f"--hostname-override={platform.node_name}",
        ),
        Web(f"http://{platform.node_address}:{_HEALTH}/healthz"),
        environment={"PATH": PATH},
        namespace=platform.namespace,
        version=pinned("k8s.io/kubernetes"),
    )


def config(platform: Platform, *, hide_clients: bool) -> dict[str, object]:
    """A KubeProxyConfiguration. Its rules are in the node's namespace, and end with it.

    Where the kernel hides from the firewall what crosses a bridge, an answer between two pods finds its way back only
    by the node: then pods see the node's address instead of their client's.
    """
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(platform.config("kube-proxy"))},
        "clusterCIDR": platform.pod_range,
        "healthzBindAddress": f"{platform.node_address}:{_HEALTH}",
        "metricsBindAddress": "127.0.0.1:10249",
        "nodePortAddresses": ["primary"],
        # New pods are reached soon after they are ready; a second between two changes is the default.
        "iptables": {"masqueradeAll": hide_clients, "minSyncPeriod": "200ms"},
        # The limits of connection tracking belong to the host, and stay as they are.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
