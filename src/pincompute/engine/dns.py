"""The names of the cluster: CoreDNS on the node, and the Service by which pods find it."""

from __future__ import annotations

from pathlib import Path
from string import Template

import yaml

from pincompute.engine.parts import Part, Web
from pincompute.engine.platform import Platform
from pincompute.kube.resource import Object

_PORT = 53
_HEALTH = 8181
_MANIFEST = Path(__file__).parent / "manifests" / "dns.yaml"
USER = "pincompute-dns"


def write(platform: Platform) -> None:
    (platform.home.configs / "Corefile").write_text(corefile(platform))


def part(platform: Platform) -> Part:
    return Part(
        "dns",
        (str(platform.programs.dns), "-conf", str(platform.home.configs / "Corefile")),
        Web(f"http://{platform.node_address}:{_HEALTH}/ready"),
        namespace=platform.namespace,
    )


def corefile(platform: Platform) -> str:
    """Other names than the cluster's are refused at once: no resolver further away can be reached from here."""
    return f"""\
.:{_PORT} {{
    bind {platform.node_address}
    errors
    ready {platform.node_address}:{_HEALTH}
    cache 5
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {platform.config("dns")}
        pods insecure
        ttl 5
    }}
}}
"""


def objects(platform: Platform) -> list[Object]:
    """What the cluster must hold for it: a Service that pods find, and the right to look names up."""
    text = Template(_MANIFEST.read_text())
    filled = text.substitute(dns_address=platform.dns_address, node_address=platform.node_address)
    return list(yaml.safe_load_all(filled))
