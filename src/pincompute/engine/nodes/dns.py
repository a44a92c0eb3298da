"""The names of the cluster: CoreDNS, a process of the node beside the kubelet."""

from __future__ import annotations

from pincompute.engine.build import pinned
from pincompute.engine.files import write_changed
from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform

_PORT = 53
_HEALTH = 8181
USER = "pincompute-dns"
"""It may look up names, and the addresses behind them."""


def write(platform: Platform) -> None:
    write_changed(platform.home.configs / "Corefile", corefile(platform))


def part(platform: Platform) -> Part:
    return Part(
        "dns",
        (str(platform.programs.dns), "-conf", str(platform.home.configs / "Corefile")),
        Web(f"http://{platform.node_address}:{_HEALTH}/ready"),
        namespace=platform.namespace,
        version=pinned("github.com/coredns/coredns"),
    )


def corefile(platform: Platform) -> str:
    """No resolver further away can be reached from here: names outside the cluster (the dot) do not exist.

    What is not there may come any moment, and whoever waits for it asks again.
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
        kubeconfig {platform.config("dns")}
        pods insecure
        ttl 5
    }}
}}
"""
