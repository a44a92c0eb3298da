"""Cluster DNS: CoreDNS as a process on the node."""

from __future__ import annotations

from pincompute.engine.build import pinned_version
from pincompute.engine.config_files import write_if_changed
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform

_PORT = 53
_HEALTH = 8181
USER = "pincompute-dns"
"""Kubernetes user of CoreDNS, which may read Services and EndpointSlices."""


def write(platform: Platform) -> None:
    write_if_changed(platform.home.configs / "Corefile", corefile(platform))


def dns_part(platform: Platform) -> Part:
    return Part(
        "dns",
        (str(platform.programs.dns), "-conf", str(platform.home.configs / "Corefile")),
        HttpProbe(f"http://{platform.node_address}:{_HEALTH}/ready"),
        network_namespace=platform.network_namespace,
        version=pinned_version("github.com/coredns/coredns"),
    )


def corefile(platform: Platform) -> str:
    """Configuration of CoreDNS.

    The zone `.` is served, too: no other resolver is reachable, so names outside the cluster are NXDOMAIN at once.
    Negative answers are cached for 1 s only, as clients wait for Services that are about to be created.
    """
    return f"""\
.:{_PORT} {{
    bind {platform.node_address}
    errors
    ready {platform.node_address}:{_HEALTH}
    cache 5 {{
        denial 9984 1
    }}
    kubernetes cluster.local in-addr.arpa ip6.arpa . {{
        kubeconfig {platform.kubeconfig_of("dns")}
        pods insecure
        ttl 5
    }}
}}
"""
