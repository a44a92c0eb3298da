"""Agents of ours that run beside the kubelet, in the network namespace of the node."""

from __future__ import annotations

import sys

from pincompute import __version__
from pincompute.engine.own_services import CODE_VARIABLE, code_digest
from pincompute.engine.parts import HttpProbe, Part
from pincompute.engine.platform import Platform


def node_agent_part(name: str, platform: Platform, health: str, *options: object) -> Part:
    """The part that runs `pincompute agent NAME`; `health` is the URL of its probe."""
    return Part(
        name,
        (sys.executable, "-m", "pincompute", "agent", name, *map(str, options)),
        HttpProbe(health),
        environment={CODE_VARIABLE: code_digest()},
        network_namespace=platform.network_namespace,
        version=__version__,
    )
