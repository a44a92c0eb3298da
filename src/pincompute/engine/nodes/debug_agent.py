"""The agent for debugging, which serves shells, files and processes of the node's containers.

It runs beside the kubelet, and not in a pod: it needs containerd's socket and the processes and mounts of the node,
which no pod may have, and it must answer while the API server is down.
"""

from __future__ import annotations

from pincompute.engine.debug_credentials import CERTIFICATE, PORT, public_key
from pincompute.engine.nodes.agent_part import node_agent_part
from pincompute.engine.nodes.containerd import containerd_socket
from pincompute.engine.parts import Part
from pincompute.engine.platform import Platform


def debug_part(platform: Platform) -> Part:
    authority, listen = platform.authority, f"{platform.node_address}:{PORT}"
    options = (
        "--listen", listen, "--node", platform.node_name,
        "--certificate", authority.certificate(CERTIFICATE), "--key", authority.key(CERTIFICATE),
        "--grants", public_key(platform), "--containerd", containerd_socket(platform),
    )  # fmt: skip
    return node_agent_part("debug", platform, f"https://{listen}/healthz", *options)
