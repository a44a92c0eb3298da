"""The network agent, which enforces NetworkPolicies in the network namespace of the node."""

from __future__ import annotations

from pincompute.engine.debian import find_program
from pincompute.engine.nodes.agent_part import node_agent_part
from pincompute.engine.parts import Part
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
    return node_agent_part("network", platform, f"http://{listen}/healthz", *options)
