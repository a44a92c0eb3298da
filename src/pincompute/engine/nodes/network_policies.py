"""The network agent, which enforces NetworkPolicies in the network namespace of the node."""

from __future__ import annotations

import sys

from pincompute import __version__
from pincompute.engine.debian import find_program
from pincompute.engine.own_services import CODE_VARIABLE, code_digest
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform

USER = "pincompute-network"
"""Kubernetes user of the agent, which may read Pods, Namespaces and NetworkPolicies."""
_HEALTH = 10258


def network_part(platform: Platform) -> Part:
    listen = f"{platform.node_address}:{_HEALTH}"
    options = (
        "--kubeconfig", platform.kubeconfig_of("network"), "--listen", listen, "--nft", find_program("nft"),
        "--node", platform.node_name, "--pods", platform.pod_range, "--host", platform.address,
    )  # fmt: skip
    return Part(
        "network",
        (sys.executable, "-m", "pincompute", "agent", "network", *map(str, options)),
        HttpProbe(f"http://{listen}/healthz"),
        environment={CODE_VARIABLE: code_digest()},
        network_namespace=platform.network_namespace,
        version=__version__,
    )
